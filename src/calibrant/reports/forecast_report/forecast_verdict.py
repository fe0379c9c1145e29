"""The evidence on forecasts, and the verdict: whether to believe them, and which way they err."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import SAME_LEVEL
from calibrant.distributions.multivariate import dimensions
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.forecast_errors.quantile_cells import judged_at
from calibrant.estimators.forecast_errors.spread import without_noise
from calibrant.inference.multiplicity import holm
from calibrant.reports.core.evidence import DOUBT, Evidence, Fault, alarmed, consistent, gather, slice_fault, undecided
from calibrant.reports.core.model import KeyNumber, Verdict
from calibrant.reports.core.problem import FoundSlice, Slicing, clearest_slice, told_apart
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem, coordinate_pit
from calibrant.results import Finding, TestResult, number, percent

AUTOMATIC = ("predicted spread", "predicted mean", "middle quantile")
"""What quarters of the rows are made by; columns of the caller may be called so, too."""


@dataclass(frozen=True, eq=False)
class ForecastEvidence:
    """PIT values, resampled as those of calibrated forecasts; outcomes, resampled from their forecasts.

    Members of an ensemble, and quantiles, are no distribution to resample from: then ``outcomes`` is ``None``. The parts
    are put together by Holm's method, which holds however they depend.
    """

    pit: Evidence
    groups: tuple[Slicing, ...]
    outcomes: Evidence | None
    coordinates: tuple[TestResult, ...] = ()

    @property
    def pvalue(self) -> float:
        """Of everything together."""
        return min(1.0, float(holm(self._parts(self.pit.pvalue)).min()))

    @property
    def pvalue_of_all_rows(self) -> float:
        """Without the slices."""
        return min(1.0, float(holm(self._parts(self.pit.pvalue_of_all_rows)).min()))

    def _parts(self, pit: float) -> list[float]:
        outcomes = [] if self.outcomes is None else [self.outcomes.pvalue]
        single = [test.pvalue for test in self.coordinates]
        return [pit, *outcomes, *([min(1.0, len(single) * min(single))] if single else [])]

    def in_words(self, n: int) -> str:
        """How the p-value of all tests was made."""
        count = self.pit.n_statistics + (0 if self.outcomes is None else self.outcomes.n_statistics)
        count += len(self.coordinates)
        more = ", Holm over their kinds" if len(self._parts(0.0)) > 1 else ""
        if self.pit.clusters is not None:
            signs = f"{self.pit.n_resamples:,} sets of signs of {self.pit.clusters:,} clusters"
            return f"aggregated tests of {count} statistics with {signs}{more}, n = {n:,}"
        resamples = f"{self.pit.n_resamples:,} resamples"
        return f"aggregated exact tests of {count} statistics with {resamples}{more}, n = {n:,}"


def gather_forecasts(
    problem: ForecastProblem,
    of_pit: Mapping[str, BaseEstimator],
    of_outcomes: Mapping[str, BaseEstimator],
    slicings: Sequence[Slicing],
) -> ForecastEvidence:
    """Resample levels, outcomes and coordinates."""
    if problem.untested is not None:
        return ForecastEvidence(gather(problem.pit, of_pit, ()), (), None)
    groups = groups_of(problem)
    found = gather(problem.pit, of_pit, [*groups, *slicings], resampled_from=problem.pit.resampled_from)
    pit = Evidence(found.pool, found.single, tuple(group.key for group in groups), tuple(slicings), found.clusters)
    outcomes = gather(problem, of_outcomes, ()) if problem.can_resample else None
    coordinates: tuple[TestResult, ...] = ()
    if dimensions(problem.predictions):
        coordinates = tuple(part.test(part.error) for part in coordinate_pit(problem))
    return ForecastEvidence(pit, groups, outcomes, coordinates)


def groups_of(problem: ForecastProblem) -> tuple[Slicing, ...]:
    """Quarters of the rows by how wide, and by how high, their forecasts are, where that differs.

    Few members that lie close by chance leave the outcome outside more often. What treats outcome and members alike leaves
    their order to chance; so quarters of ensembles are by members and outcome together, good for a test but not to be shown.
    """
    if len(problem) < 40 or dimensions(problem.predictions):
        return ()
    if (fan := problem.fan) is not None:  # what was forecast, and no moments of what lies between
        q = fan.quantiles
        m = q.shape[1]
        axes = {
            AUTOMATIC[0]: _telling(q[:, -1] - q[:, 0]),
            AUTOMATIC[2]: _telling((q[:, (m - 1) // 2] + q[:, m // 2]) / 2),
        }
    else:
        axes = {AUTOMATIC[0]: _axis(problem, "std"), AUTOMATIC[1]: _axis(problem, "mean")}
    found = [_quarters(name, axis, problem) for name, axis in axes.items() if axis is not None]
    return tuple(quarters for quarters in found if quarters.groups)


def _axis(problem: ForecastProblem, name: str) -> np.ndarray | None:
    predictions = problem.predictions
    if isinstance(predictions, Ensemble):
        if not predictions.is_even or predictions.is_vector:
            return None
        all_values = np.column_stack([to_numpy(predictions.members), to_numpy(problem.targets)])
        axis = all_values.std(axis=1) if name == "std" else all_values.mean(axis=1)
    else:
        found = getattr(predictions, name, NotImplemented)
        if found is NotImplemented:
            return None
        axis = to_numpy(found).astype(np.float64)
    return _telling(axis)


def _telling(axis: np.ndarray) -> np.ndarray | None:
    """The numbers where there is one per row and they differ by more than rounding."""
    if axis.ndim != 1 or not np.isfinite(axis).all():
        return None
    axis = without_noise(axis)
    return axis if len(np.unique(axis)) > 3 else None


def _quarters(name: str, axis: np.ndarray, problem: ForecastProblem) -> Slicing:
    """Those that have a row with weight, and enough clusters."""
    weights = problem.weights
    cell = np.searchsorted(np.quantile(axis, [0.25, 0.5, 0.75]), axis, side="left")
    used = [np.flatnonzero(cell == i) for i in np.unique(cell)]
    used = [rows for rows in used if weights is None or weights[rows].any()]
    used = [rows for rows in used if problem.rows(rows).untested is None]
    names = [f"{number(float(axis[rows].min()))} to {number(float(axis[rows].max()))}" for rows in used]
    return Slicing(f"quarters by {name}", name, told_apart(names), tuple(used))


MIN_PIT = 1e-9
"""PIT values nearer to 0 or 1 count as this far out: six standard deviations."""

TELLING, CLEAR = 2.0, 3.0
"""Standard errors from which the way of erring is named, and from which a second one is."""

LITTLE = 0.02
"""Shares of a standard deviation, or of probability, up to which an error is small."""


class WeightedPIT(NamedTuple):
    """PIT values of outcomes in their forecasts, and how much each counts.

    Of quantile forecasts ``values`` are the least and the largest level that each may have, ``(n, 2)``, and ``given`` the levels
    of the quantiles.
    """

    values: np.ndarray
    weights: np.ndarray | None = None
    given: tuple[float, ...] = ()
    inflation: float = 1.0

    def rows(self, index: np.ndarray) -> "WeightedPIT":
        """Some of them."""
        weights = None if self.weights is None else self.weights[index]
        return WeightedPIT(self.values[index], weights, self.given, self.inflation)

    @property
    def size(self) -> float:
        """How many independent ones of equal weight tell as much."""
        w = self.weights
        return (len(self.values) if w is None else float(w.sum() ** 2 / (w**2).sum())) / self.inflation

    def mean(self, of: np.ndarray) -> float:
        """The weighted mean of one number per row."""
        return float(np.average(of, weights=self.weights))

    def below(self, level: float) -> float:
        """The share below a level, as near to it as outcomes on the very quantile allow."""
        if not self.given:
            return self.mean(self.values <= level)
        surely, possibly = self.mean(self.values[:, 1] <= level + SAME_LEVEL), self.mean(self.values[:, 0] < level)
        return min(max(level, surely), possibly)


class Lean(NamedTuple):
    """How high and how wide outcomes lie in their forecasts: in standard deviations, and in standard errors."""

    shift: float
    scale: float
    height: float
    width: float

    @classmethod
    def of(cls, pit: WeightedPIT) -> "Lean":
        """From levels, by mean and variance of their normal scores; levels themselves crowd at their ends."""
        if pit.given:
            return cls._of_cells(pit)
        n, z = pit.size, ndtri(np.clip(pit.values, MIN_PIT, 1 - MIN_PIT))
        shift = pit.mean(z)
        variance = pit.mean((z - shift) ** 2)
        scale = float(np.sqrt(variance))
        # outcomes that are spread too far shift more by chance
        return cls(shift, scale, shift / max(scale, 0.1) * np.sqrt(n), (variance - 1) * np.sqrt(n / 2))

    @classmethod
    def _of_cells(cls, pit: WeightedPIT) -> "Lean":
        """From the quantiles that outcomes lie between, by mean and square of normal scores expected there."""
        ends = np.concatenate([[0.0], pit.given, [1.0]])
        chance, (z0, square0) = np.diff(ends), _scores_between(ends[:-1], ends[1:])
        z, square = _scores_between(pit.values[:, 0], pit.values[:, 1])
        of_mean, of_square = float(chance @ z0**2), float(chance @ (square0 - 1) ** 2)
        mean = pit.mean(z)
        shift = mean / of_mean
        excess = pit.mean(square) - 1 - min(shift**2, 1.0) * of_square
        spread = max(float(np.sqrt(pit.mean((z - mean) ** 2))), 0.1 * np.sqrt(of_mean))
        scale = float(np.exp(np.clip(excess / max(of_square, 1e-12), -5, 5)))
        root = np.sqrt(pit.size)
        return cls(shift, scale, mean / spread * root, excess / np.sqrt(max(of_square, 1e-12)) * root)

    def ways(self) -> list[Finding]:
        """The ways of erring, the clearest first."""
        sides = [
            (abs(self.height), Finding.TOO_LOW if self.height > 0 else Finding.TOO_HIGH),
            (abs(self.width), Finding.TOO_NARROW if self.width > 0 else Finding.TOO_WIDE),
        ]
        (first, way), (second, other) = sorted(sides, reverse=True)
        found = [way] if first > TELLING else []
        return [*found, other] if found and second > CLEAR else found


def judge_forecasts(problem: ForecastProblem, evidence: ForecastEvidence, numbers: Sequence[KeyNumber]) -> Verdict:
    """The verdict from the aggregated exact tests, and the fault it is due to."""
    verdict = _judged(problem, evidence, numbers)
    if problem.fan is None:
        return verdict
    return replace(verdict, evidence=(*verdict.evidence, f"{judged_at(problem.fan).capitalize()}."))


def _judged(problem: ForecastProblem, evidence: ForecastEvidence, numbers: Sequence[KeyNumber]) -> Verdict:
    if problem.untested is not None:
        return undecided(problem)
    pvalue, tests = evidence.pvalue, evidence.in_words(len(problem))
    if pvalue > DOUBT:
        return consistent(pvalue, tests, numbers[0], problem, "forecasts")
    clearest = clearest_slice(problem.pit, evidence.pit.pool, evidence.pit.slicings, DOUBT)
    groups = () if problem.is_ensemble else evidence.groups
    fault: Fault | None = None
    if evidence.pvalue_of_all_rows > DOUBT:
        fault = slice_fault(clearest, Finding.TOO_NARROW, Finding.TOO_WIDE)
    of_groups = clearest_slice(problem.pit, evidence.pit.pool, groups, DOUBT)
    fault = fault or fault_of_forecasts(_pit(problem), groups, of_groups)
    small = _is_small(problem, evidence, numbers[0])
    return alarmed(fault, pvalue, tests, numbers, clearest, "forecasts", small)


def fault_of_forecasts(pit: WeightedPIT, groups: Sequence[Slicing], clearest: FoundSlice | None = None) -> Fault:
    """Which way forecasts err, on average or in a group; and where it is clearest, the first row of the groups' table.

    >>> from scipy.special import ndtr
    >>> z = ndtri((np.arange(400) + 0.5) / 400)
    >>> fault_of_forecasts(WeightedPIT(ndtr(z - 1)), ()).words, fault_of_forecasts(WeightedPIT(ndtr(1.5 * z)), ()).words
    ('they are too high', 'they are too narrow')
    """
    lean = Lean.of(pit)
    local = _local(pit, groups)
    if local is not None:
        return local
    found = lean.ways()
    if not found:
        means = _means(pit, Finding.TOO_NARROW, "In all, ")
        return Fault(Finding.MIXED, "they are wrong in places, and right on average", means)
    return Fault(found[0], f"they are {' and '.join(found)}", _means(pit, found[0], "In all, "), _where(pit, clearest))


def _local(pit: WeightedPIT, groups: Sequence[Slicing]) -> Fault | None:
    """Forecasts that err in some groups and not in others, or in opposite ways."""
    for slicing in groups:
        leans = [Lean.of(pit.rows(rows)) for rows in slicing.rows]
        sizes = [max(abs(lean.height), abs(lean.width)) for lean in leans]
        worst = int(np.argmax(sizes))
        if sizes[worst] <= CLEAR:
            continue
        first = leans[worst].ways()[0]
        rest = np.concatenate([rows for i, rows in enumerate(slicing.rows) if i != worst])
        other = Lean.of(pit.rows(rest)).ways()
        if first in other or (len(other) > 1 and sizes[worst] < 2 * CLEAR):
            continue
        elsewhere = f"{other[0]} elsewhere" if other else "right elsewhere"
        words = f"they are {first} where the {slicing.name} is {slicing.groups[worst]}, and {elsewhere}"
        return Fault(Finding.LOCAL, words, _means(pit.rows(slicing.rows[worst]), first))
    return None


def _means(pit: WeightedPIT, way: Finding, start: str = "There ") -> str:
    """The two means that show it."""
    if pit.given:
        return _means_at_quantiles(pit, way, start)
    if way.is_of_height:
        above = percent(pit.mean(pit.values > 0.5))
        return f"{start}{above} of outcomes lie above the middle of their forecast, instead of 50 %"
    inside = percent(pit.mean(np.abs(pit.values - 0.5) <= 0.45))
    return f"{start}central 90 % intervals held {inside} of outcomes"


def _means_at_quantiles(pit: WeightedPIT, way: Finding, start: str) -> str:
    """The same at the quantile next to the middle, or between the outer ones."""
    if way.is_of_height:
        level = min(pit.given, key=lambda u: abs(u - 0.5))
        above = percent(1 - pit.below(level))
        return f"{start}{above} of outcomes lie above the {100 * level:g} % quantile, instead of {percent(1 - level)}"
    low, high = pit.given[0], pit.given[-1]
    inside = percent(pit.below(high) - pit.below(low))
    quantiles = f"the {100 * low:g} % and {100 * high:g} % quantiles"
    return f"{start}{inside} of outcomes lie between {quantiles}, instead of {percent(high - low)}"


def _where(pit: WeightedPIT, clearest: FoundSlice | None) -> tuple[str, ...]:
    """What happened in the group of the clearest evidence, where that goes one way."""
    if clearest is None:
        return ()
    part = pit.rows(clearest.rows)
    if not (ways := Lean.of(part).ways()):
        return ()
    means = f"{_means(part, ways[0], '')}; error {percent(clearest.error)}"
    return (f"Clearest where the {clearest.column} is {clearest.group}: {means}.",)


def _is_small(problem: ForecastProblem, evidence: ForecastEvidence, main: KeyNumber) -> bool:
    """Whether PIT values are even but for a few points, overall, in every group and in every slice."""
    pit = _pit(problem)
    lean, noise = Lean.of(pit), 2 / np.sqrt(pit.size)
    if abs(lean.shift) + noise > LITTLE or abs(lean.scale - 1) + noise > LITTLE or main.value + noise > LITTLE:
        return False
    excess = [evidence.pit.pool.excess(key) for key in (*evidence.pit.classes, *evidence.pit.slices)]
    return bool(np.concatenate([[0.0], *excess]).max() <= LITTLE) and not evidence.coordinates


def _pit(problem: ForecastProblem) -> WeightedPIT:
    if problem.fan is None:
        return WeightedPIT(problem.pit.targets, problem.weights, inflation=problem.inflation)
    ends = np.stack(problem.fan.levels_around(to_numpy(problem.pit.targets)), axis=1)
    return WeightedPIT(ends, problem.weights, tuple(problem.fan.levels.tolist()), problem.inflation)


def _scores_between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and mean square of a standard normal variable between two levels."""
    a, b = ndtri(low), ndtri(high)
    at_a, at_b = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) for z in (a, b))
    weighted = np.where(low > 0, a, 0.0) * at_a - np.where(high < 1, b, 0.0) * at_b
    return (at_a - at_b) / (high - low), 1 + weighted / (high - low)
