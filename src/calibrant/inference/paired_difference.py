"""Two or more models on the same targets: is one better calibrated, or is it chance?"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_fraction, did_you_mean
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.cluster_skewness import (
    MIN_SURPRISES_OF_LIMITS,
    MIN_SURPRISES_OF_MEANS,
    surprises_in,
    too_few_clusters,
)
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.estimators.scoring_rules.auc import AUC
from calibrant.estimators.scoring_rules.proper_scores import ROWS_OF_LOSSES, Score, cubes_over_squares
from calibrant.inference.intervals import cluster_rows, rows_of_clusters, value_of_rows
from calibrant.inference.monte_carlo import CHUNK, ROUNDING, draw
from calibrant.inference.multiplicity import benjamini_hochberg, holm
from calibrant.inference.squared_errors import Square, Squared, is_square, roots_apart, squares_apart
from calibrant.results import SCHEMA, Estimate, Interval, Table, brief, how_many, number
from calibrant.results.result import Measured, plain_data
from calibrant.typing import Array, ArrayLike, Engine, Estimator, Seed

TASK = 50
"""Resamples of one task at most: each is as much work as the estimates themselves."""

Checked: TypeAlias = tuple[Array, Distribution, np.ndarray | None]
"""Targets, predictions and weights that belong together."""

Value = Callable[[slice | np.ndarray], Estimate]
"""The estimate of one model from some of the rows."""

MIN_SURPRISES = 20.0
"""Expected rows of another class than the likeliest below which resamples do not show how far differences go.

With a true model beside one whose odds are 4.5 times too low, resamples of 100 rows with events of 0.5 % held the difference of
Brier scores in 36 % of data sets.
"""

PAIRS_OF_CLUSTERS = (
    "its pairs of rows are taken as independent, and rows of a cluster are not; scores such as Brier() have clusters"
)
"""Why squares of errors are not compared with clusters."""

SMALLEST_PVALUE = 1e-12
"""P-values of mean differences are not told apart below."""


INFINITE = "the difference is not a finite number for some rows: the estimator must be finite for both"


@dataclass(frozen=True, repr=False, eq=False)
class Difference(Measured):
    """How far the values of two models lie apart, ``value = a - b``, and the p-value of there being no difference.

    Where rows are too few for either, ``withheld`` says why; the interval is then the whole line, and the p-value 1.

    >>> from calibrant import Brier, PairedDifference
    >>> y, a, b = [0, 1] * 50, [0.1, 0.9] * 50, [0.4, 0.6] * 50
    >>> difference = PairedDifference(Brier())(y, a, b)
    >>> round(difference.value, 3), difference.pvalue < 0.05
    (-0.15, True)
    """

    value: float
    standard_error: float | None
    interval: Interval
    pvalue: float
    n: int
    comparison: object
    a: Estimate
    b: Estimate
    withheld: str | None = None

    def __float__(self) -> float:
        return self.value

    def to_row(self) -> dict[str, float]:
        """The numbers alone, as one row of a table of results."""
        low, high = self.interval
        return {"difference": self.value, "low": low, "high": high, "pvalue": self.pvalue}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        head = {"schema": SCHEMA, "kind": "difference"}
        parts = ("value", "standard_error", "interval", "pvalue", "n", "comparison", "withheld", "a", "b")
        return head | plain_data(self, *parts) | {"comparison": repr(self.comparison)}

    def _lines(self) -> list[tuple[str, str]]:
        known = [
            (f"{self.interval.level:.4g} interval", f"{self.interval} ({self.interval.method})"),
            ("p-value", number(self.pvalue)),
        ]
        return [
            (f"difference of {self.a.name}", number(self.value)),
            *([("no interval", self.withheld)] if self.withheld else known),
            ("values", f"{number(float(self.a))} and {number(float(self.b))}"),
            ("n", f"{self.n:,}"),
            ("comparison", repr(self.comparison)),
        ]


@dataclass(frozen=True)
class PairedDifference(Settings):
    """The difference of an estimator between two models of the same targets, a minus b.

    Scores are means over rows, and so are their differences: the interval is that of :class:`MeanLimits`, which holds for rare
    events, too, and the p-value is where it reaches zero.

    ``DebiasedECE`` and ``PITError("cramer-von-mises")`` are roots of mean squares, which pairs of rows estimate without bias.
    Their squares are compared with the right level where both models are calibrated, where both are equally wrong in different
    places, and in between. The interval is told of the roots, and leaves out zero where that of the squares does.

    Of other estimators rows are drawn with replacement, the same for both models, so that what makes a row hard for both
    cancels. With ``D*`` the differences of the resamples, centred at their own mean (resampled rows repeat, which shifts
    calibration errors), ``p = (1 + #{|D* - mean D*| >= |D|}) / (n_resamples + 1)``, and the interval is D plus and minus the
    quantile of ``|D* - mean D*|``: it leaves out zero exactly when ``p <= 1 - confidence_level``. Length scales that are not
    given are those of model b, for both models. Asymptotic; the difference of errors that are both nearly zero has a
    smaller spread than the resamples show, and p-values are then too large.

    Interval and p-value are withheld where they do not hold: for errors whose bias differs from model to model, such as ECE
    and largest gaps; where resamples or pairs show too little, since both models expect fewer than twenty rows of another
    class than the likeliest; for scores of numbers with fewer than fifty rows; where ``clusters``, labels of rows that belong
    together, are fewer than twelve or hold too few rare events. Efron & Tibshirani (1993), Hall (1988).

    >>> from calibrant import Brier
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> y_true = (rng.random(300) < p) * 1
    >>> PairedDifference(Brier())(y_true, p, 0.4 + 0.2 * p).pvalue < 1e-4
    True
    """

    estimator: Estimator
    n_resamples: int = 999
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as Brier(); got {self.estimator!r}")
        check_fraction(self.confidence_level, "confidence_level")
        check_count(self.n_resamples, "n_resamples", least=math.ceil(1 / (1 - self.confidence_level) - 1e-9) - 1)

    def __call__(
        self,
        y_true: ArrayLike,
        pred_a: ArrayLike,
        pred_b: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Difference:
        """The difference, its interval and p-value."""
        problems, groups = _checked(y_true, (pred_b, pred_a), sample_weight, clusters, Classes(labels, pos_label))
        (difference,) = self.between(problems, [(1, 0)], clusters=groups, rng=rng, engine=engine)
        return difference

    def between(
        self,
        problems: Sequence[Checked],
        pairs: Sequence[tuple[int, int]],
        *,
        clusters: Clusters | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> list[Difference]:
        """The differences of pairs of checked problems, ``(a, b)`` by number, all on the same resamples of their rows.

        The targets may differ from problem to problem, as PIT values of the same outcomes do; rows belong together.
        """
        if is_square(self.estimator):
            return [self._of_squares(self.estimator, problems[a], problems[b], clusters) for a, b in pairs]
        if isinstance(self.estimator, Score):
            return [self._of_score(self.estimator, problems[a], problems[b], clusters) for a, b in pairs]
        n = len(problems[0][1])
        first = value_of_rows(self.estimator, *problems[0], slice(None), engine)
        fixed: Any = first.estimator if isinstance(self.estimator, BaseEstimator) else self.estimator
        values: list[Value] = [partial(value_of_rows, fixed, *problem) for problem in problems]
        task = partial(_resample, values, n if clusters is None else rows_of_clusters(clusters))
        drawn = draw(task, self.n_resamples, width=max(n, CHUNK // TASK), rng=rng, engine=engine)
        estimates = [value_of_rows(fixed, *problem, slice(None), engine) for problem in problems]
        found = [self._difference(estimates[a], estimates[b], drawn[:, a] - drawn[:, b]) for a, b in pairs]
        biased = _bias_differs(self.estimator)
        few = [
            biased
            or _too_few(problems[a], problems[b])
            or _few_clusters(problems[a], problems[b], clusters, MIN_SURPRISES_OF_LIMITS)
            for a, b in pairs
        ]
        return [d if why is None else _withheld(d, why) for d, why in zip(found, few, strict=True)]

    def _of_score(self, score: Score, a: Checked, b: Checked, clusters: Clusters | None) -> Difference:
        """The difference of mean losses, whose rows are known one by one."""
        estimates = [score.estimate(*problem) for problem in (a, b)]
        losses_a, losses_b = (to_numpy(score.losses(targets, predictions)) for targets, predictions, _ in (a, b))
        if not np.isfinite([losses_a, losses_b]).all():
            raise InputError(INFINITE)
        likely = likely_difference(score, a, b, losses_a - losses_b)
        if clusters is None or clusters.are_single_rows:
            limits = paired_limits(losses_a, losses_b, a[2], likely)
        else:
            limits = _limits_of_clusters(losses_a - losses_b, (a, b), likely, clusters)
        value = float(estimates[0]) - float(estimates[1])
        found = Difference(
            value=value,
            standard_error=float(np.sqrt(limits.squares * limits.n / max(limits.n - 1, 1))),
            interval=_at_least(limits(self.confidence_level), ROUNDING * max(abs(float(e)) for e in estimates)),
            pvalue=pvalue_of_zero(limits) if abs(value) > ROUNDING * abs(float(estimates[0])) else 1.0,
            n=estimates[0].n,
            comparison=self,
            a=estimates[0],
            b=estimates[1],
        )
        needed = max(score.needs(predictions) for _, predictions, _ in (a, b))
        if (few_clusters := _few_clusters(a, b, clusters, MIN_SURPRISES_OF_MEANS)) is not None:
            return _withheld(found, few_clusters)
        if limits.n >= needed or (clusters is not None and found.n >= needed):
            return found
        few = how_many(limits.n, "row does not", "rows do not")
        return _withheld(found, f"{few} show how far losses go; {needed} or more have an interval")

    def _of_squares(self, error: Squared, a: Checked, b: Checked, clusters: Clusters | None) -> Difference:
        """The difference of roots of mean squares, which pairs of rows estimate without bias."""
        one, other = Square.of(error, a), Square.of(error, b)
        limits = squares_apart(one, other, a[2])
        found = Difference(
            value=max(float(one.root), 0.0) - max(float(other.root), 0.0),
            standard_error=None,
            interval=roots_apart(limits(self.confidence_level), one.sure, other.sure),
            pvalue=pvalue_of_zero(limits),
            n=one.root.n,
            comparison=self,
            a=one.root,
            b=other.root,
        )
        paired = None if clusters is None or clusters.are_single_rows else PAIRS_OF_CLUSTERS
        why = paired or _too_few(a, b)
        return found if why is None else _withheld(found, why)

    def _difference(self, a: Estimate, b: Estimate, drawn: np.ndarray) -> Difference:
        value, m = float(a) - float(b), len(drawn)
        if not np.all(np.isfinite([value, *drawn])):
            raise InputError(INFINITE)
        slack = ROUNDING * max(abs(float(a)), abs(float(b)))
        away = np.sort(np.abs(drawn - drawn.mean())) + slack
        beyond = m - int(np.searchsorted(away, abs(value), side="left"))
        half = float(away[m - math.floor((m + 1) * (1 - self.confidence_level) + 1e-9)])
        return Difference(
            value=value,
            standard_error=float(np.std(drawn, ddof=1)),
            interval=Interval(value - half, value + half, self.confidence_level, "symmetric bootstrap"),
            pvalue=(1 + beyond) / (m + 1),
            n=a.n,
            comparison=self,
            a=a,
            b=b,
        )


def paired_limits(
    a: np.ndarray, b: np.ndarray, weights: np.ndarray | None, likely: tuple[float, float] | None = None
) -> MeanLimits:
    """Limits of the mean of ``a - b`` over rows.

    ``likely`` are the lowest and the highest difference of a row to reckon with, those seen where they are not given.

    >>> paired_limits(np.repeat([0.0, 1.0], [20, 80]), np.zeros(100), None)(0.95).low > 0.6
    True
    """
    lowest, highest = (None, None) if likely is None else likely
    return MeanLimits.of(a - b, weights, lowest=lowest, highest=highest)


def _limits_of_clusters(
    apart: np.ndarray, problems: Sequence[Checked], likely: tuple[float, float], clusters: Clusters
) -> MeanLimits:
    """Limits of the mean of differences that depend on each other within clusters."""
    is_rare = max(surprises_in(*problem, clusters) for problem in problems) < MIN_SURPRISES_OF_LIMITS
    seen = MeanLimits.of_clusters(apart, problems[0][2], clusters, are_of_one_fate=is_rare)
    return replace(seen, lowest=likely[0], highest=likely[1])


def pvalue_of_zero(limits: MeanLimits) -> float:
    """The p-value of a mean of zero: one less the largest level whose interval leaves zero out, by bisection of its logarithm.

    >>> pvalue_of_zero(MeanLimits.of(np.repeat([-1.0, 1.0], 50)))
    1.0
    """
    if limits.mean == 0 or 0 in limits(1e-9):
        return 1.0
    if 0 not in limits(1 - SMALLEST_PVALUE):
        return SMALLEST_PVALUE
    inside, outside = np.log(SMALLEST_PVALUE), 0.0
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if 0 in limits(-np.expm1(middle)) else (inside, middle)
    return float(np.exp((inside + outside) / 2))


def likely_difference(score: Score, a: Checked, b: Checked, seen: np.ndarray) -> tuple[float, float]:
    """The lowest and the highest difference of a row's losses to reckon with: typical ones of what seldom happens."""
    possible = [_of_each_class(score, predictions) for _, predictions, _ in (a, b)]
    if possible[0] is None or possible[1] is None:
        return float(seen.min()), float(seen.max())
    (losses_a, chance_a), (losses_b, chance_b) = possible[0], possible[1]
    if len(losses_a) != len(losses_b):
        raise InputError(
            f"models must predict the same classes; got {len(losses_a)} and {len(losses_b)}: give a column for each class, "
            "of zeros where a model does not know it"
        )
    with np.errstate(invalid="ignore"):
        apart, chance = losses_a - losses_b, (chance_a + chance_b) / 2
    usable = np.isfinite(apart) & (chance > 0)
    ends = [
        max(
            cubes_over_squares(np.maximum(sign * apart[usable], 0.0), chance[usable]),
            cubes_over_squares(np.maximum(sign * seen, 0.0)),
        )
        for sign in (-1, 1)
    ]
    return -ends[0], ends[1]


def _of_each_class(score: Score, predictions: Distribution) -> tuple[np.ndarray, np.ndarray] | None:
    """Losses were each class to happen, and its probability, ``(classes, rows)``; of at most so many rows."""
    if not isinstance(predictions, Categorical):
        return None
    some = predictions[:: 1 + len(predictions) // ROWS_OF_LOSSES]
    classes = np.broadcast_to(np.arange(some.n_classes)[:, None], (some.n_classes, len(some)))
    return to_numpy(score.losses(classes, some)), to_numpy(some.matrix).astype(np.float64).T


def _at_least(interval: Interval, slack: float) -> Interval:
    """An interval that is not narrower than rounding."""
    return replace(interval, low=interval.low - slack, high=interval.high + slack)


def _bias_differs(estimator: Estimator) -> str | None:
    """Why models cannot be told apart by an error; ``None`` where its bias is none, or the same for both models."""
    if not isinstance(estimator, BaseEstimator) or estimator.resampling is None:
        return None
    if estimator.bias_cancels or is_square(estimator):
        return None
    if isinstance(estimator, PITError):
        return (
            f"{brief(estimator)} is a largest gap, which noise makes larger the more levels have gaps like it; compare "
            "models by a score such as CRPS(), or by PITError('cramer-von-mises'), whose square has no such bias"
        )
    if isinstance(estimator, AUC):
        return f"{estimator.resampling}; compare the intervals of both models, or their Brier() scores"
    return (
        f"{brief(estimator)} is biased upwards, more so for the less sharp model, and resamples do not show it; compare models by "
        "a score such as Brier(), or by DebiasedECE(), whose square has no such bias"
    )


def _surprises(predictions: Distribution, weights: np.ndarray | None) -> float:
    """Rows of another class than the likeliest that are expected; of labels, on average over them."""
    if isinstance(predictions, Categorical):
        likeliest = to_numpy(predictions.matrix).astype(np.float64).max(axis=1)
    elif isinstance(predictions, Bernoulli):
        p = to_numpy(predictions.probs).astype(np.float64)
        likeliest = np.maximum(p, 1 - p).mean(axis=1)
    else:
        return np.inf
    return float(np.sum((1 - likeliest) if weights is None else (1 - likeliest)[weights > 0]))


def _too_few(a: Checked, b: Checked) -> str | None:
    """Why resamples do not show how far two models lie apart; judged by the predictions alone, not by what happened."""
    expected = max(_surprises(predictions, weights) for _, predictions, weights in (a, b))
    if expected >= MIN_SURPRISES:
        return None
    return (
        f"by both models at most {expected:.2g} rows are expected to be of another class than the likeliest, and resamples of "
        f"fewer than {MIN_SURPRISES:g} show too little; scores such as Brier() have intervals"
    )


def _few_clusters(a: Checked, b: Checked, clusters: Clusters | None, fewest: float) -> str | None:
    """Why clusters say too little of how far two models lie apart: by the predictions of both."""
    if clusters is None or clusters.are_single_rows:
        return None
    found = [too_few_clusters(*problem, clusters, fewest) for problem in (a, b)]
    return found[0] if all(why is not None for why in found) else None


def _checked(
    y_true: ArrayLike,
    models: Sequence[ArrayLike],
    sample_weight: ArrayLike | None,
    clusters: ArrayLike | None,
    classes: Classes,
) -> tuple[list[Checked], Clusters | None]:
    """The problem of each model, and the clusters of the rows that all share."""
    found = [as_clustered_problem(y_true, model, sample_weight, clusters, classes) for model in models]
    return [problem[:3] for problem in found], found[0][3]


def _withheld(found: Difference, why: str) -> Difference:
    whole = Interval(-np.inf, np.inf, found.interval.level, found.interval.method)
    return replace(found, interval=whole, pvalue=1.0, withheld=why)


def _resample(
    values: Sequence[Value], n: int | list[np.ndarray], seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """The values of all models on ``size`` resamples of n rows, or of the rows of clusters, ``(size, models)``."""
    rng = np.random.default_rng(seed)
    rows = (rng.integers(0, n, n) if isinstance(n, int) else cluster_rows(n, rng) for _ in range(size))
    return np.array([[float(value(r)) for value in values] for r in rows])


def differences(
    estimator: Estimator,
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    reference: str | None = None,
    method: Literal["holm", "bh"] = "holm",
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    clusters: ArrayLike | None = None,
    rng: Seed = None,
    engine: Engine | None = None,
) -> Table:
    """All models in a table, each with its difference to the reference, the first one unless named.

    Estimators whose differences :class:`PairedDifference` withholds are refused.
    ``adjusted`` holds the p-values adjusted for several comparisons, by Holm ("holm") or Benjamini and Hochberg ("bh");
    intervals are those of single comparisons. Errors, scores and a verdict at once: :func:`calibrant.compare`.

    >>> from calibrant import Brier
    >>> y_true, p = [1, 0, 1, 1, 0, 0], np.array([0.9, 0.2, 0.7, 0.8, 0.3, 0.1])
    >>> differences(Brier(), y_true, {"sharp": p, "vague": 0.5 + 0 * p})["difference"].round(3)
    array([0.   , 0.203])
    """
    adjust = {"holm": holm, "bh": benjamini_hochberg}.get(method)
    if adjust is None:
        raise InputError(f"method must be 'holm' or 'bh'; got {method!r}")
    if len(models) < 2:
        raise InputError(f"models must hold at least two to compare; got {list(models)}")
    base = next(iter(models)) if reference is None else reference
    if base not in models:
        raise InputError(f"there is no model {base!r} to refer to{did_you_mean(base, list(models))}")
    names = [base, *(name for name in models if name != base)]
    paired = PairedDifference(estimator, n_resamples, confidence_level)
    if (reason := _bias_differs(estimator)) is not None:
        raise InputError(f"estimator must tell models apart: {reason}")
    problems, groups = _checked(
        y_true, [models[name] for name in names], sample_weight, clusters, Classes(labels, pos_label)
    )
    pairs = [(i, 0) for i in range(1, len(names))]
    found = paired.between(problems, pairs, clusters=groups, rng=rng, engine=engine)
    rows = [{"difference": 0.0, "low": 0.0, "high": 0.0, "pvalue": np.nan}, *(d.to_row() for d in found)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    values = [float(found[0].b), *(float(d.a) for d in found)]
    adjusted = [np.nan, *adjust([d.pvalue for d in found])]
    return Table(model=names, value=values, **columns, adjusted=adjusted)
