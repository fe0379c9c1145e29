"""The Hosmer-Lemeshow test of calibration."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import chdtrc

from calibrant._validate import InputError, check_count
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.lensed import View, check_lens
from calibrant.lenses import Lens
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed

NOTE = "the p-value changes with the number of groups, and errors inside a group are not seen; AggregatedTest has no groups"

FEW = 5
"""Expected counts below this are too few for the chi-square law."""

FEWER = f"some groups expect fewer than {FEW} events or non-events, so the p-value is unreliable; the least is"


@dataclass(frozen=True)
class HosmerLemeshow:
    """Test of calibration of one event by groups of equal size, as published.

    ``sum_g n_g (o_g - m_g)^2 / (m_g (1 - m_g))`` with frequency ``o_g`` and mean score ``m_g`` of the ``n_g`` rows in each of
    ``n_groups`` groups (fewer where ties do not let them be cut), against chi-square with as many degrees of freedom; with
    two fewer if the model was ``fitted`` to these very rows. A group whose scores are all 0 or all 1 does not count, unless
    something happened in it that could not. Weights are importance: ``n_g`` becomes ``(sum w)^2 / sum w^2``.

    Holds its level only where all groups expect at least some five events and five non-events; the result says when they do
    not. :class:`calibrant.ExactTest` is exact always. O(n log n). Hosmer & Lemeshow (1980).

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
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Chi-square and its tail; the estimate is the binned error, whose table has the groups."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        event = View.of(self.lens, predictions).only(self)
        bins = EqualMass(self.n_groups)
        estimate = ECE(bins, lens=self.lens).estimate(targets, predictions, weights)
        which = bins.bins(event.probability, weights).index(event.probability)
        groups = Groups.of(which, event.probability.astype(np.float64), event.happened(targets), weights)
        statistic, pvalue = self._tail(groups)
        few = () if groups.least_count >= FEW else (f"{FEWER} {groups.least_count:.2g}",)
        return TestResult(statistic, pvalue, len(predictions), self, estimate, notes=(*few, NOTE))

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


@dataclass(frozen=True, eq=False)
class Groups:
    """What each group holds: rows (of equal weight, that tell as much), and frequencies predicted and observed."""

    rows: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, which: np.ndarray, scores: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> Self:
        """Add up the rows of each group."""
        w = np.ones(len(scores)) if weights is None else weights
        total, squares, score, event = (np.bincount(which, x) for x in (w, w**2, w * scores, w * happened))
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
    def least_count(self) -> float:
        """The smallest number of events or non-events that a group expects."""
        m = self.predicted
        return float(np.min((self.rows * np.minimum(m, 1 - m))[self.varies], initial=np.inf))
