"""The verdict on forecasts in words: whether to believe them, which way they err, and where."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.quantiles import SAME_LEVEL
from calibrant.estimators.quantile_cells import judged_at
from calibrant.reports.forecast_evidence import ForecastEvidence
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.model import KeyNumber, Verdict
from calibrant.reports.slices import Slicing, clearest_slice
from calibrant.reports.verdict import DOUBT, Fault, alarmed, consistent, slice_fault
from calibrant.results import percent

FURTHEST = 1e-9
"""Levels nearer to 0 or 1 count as this far out: six standard deviations."""

TELLING, CLEAR = 2.0, 3.0
"""Standard errors from which the way of erring is named, and from which a second one is."""

LITTLE = 0.02
"""Shares of a standard deviation, or of probability, up to which an error is small."""


class Levels(NamedTuple):
    """Levels of outcomes in their forecasts, and how much each counts.

    Of quantile forecasts ``values`` are the least and the largest level that each may have, ``(n, 2)``, and ``given`` the levels
    of the quantiles.
    """

    values: np.ndarray
    weights: np.ndarray | None = None
    given: tuple[float, ...] = ()

    def rows(self, index: np.ndarray) -> "Levels":
        """Some of them."""
        return Levels(self.values[index], None if self.weights is None else self.weights[index], self.given)

    @property
    def size(self) -> float:
        """How many of equal weight tell as much."""
        return len(self.values) if self.weights is None else float(self.weights.sum() ** 2 / (self.weights**2).sum())

    def mean(self, of: np.ndarray) -> float:
        """The weighted mean of a number a row."""
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
    def of(cls, levels: Levels) -> "Lean":
        """From levels, by mean and variance of their normal scores; levels themselves crowd at their ends."""
        if levels.given:
            return cls._of_cells(levels)
        n, z = levels.size, ndtri(np.clip(levels.values, FURTHEST, 1 - FURTHEST))
        shift = levels.mean(z)
        variance = levels.mean((z - shift) ** 2)
        scale = float(np.sqrt(variance))
        # outcomes that are spread too far shift more by chance
        return cls(shift, scale, shift / max(scale, 0.1) * np.sqrt(n), (variance - 1) * np.sqrt(n / 2))

    @classmethod
    def _of_cells(cls, levels: Levels) -> "Lean":
        """From the quantiles that outcomes lie between, by mean and square of normal scores expected there."""
        ends = np.concatenate([[0.0], levels.given, [1.0]])
        chance, (z0, square0) = np.diff(ends), _scores_between(ends[:-1], ends[1:])
        z, square = _scores_between(levels.values[:, 0], levels.values[:, 1])
        of_mean, of_square = float(chance @ z0**2), float(chance @ (square0 - 1) ** 2)
        mean = levels.mean(z)
        shift = mean / of_mean
        excess = levels.mean(square) - 1 - min(shift**2, 1.0) * of_square
        spread = max(float(np.sqrt(levels.mean((z - mean) ** 2))), 0.1 * np.sqrt(of_mean))
        scale = float(np.exp(np.clip(excess / max(of_square, 1e-12), -5, 5)))
        root = np.sqrt(levels.size)
        return cls(shift, scale, mean / spread * root, excess / np.sqrt(max(of_square, 1e-12)) * root)

    def words(self) -> list[str]:
        """The ways of erring, the clearest first."""
        sides = [
            (abs(self.height), "too low" if self.height > 0 else "too high"),
            (abs(self.width), "too narrow" if self.width > 0 else "too wide"),
        ]
        (first, name), (second, other) = sorted(sides, reverse=True)
        found = [name] if first > TELLING else []
        return [*found, other] if found and second > CLEAR else found


def judge_forecasts(problem: ForecastProblem, evidence: ForecastEvidence, numbers: Sequence[KeyNumber]) -> Verdict:
    """The verdict from the aggregated exact tests, and the fault it is due to."""
    verdict = _judged(problem, evidence, numbers)
    if problem.fan is None:
        return verdict
    return replace(verdict, evidence=(*verdict.evidence, f"{judged_at(problem.fan).capitalize()}."))


def _judged(problem: ForecastProblem, evidence: ForecastEvidence, numbers: Sequence[KeyNumber]) -> Verdict:
    pvalue, n = evidence.pvalue, len(problem)
    tests = evidence.in_words(n)
    if pvalue > DOUBT:
        return consistent(pvalue, tests, numbers[0], n, "forecasts")
    clearest = clearest_slice(problem.levels, evidence.levels.pool, evidence.levels.slicings, DOUBT)
    groups = () if problem.is_ensemble else evidence.groups
    fault: Fault | None = None
    if evidence.pvalue_of_all_rows > DOUBT:
        fault = slice_fault(clearest, "too narrow", "too wide")
    fault = fault or fault_of_forecasts(_levels(problem), groups)
    small = _is_small(problem, evidence, numbers[0])
    return alarmed(fault, pvalue, tests, numbers, clearest, "forecasts", small)


def fault_of_forecasts(levels: Levels, groups: Sequence[Slicing]) -> Fault:
    """Which way forecasts err, on average or in a group.

    >>> from scipy.special import ndtr
    >>> z = ndtri((np.arange(400) + 0.5) / 400)
    >>> fault_of_forecasts(Levels(ndtr(z - 1)), ()).words, fault_of_forecasts(Levels(ndtr(1.5 * z)), ()).words
    ('they are too high', 'they are too narrow')
    """
    lean = Lean.of(levels)
    local = _local(levels, groups)
    if local is not None:
        return local
    found = lean.words()
    if not found:
        return Fault(
            "mixed", "they are wrong in places, and right on average", _means(levels, "too narrow", "In all, ")
        )
    return Fault(
        found[0], f"they are {' and '.join(found)}", _means(levels, found[0], "In all, "), _where(levels, groups)
    )


def _local(levels: Levels, groups: Sequence[Slicing]) -> Fault | None:
    """Forecasts that err in some groups and not in others, or in opposite ways."""
    for slicing in groups:
        leans = [Lean.of(levels.rows(rows)) for rows in slicing.rows]
        sizes = [max(abs(lean.height), abs(lean.width)) for lean in leans]
        worst = int(np.argmax(sizes))
        if sizes[worst] <= CLEAR:
            continue
        first = leans[worst].words()[0]
        rest = np.concatenate([rows for i, rows in enumerate(slicing.rows) if i != worst])
        other = Lean.of(levels.rows(rest)).words()
        if first in other or (len(other) > 1 and sizes[worst] < 2 * CLEAR):
            continue
        elsewhere = f"{other[0]} elsewhere" if other else "right elsewhere"
        words = f"they are {first} where the {slicing.name} is {slicing.groups[worst]}, and {elsewhere}"
        return Fault("local", words, _means(levels.rows(slicing.rows[worst]), first))
    return None


def _means(levels: Levels, word: str, start: str = "There ") -> str:
    """The two means that show it."""
    if levels.given:
        return _means_at_quantiles(levels, word, start)
    if word in ("too low", "too high"):
        above = percent(levels.mean(levels.values > 0.5))
        return f"{start}{above} of outcomes lie above the middle of their forecast, instead of 50 %"
    inside = percent(levels.mean(np.abs(levels.values - 0.5) <= 0.45))
    return f"{start}central 90 % intervals held {inside} of outcomes"


def _means_at_quantiles(levels: Levels, word: str, start: str) -> str:
    """The same at the quantile next to the middle, or between the outer ones."""
    if word in ("too low", "too high"):
        level = min(levels.given, key=lambda u: abs(u - 0.5))
        above = percent(1 - levels.below(level))
        return f"{start}{above} of outcomes lie above the {100 * level:g} % quantile, instead of {percent(1 - level)}"
    low, high = levels.given[0], levels.given[-1]
    inside = percent(levels.below(high) - levels.below(low))
    quantiles = f"the {100 * low:g} % and {100 * high:g} % quantiles"
    return f"{start}{inside} of outcomes lie between {quantiles}, instead of {percent(high - low)}"


def _where(levels: Levels, groups: Sequence[Slicing]) -> tuple[str, ...]:
    """The group whose outcomes are furthest from even."""
    found = []
    for slicing in groups:
        for name, rows in zip(slicing.groups, slicing.rows, strict=True):
            lean = Lean.of(levels.rows(rows))
            found.append((max(abs(lean.height), abs(lean.width)), slicing.name, name, lean, rows))
    if not found:
        return ()
    size, column, name, lean, rows = max(found, key=lambda each: each[0])
    if size <= CLEAR:
        return ()
    return (f"Clearest where the {column} is {name}: {_means(levels.rows(rows), lean.words()[0], '')}.",)


def _is_small(problem: ForecastProblem, evidence: ForecastEvidence, main: KeyNumber) -> bool:
    """Whether levels are even but for a few points, overall, in every group and in every slice."""
    levels = _levels(problem)
    lean, noise = Lean.of(levels), 2 / np.sqrt(levels.size)
    if abs(lean.shift) + noise > LITTLE or abs(lean.scale - 1) + noise > LITTLE or main.value + noise > LITTLE:
        return False
    excess = [evidence.levels.pool.excess(key) for key in (*evidence.levels.classes, *evidence.levels.slices)]
    return bool(np.concatenate([[0.0], *excess]).max() <= LITTLE) and not evidence.coordinates


def _levels(problem: ForecastProblem) -> Levels:
    if problem.fan is None:
        return Levels(problem.levels.targets, problem.weights)
    ends = np.stack(problem.fan.levels_around(to_numpy(problem.levels.targets)), axis=1)
    return Levels(ends, problem.weights, tuple(problem.fan.levels.tolist()))


def _scores_between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and mean square of a standard normal variable between two levels."""
    a, b = ndtri(low), ndtri(high)
    at_a, at_b = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) for z in (a, b))
    weighted = np.where(low > 0, a, 0.0) * at_a - np.where(high < 1, b, 0.0) * at_b
    return (at_a - at_b) / (high - low), 1 + weighted / (high - low)
