"""How far PIT values are from uniform: overall, at quantiles, and in the central part."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import as_levels, check_fraction, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import fan_of, forecast_at
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.forecast_errors.pit import (
    PITValues,
    Prerank,
    check_prerank,
    pit_of,
    randomised,
    share_upto,
)
from calibrant.estimators.forecast_errors.quantile_cells import SharesBelow, judged_at
from calibrant.estimators.limits import EXACT, ArcGap, CurveGap, ErrorLimits, LargestGap, Slack
from calibrant.estimators.scoring_rules.proper_scores import Score
from calibrant.results import Estimate, Table
from calibrant.typing import Array

Distance: TypeAlias = Literal["kolmogorov", "cramer-von-mises", "kuiper"]


@dataclass(frozen=True)
class PITError(BaseEstimator):
    """PIT error: the distance of the distribution function G of the PIT values ``F_i(y_i)`` from that of uniform ones.

    ``max |G(u) - u|`` (``kolmogorov``), the root of ``integral (G(u) - u)^2 du`` (``cramer-von-mises``; n times its
    square is the usual statistic), or ``max (G(u) - u) + max (u - G(u))`` (``kuiper``, which sees errors of spread as
    well as of level). Never zero: :class:`~calibrant.ExactTest` says what chance explains. Levels are those of
    :class:`PIT`, with its ``prerank`` and ``seed``. Of quantile forecasts, u are the levels given and G the share of
    targets below each. A forecast may be wrong for every row and have uniform PIT values on average: look at groups, too. O(n
    log n). Gneiting, Balabdaoui & Raftery (2007).

    >>> from calibrant import ExactTest, Normal, PITError
    >>> y_true = np.random.default_rng(0).normal(0.0, 1.0, 200)
    >>> ExactTest(PITError())(y_true, Normal(np.zeros(200), 1.0)).pvalue > 0.05
    True
    >>> ExactTest(PITError("kuiper"))(y_true, Normal(np.zeros(200), 2.0)).pvalue  # twice as wide as it should be
    0.001
    """

    distance: Distance = "kolmogorov"
    prerank: Prerank | None = None
    seed: int = 0

    least = 0.0
    most = 1.0
    rests_on_levels = True

    def __post_init__(self) -> None:
        check_one_of(self.distance, ("kolmogorov", "cramer-von-mises", "kuiper"), "distance")
        check_prerank(self.prerank, self.seed)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The distance."""
        statistic, fan = self.given(predictions, weights), fan_of(predictions)
        seen, notes = statistic.seen(to_numpy(targets)[None]), () if fan is None else (judged_at(fan),)
        value = float(statistic.of(seen)[0])
        is_known = self.distance != "cramer-von-mises" and weights is None
        slack = statistic.slack(seen[0], value, len(predictions)) if is_known else None
        limits = None if slack is None else ErrorLimits(value, (slack,), most=self.most, method=EXACT)
        return Estimate("PITError", value, len(predictions), self, notes=notes, limits=limits)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> "_AtQuantiles | _FromUniform":
        """PIT values of all resamples, sorted together; of quantile forecasts, the shares below each quantile."""
        if (fan := fan_of(predictions)) is not None:
            return _AtQuantiles(self.distance, SharesBelow.of(fan, weights))
        levels = pit_of(predictions, self, self.prerank, self.seed)
        return _FromUniform(self.distance, levels, self.seed, None if weights is None else weights / weights.sum())

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """The process ``G(u) - u``, a sum over rows, with the signs of their clusters."""
        w = np.ones(len(predictions)) if weights is None else weights
        w = w / w.sum()
        if (fan := fan_of(predictions)) is not None:
            below = SharesBelow.of(fan, weights)
            return SignedShares.of(below.beyond(targets) * w[:, None], clusters, below.levels, self.distance)
        u = randomised(pit_of(predictions, self, self.prerank, self.seed)(targets), self.seed)
        order = np.argsort(u)
        return _SignedProcess(self.distance, u[order], w[order], clusters.codes[order])


@dataclass(frozen=True, eq=False)
class _AtQuantiles:
    distance: Distance
    below: SharesBelow

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.of(self.seen(targets))

    def seen(self, targets: np.ndarray) -> np.ndarray:
        """Shares below each quantile, ``(m, levels)``."""
        return self.below(targets)

    def of(self, shares: np.ndarray) -> np.ndarray:
        """The distance of the shares of each resample."""
        return distance_at(shares, self.below.levels, self.distance)

    def slack(self, shares: np.ndarray, value: float, n: int) -> Slack:
        """How far the largest gap may lie from the truth, for the shares of n targets."""
        levels = self.below.levels
        if self.distance == "kuiper":  # of every interval that begins and ends at levels given, or is open to one side
            first, last = np.triu_indices(len(levels) + 1, 1)
            levels, shares = (np.append(0.0, x)[last] - np.append(0.0, x)[first] for x in (levels, shares))
        rows = np.full(len(shares), n)
        return LargestGap(levels, shares * rows, rows)


def distance_at(shares: np.ndarray, levels: np.ndarray, distance: Distance) -> np.ndarray:
    """The distance of shares ``(..., m)`` below quantiles from the levels ``(m,)`` of these.

    >>> distance_at(np.array([[0.2, 0.5, 0.7]]), np.array([0.1, 0.5, 0.9]), "kuiper").round(3)
    array([0.3])
    """
    gap = shares - levels
    if distance == "cramer-von-mises":
        ends = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
        return np.sqrt(gap**2 @ np.diff(ends))
    above, below = np.maximum(gap, 0).max(axis=-1), np.maximum(-gap, 0).max(axis=-1)
    return np.maximum(above, below) if distance == "kolmogorov" else above + below


@dataclass(frozen=True, eq=False)
class _FromUniform:
    distance: Distance
    levels: PITValues
    seed: int
    weights: np.ndarray | None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.of(self.seen(targets))

    def seen(self, targets: np.ndarray) -> np.ndarray:
        """PIT values, ``(m, n)``."""
        return randomised(self.levels(targets), self.seed)

    def of(self, u: np.ndarray) -> np.ndarray:
        """The distance of the PIT values of each resample."""
        return distance_from_uniform(u, self.weights, self.distance)

    def slack(self, u: np.ndarray, value: float, n: int) -> Slack:
        """How far the largest distance may lie from the truth, for the PIT values of n targets."""
        return ArcGap(n) if self.distance == "kuiper" else CurveGap(u, value)


def distance_from_uniform(u: np.ndarray, weights: np.ndarray | None, distance: Distance) -> np.ndarray:
    """The distance of the distribution function of PIT values ``(m, n)`` from that of uniform ones, ``(m,)``.

    >>> distance_from_uniform(np.array([[0.1, 0.6]]), None, "kolmogorov")
    array([0.4])
    """
    n = u.shape[-1]
    if weights is None:
        u, reached = np.sort(u, axis=-1), np.arange(n + 1) / n
    else:
        order = np.argsort(u, axis=-1)
        u = np.take_along_axis(u, order, axis=-1)
        reached = np.pad(np.cumsum(weights[order], axis=-1), ((0, 0), (1, 0)))
    if distance == "cramer-von-mises":
        edges = np.pad(u, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        cubes = (edges[:, 1:] - reached) ** 3 - (edges[:, :-1] - reached) ** 3
        return np.sqrt(np.maximum(cubes.sum(axis=-1) / 3, 0))
    above, below = (reached[..., 1:] - u).max(axis=-1), (u - reached[..., :-1]).max(axis=-1)
    return np.maximum(above, below) if distance == "kolmogorov" else np.maximum(above, 0) + np.maximum(below, 0)


@dataclass(frozen=True, eq=False)
class SignedShares:
    """Gaps between shares and levels under signs of clusters, from those of each cluster, ``(C, levels)``, and their distance."""

    gaps: np.ndarray
    levels: np.ndarray
    distance: Distance

    @classmethod
    def of(cls, gaps: np.ndarray, clusters: Clusters, levels: np.ndarray, distance: Distance) -> "SignedShares":
        """From the gaps of rows, ``(n, levels)``."""
        return cls(np.stack([clusters.sums(column) for column in gaps.T], axis=1), levels, distance)

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """The distance under each set of signs, ``(m,)``."""
        return distance_at(signs @ self.gaps + self.levels, self.levels, self.distance)


@dataclass(frozen=True, eq=False)
class _SignedProcess:
    """``sum_i s_i w_i (1{U_i <= u} - u)`` for PIT values in order: ``A_j - B u`` between the j-th and the next."""

    distance: Distance
    pit: np.ndarray
    weights: np.ndarray
    codes: np.ndarray

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        steps = np.pad(np.cumsum(signs[:, self.codes] * self.weights, axis=1), ((0, 0), (1, 0)))  # A, (m, n + 1)
        slope, u = steps[:, -1:], self.pit
        if self.distance == "cramer-von-mises":
            ends = np.concatenate([[0.0], u, [1.0]])
            width, squares, cubes = np.diff(ends), np.diff(ends**2), np.diff(ends**3)
            whole = (steps**2) @ width - slope[:, 0] * (steps @ squares) + slope[:, 0] ** 2 * cubes.sum() / 3
            return np.sqrt(np.maximum(whole, 0.0))
        at, before = steps[:, 1:] - slope * u, steps[:, :-1] - slope * u
        above = np.maximum(np.maximum(at, before).max(axis=1), 0.0)
        below = np.maximum(-np.minimum(at, before).min(axis=1), 0.0)
        return np.maximum(above, below) if self.distance == "kolmogorov" else above + below


TWENTIETHS = tuple(round(i / 20, 2) for i in range(1, 20))


@dataclass(frozen=True)
class QuantileError(BaseEstimator):
    """Quantile calibration error: mean over ``levels`` u of ``|share of targets below their u-quantile - u|``.

    With ``squared=True`` the mean of squares. Quantile forecasts have the levels that they were given at, and no others.
    A target whose value has a probability of its own counts for the part of it that lies below u, so that a calibrated
    forecast of counts has no error either. The table has each level. Never negative, hence biased upwards: read it beside
    the null band of :class:`~calibrant.ExactTest`. O(n) a level. Kuleshov, Fenner & Ermon (2018).

    >>> from calibrant import Normal
    >>> QuantileError([0.25, 0.5, 0.75])([-1.0, 1.0], Normal([0.0, 0.0], 1.0)).table
    level  observed    gap
     0.25       0.5   0.25
      0.5       0.5      0
     0.75       0.5  -0.25
    """

    levels: tuple[float, ...] = TWENTIETHS
    squared: bool = False

    least = 0.0
    most = 1.0
    rests_on_levels = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", as_levels(self.levels, "levels"))

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over levels, with the share below each."""
        statistic, fan = self._shares(predictions, weights), fan_of(predictions)
        observed = statistic.observed(to_numpy(targets)[None])[0]
        table = Table(level=statistic.at, observed=observed, gap=observed - statistic.at)
        value = statistic(to_numpy(targets)[None])[0]
        notes = () if fan is None else (judged_at(fan),)
        return Estimate("QuantileError", float(value), len(predictions), self, table=table, notes=notes)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Shares of all resamples."""
        return self._shares(predictions, weights)

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """Gaps at the levels are sums over rows, which get the signs of their clusters."""
        shares = self._shares(predictions, weights)
        w = np.ones(len(predictions)) if weights is None else weights
        inside: Any = shares.observed
        gaps = inside.beyond(targets) * (w / w.sum())[:, None]
        return _SignedGaps(SignedShares.of(gaps, clusters, shares.at, "kolmogorov").gaps, self.squared)

    def _shares(self, predictions: Distribution, weights: np.ndarray | None) -> "_Shares":
        if (fan := fan_of(predictions)) is not None:
            at = fan.levels if self.levels == TWENTIETHS else np.array(self.levels)
            forecast_at(fan, at, self)  # refuses others
            return _Shares(self.squared, at, SharesBelow.of(fan, weights, at))
        w = np.full(len(predictions), 1.0) if weights is None else weights
        at = np.array(self.levels)
        return _Shares(self.squared, at, _SharesUpto(at, pit_of(predictions, self), w / w.sum()))


@dataclass(frozen=True, eq=False)
class _SharesUpto:
    at: np.ndarray
    levels: PITValues
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The share of targets below each level, ``(m, levels)``."""
        levels = self.levels(targets)
        return np.stack([share_upto(levels, u) @ self.weights for u in self.at], axis=-1)

    def beyond(self, targets: np.ndarray) -> np.ndarray:
        """How much of each target lies below each level, less the level, ``(n, levels)``."""
        levels = self.levels(targets)
        return np.stack([share_upto(levels, u) - u for u in self.at], axis=-1)


@dataclass(frozen=True, eq=False)
class _SignedGaps:
    gaps: np.ndarray
    squared: bool

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        gap = np.abs(signs @ self.gaps)
        return (gap**2 if self.squared else gap).mean(axis=-1)


@dataclass(frozen=True, eq=False)
class _Shares:
    squared: bool
    at: np.ndarray
    observed: Statistic

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        gap = np.abs(self.observed(targets) - self.at)
        return (gap**2 if self.squared else gap).mean(axis=-1)


@dataclass(frozen=True)
class CentralCoverage(Score):
    """Share of rows whose level lies in the central part: the coverage of central intervals, ``level`` where calibrated.

    PIT values are those of :class:`~calibrant.estimators.PIT`: where single values have a probability of their own an
    interval can hold more than it should, and its ends count for a part, at random. Of an ensemble of m members the ends lie
    between members. O(n).

    >>> from calibrant import Normal
    >>> y_true = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> CentralCoverage(0.9)(y_true, Normal(np.zeros(200), 1.0)).value  # intervals are half as wide as they should be
    0.6
    """

    name = "CentralCoverage"
    least = 0.0
    most = 1.0
    rests_on_levels = True

    level: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")

    def losses(self, targets: Array, predictions: Distribution) -> np.ndarray:
        """Whether each level lies inside, as 0 or 1."""
        self._check(predictions)
        return self._inside(pit_of(predictions, self), targets)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """PIT values of all resamples."""
        self._check(predictions)
        return _Share(self, pit_of(predictions, self), np.ones(len(predictions)) if weights is None else weights)

    def _check(self, predictions: Distribution) -> None:
        """Refuse intervals that quantile forecasts have not both ends of."""
        if fan_of(predictions) is not None:
            forecast_at(predictions, [(1 - self.level) / 2, (1 + self.level) / 2], self)

    def _inside(self, levels: PITValues, targets: Array) -> np.ndarray:
        inside: np.ndarray = np.abs(randomised(levels(targets), self.seed) - 0.5) <= self.level / 2
        return inside.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Share:
    score: CentralCoverage
    levels: PITValues
    weights: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.score._inside(self.levels, targets) @ self.weights / self.weights.sum()
