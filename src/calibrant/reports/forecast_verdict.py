"""The verdict on forecasts in words: whether to believe them, which way they err, and where."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

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
    """Levels of outcomes in their forecasts, and how much each counts."""

    values: np.ndarray
    weights: np.ndarray | None = None

    def rows(self, index: np.ndarray) -> "Levels":
        """Some of them."""
        return Levels(self.values[index], None if self.weights is None else self.weights[index])

    @property
    def size(self) -> float:
        """How many of equal weight tell as much."""
        return len(self.values) if self.weights is None else float(self.weights.sum() ** 2 / (self.weights**2).sum())

    def mean(self, of: np.ndarray) -> float:
        """The weighted mean of a number a row."""
        return float(np.average(of, weights=self.weights))


class Lean(NamedTuple):
    """How high and how wide outcomes lie in their forecasts: in standard deviations, and in standard errors."""

    shift: float
    scale: float
    height: float
    width: float

    @classmethod
    def of(cls, levels: Levels) -> "Lean":
        """From levels, by mean and variance of their normal scores; levels themselves crowd at their ends."""
        n, z = levels.size, ndtri(np.clip(levels.values, FURTHEST, 1 - FURTHEST))
        shift = levels.mean(z)
        variance = levels.mean((z - shift) ** 2)
        scale = float(np.sqrt(variance))
        # outcomes that are spread too far shift more by chance
        return cls(shift, scale, shift / max(scale, 0.1) * np.sqrt(n), (variance - 1) * np.sqrt(n / 2))

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
    if word in ("too low", "too high"):
        above = percent(levels.mean(levels.values > 0.5))
        return f"{start}{above} of outcomes lie above the middle of their forecast, instead of 50 %"
    inside = percent(levels.mean(np.abs(levels.values - 0.5) <= 0.45))
    return f"{start}central 90 % intervals held {inside} of outcomes"


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
    return Levels(problem.levels.targets, problem.weights)
