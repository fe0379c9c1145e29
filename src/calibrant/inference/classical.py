"""Tests of the literature: Hosmer and Lemeshow's, Spiegelhalter's, and consistency resampling."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import chdtrc, ndtr

from calibrant._clusters import refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import BaseEstimator, View, as_estimate, check_lens
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.scoring_rules.proper_scores import Brier
from calibrant.inference.monte_carlo import at_least, draw
from calibrant.lenses.class_lenses import Lens
from calibrant.results import TestResult
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed

GROUPS_NOTE = "the p-value changes with the number of groups, and errors inside a group are not seen; AggregatedTest has no groups"

MIN_COUNT = 5
"""Expected counts below this make the chi-square law rough."""

COUNTS_NOTE = f"some groups expect fewer than {MIN_COUNT} events or non-events, so the p-value is rough; the least is"

MIN_VARIANCE = 3.0
"""The harmonic mean over groups of the variance of their counts, below which the chi-square law fails.

A group adds the reciprocal of its variance to the variance of the statistic. At 5 %, in 718 cells of rare and common
events and 2 to 20 groups (counts drawn as binomial), at most 6.5 % of calibrated data sets were rejected above, up to 27 % below.
"""

MAX_TRIALS = 20
"""Groups from which a smaller number that will do is looked for."""


@dataclass(frozen=True)
class HosmerLemeshow(Settings):
    """Test of calibration of one event by groups of equal size, as published.

    ``sum_g n_g (o_g - m_g)^2 / (m_g (1 - m_g))`` with frequency ``o_g`` and mean score ``m_g`` of the ``n_g`` rows in each of
    ``n_groups`` groups (fewer where ties do not let them be cut), against chi-square with as many degrees of freedom; with
    two fewer if the model was ``fitted`` to these very rows. A group whose scores are all 0 or all 1 does not count, unless
    something happened in it that could not. Weights are importance: ``n_g`` becomes ``(sum w)^2 / sum w^2``.

    Its level is rough where a group expects fewer than five events or non-events, and the result says so. Where groups
    expect so few that calibrated predictions would be rejected too often, it is refused, with a number of groups that will do
    if there is one. :class:`calibrant.ExactTest` is exact always. O(n log n). Hosmer & Lemeshow (1980).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(1000)
    >>> HosmerLemeshow()((rng.random(1000) < y_pred) * 1, y_pred).pvalue > 0.05
    True
    >>> HosmerLemeshow()((rng.random(1000) < 0.3 + 0.4 * y_pred) * 1, y_pred).pvalue < 0.001
    True
    """

    n_groups: int = 10
    lens: Lens | None = None
    fitted: bool = False

    def __post_init__(self) -> None:
        check_count(self.n_groups, "n_groups")
        check_lens(self.lens)
        if not isinstance(self.fitted, bool):
            raise InputError(f"fitted must be True or False; got {self.fitted!r}")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Chi-square and its tail; the estimate is the binned error, whose table has the groups."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        event = View.of(self.lens, predictions).only(self)
        estimate = ECE(EqualMass(self.n_groups), lens=self.lens).estimate(targets, predictions, weights)
        found = partial(_groups, event.probability, event.observed(targets), weights)
        groups = found(self.n_groups)
        if not groups.has_law and not groups.impossible:
            raise InputError(self._refusal(groups, found))
        statistic, pvalue = self._tail(groups)
        few = () if groups.least_count >= MIN_COUNT else (f"{COUNTS_NOTE} {groups.least_count:.2g}",)
        return TestResult(statistic, pvalue, len(predictions), self, estimate, notes=(*few, GROUPS_NOTE))

    def _refusal(self, groups: "Groups", found: Callable[[int], "Groups"]) -> str:
        """Why there is no p-value, and what to do: as many groups as will do, or the exact test."""
        least = 3 if self.fitted else 1
        fewer = next((k for k in range(min(self.n_groups - 1, MAX_TRIALS), least - 1, -1) if found(k).has_law), None)
        lens = "" if self.lens is None else f", lens={self.lens!r}"
        exact = f"use ExactTest(ECE(EqualMass({self.n_groups}){lens})), which is exact"
        return (
            f"HosmerLemeshow has no level here, as its law is for large counts: by y_pred the variance of the number of events in "
            f"a group is {groups.typical_variance:.2g} (harmonic mean), and at least {MIN_VARIANCE:g} is needed: {exact}"
            + ("" if fewer is None else f", or n_groups={fewer}")
        )

    def _tail(self, groups: "Groups") -> tuple[float, float]:
        """Chi-square of the groups that can vary, and the chance of one as large."""
        if groups.impossible:
            return np.inf, 0.0
        squares = groups.squares
        freedom = len(squares) - 2 * self.fitted
        if self.fitted and freedom < 1:
            raise InputError(
                f"fitted=True takes two degrees of freedom and y_pred makes {len(squares)} groups: at least 3 are "
                "needed; use more groups, or ExactTest(ECE())"
            )
        return float(squares.sum()), float(chdtrc(freedom, squares.sum())) if freedom else 1.0


def _groups(scores: Array, observed: np.ndarray, weights: np.ndarray | None, n_groups: int) -> "Groups":
    """Rows in so many groups of equal size."""
    which = EqualMass(n_groups).bins(scores, weights).index(scores)
    return Groups.of(which, scores.astype(np.float64), observed, weights)


@dataclass(frozen=True, eq=False)
class Groups:
    """What each group holds: rows (of equal weight, that tell as much), and frequencies predicted and observed."""

    rows: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, which: np.ndarray, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> Self:
        """Add up the rows of each group."""
        w = np.ones(len(scores)) if weights is None else weights
        total, squares, score, event = (np.bincount(which, x) for x in (w, w**2, w * scores, w * observed))
        return cls(total**2 / squares, np.clip(score / total, 0, 1), np.clip(event / total, 0, 1))

    @property
    def varies(self) -> np.ndarray:
        """Which groups can turn out in more than one way."""
        return (self.predicted > 0) & (self.predicted < 1)

    @property
    def squares(self) -> np.ndarray:
        """The squared gap of each group that varies, in units of its variance."""
        m = self.predicted[self.varies]
        return (self.observed[self.varies] - m) ** 2 * self.rows[self.varies] / (m * (1 - m))

    @property
    def impossible(self) -> bool:
        """Whether something happened in a group that could not."""
        return bool(np.any(np.abs(self.observed - self.predicted)[~self.varies] > 1e-9))

    @property
    def typical_variance(self) -> float:
        """The harmonic mean of the variances of counts of events, over groups that vary; infinite where none does."""
        m = self.predicted[self.varies]
        with np.errstate(over="ignore"):  # a variance below all numbers counts as none
            return float(1 / np.mean(1 / (self.rows[self.varies] * m * (1 - m)))) if len(m) else np.inf

    @property
    def has_law(self) -> bool:
        """Whether counts are large enough for the chi-square law."""
        return self.typical_variance >= MIN_VARIANCE

    @property
    def least_count(self) -> float:
        """The smallest number of events or non-events that a group expects."""
        m = self.predicted
        return float(np.min((self.rows * np.minimum(m, 1 - m))[self.varies], initial=np.inf))


VARIANCE_NOTE = (
    "blind to every error at scores of 1/2 and to errors that balance when weighted by 1 - 2f; ExactTest(ECE()) is not"
)

LOW_COUNT, SURE_COUNT = 2.0, 10.0
"""Effective numbers of events: below the first the normal law fails, below the second it is rough.

With ``c = w (1 - 2f)`` it is ``(sum c^2 f (1 - f))^2 / sum c^4 f (1 - f)``: the number of events, where they are rare. At 5 %, in
600 cells of rare and common events, at most 7 % of calibrated data sets were rejected above it, and up to 20 % below.
"""

IMPOSSIBLE = "something happened that had been given probability 0: no calibrated model does that"

FIXED = "scores of 0, 1/2 and 1 alone fix the Brier score whatever can happen: there is nothing to test"


@dataclass(frozen=True)
class Spiegelhalter(Settings):
    """Test that the Brier score of one event is what its scores promise, two-sided, as published.

    ``z = sum w (y - f)(1 - 2f) / sqrt(sum w^2 (1 - 2f)^2 f (1 - f))``: the Brier score less its mean, in standard deviations,
    both given the scores; ``p = 2 Phi(-|z|)``. Positive z: scores too extreme, negative: too timid. Valid for large n: the
    result says where few events are expected, and it is refused where they are too few. Errors that do not change the Brier
    score on average, such as a shift of scores that lie evenly around 1/2, go unseen. O(n). Spiegelhalter (1986).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(1000)
    >>> Spiegelhalter()((rng.random(1000) < y_pred) * 1, y_pred).pvalue > 0.05
    True
    >>> Spiegelhalter()((rng.random(1000) < 0.3 + 0.4 * y_pred) * 1, y_pred).pvalue < 0.001
    True
    """

    lens: Lens | None = None

    def __post_init__(self) -> None:
        check_lens(self.lens)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """z and its two tails; the estimate is the Brier score of the event."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        view = View.of(self.lens, predictions)
        event = view.only(self)
        estimate = replace(Brier().estimate(*view.lens(targets, predictions), weights), lens=view.name)
        f, y = event.probability.astype(np.float64), event.observed(targets)
        w = np.ones(len(f)) if weights is None else weights
        excess = float(np.sum(w * (y - f) * (1 - 2 * f)))
        variance = float(np.sum((w * (1 - 2 * f)) ** 2 * f * (1 - f)))
        if variance > 0:
            z, notes = excess / variance**0.5, (*self._doubts(f, w), VARIANCE_NOTE)
        else:
            z, notes = (np.inf, (IMPOSSIBLE,)) if excess > 0 else (0.0, (FIXED,))
        return TestResult(z, float(2 * ndtr(-abs(z))), len(predictions), self, estimate, notes=notes)

    def _doubts(self, f: np.ndarray, w: np.ndarray) -> tuple[str, ...]:
        """A note where few events decide; a refusal where they are too few for a normal law."""
        c = w * (1 - 2 * f)
        squares = c**2 / np.max(c**2)
        count = float(np.sum(squares * f * (1 - f)) ** 2 / np.sum(squares**2 * f * (1 - f)))
        if count < LOW_COUNT:
            raise InputError(
                f"Spiegelhalter has no level here, as its law is for large n: by y_pred {count:.2g} events decide it, and at "
                f"least {LOW_COUNT:g} must: use {self._exact}, which is exact"
            )
        rough = f"few events decide the p-value ({count:.2g}), so it is rough; {self._exact} is exact"
        return (rough,) if count < SURE_COUNT else ()

    @property
    def _exact(self) -> str:
        """What to use instead."""
        if self.lens is None:
            return "ExactTest(Brier(), alternative='two-sided')"
        return f"ExactTest(ECE(lens={self.lens!r}))"


CONSISTENCY_NOTE = (
    "consistency resampling is not exact: at small n it rejects calibrated models too often; ExactTest does not"
)


@dataclass(frozen=True)
class ConsistencyTest(Settings):
    """Test of calibration by consistency resampling, with any estimator as statistic.

    Predictions are drawn from the data with replacement and targets from them; the statistic is ranked among those of such
    data sets. :class:`calibrant.ExactTest` keeps the predictions and is exact for that reason; here, at 5 %, the ECE with 15
    bins rejects 9 % of calibrated data sets of 10 rows, and 8 % of those of 50. One estimate a draw.
    Bröcker & Smith (2007), Vaicenavicius et al. (2019).

    >>> from calibrant import ECE
    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> ConsistencyTest(ECE(), n_resamples=99)(y_true, y_pred).pvalue > 0.05
    True
    """

    estimator: Estimator
    n_resamples: int = 999

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as ECE(); got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Resample, compare and count."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        estimate = as_estimate(self.estimator, targets, predictions, weights)
        # The resolved estimator: its kernels and lenses are those of the data, not of each resample.
        estimator = estimate.estimator if isinstance(self.estimator, BaseEstimator) else self.estimator
        resample = partial(_resampled, estimator, predictions, weights)
        null = draw(resample, self.n_resamples, width=len(predictions), rng=rng, engine=engine)
        pvalue = float(at_least(np.append(null, float(estimate)))[-1] / (self.n_resamples + 1))
        return TestResult(
            float(estimate), pvalue, len(predictions), self, estimate, null, (*estimate.notes, CONSISTENCY_NOTE)
        )


def _resampled(
    estimator: Any, predictions: Distribution, weights: np.ndarray | None, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """The statistic of so many resampled data sets."""
    rng, n = np.random.default_rng(seed), len(predictions)
    values = []
    for _ in range(size):
        rows = rng.integers(0, n, n)
        drawn = predictions[rows]
        w = None if weights is None else weights[rows]
        values.append(float(as_estimate(estimator, drawn.sample(rng, 1)[0], drawn, w)))
    return np.array(values)
