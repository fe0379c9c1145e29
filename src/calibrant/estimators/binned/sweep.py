"""As many bins as keep observed frequencies in order."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from calibrant._validate import InputError, check_one_of
from calibrant.estimators.base import Statistic
from calibrant.estimators.binned.binning import (
    Binning,
    Bins,
    EqualMass,
    EqualWidth,
    Ordered,
    Ties,
    lp_norm,
    rows_below,
    unit_of,
    with_ends,
)
from calibrant.lenses.class_lenses import Event

SLACK = 1e-12
"""Frequencies of rows with fractional weights are rounded: how much one may lie below the one before."""


@dataclass(frozen=True)
class Sweep(Binning):
    """The largest number of bins, of equal mass or width, up to which observed frequencies never decrease.

    Numbers of bins are tried from 2 on; the first at which the frequency falls from one bin to the next ends the sweep,
    and the one before is taken. A calibrated model's frequencies rise with the score, so bins are made finer until noise
    shows: of the usual choices this has the least bias. Scores that are worse than none, whose frequencies fall, end it at
    one bin, which only compares means; the result says where it ended. Roelofs et al. (2022).

    >>> from calibrant import ECE
    >>> error = ECE(bins=Sweep(), norm=2)([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    >>> error.table["upper"]
    array([0.2, 0.6, 0.7, 1. ])
    """

    by: Literal["mass", "width"] = "mass"
    ties: Ties = "together"

    is_adaptive = True

    def __post_init__(self) -> None:
        check_one_of(self.by, ("mass", "width"), "by")
        check_one_of(self.ties, ("together", "split"), "ties")
        if self.by == "width" and self.ties == "split":
            raise InputError("ties='split' is for bins of equal mass: equal scores have equal edges")

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """The bins where the sweep ends."""
        assert observed is not None
        ordered = self.ordered(scores, weights)
        count = int(self.n_bins(ordered, ordered.observed(observed[None]))[0])
        if self.by == "width":
            return EqualWidth(count).bins(scores)
        if self.ties == "split":
            return EqualMass(count, "split").bins(scores)
        cuts = self.rule(ordered).cuts(count, np.arange(1, count))
        return Bins(with_ends(ordered.scores[np.unique(cuts[cuts < len(ordered)]) - 1]))

    def notes(self, made: list[Bins]) -> tuple[str, ...]:
        """Where the sweep ended."""
        fewest, most = min(map(len, made)), max(map(len, made))
        said = f"the sweep ended at {fewest if fewest == most else f'{fewest} to {most}'} bin{'s' if most > 1 else ''}"
        return (said if fewest > 1 else f"{said}: where frequencies fall at once, one bin compares means alone",)

    def statistic(self, events: tuple[Event, ...], weights: np.ndarray | None, norm: float) -> Statistic:
        """The binned error as a function of resampled targets: rows are sorted once."""
        return _SweptErrors(self, norm, tuple((e, self.ordered(e.probability, weights)) for e in events))

    def ordered(self, scores: np.ndarray, weights: np.ndarray | None) -> Ordered:
        """The rows in order."""
        if self.ties == "split" and weights is not None:
            raise InputError("ties='split' deals out whole rows: leave out sample_weight, or use ties='together'")
        return Ordered.of(scores, weights, self.ties)

    def rule(self, ordered: Ordered) -> "_Cutting":
        """How candidates are cut."""
        if self.by == "width":
            return _Width(ordered.scores)
        return _Ranks(len(ordered)) if self.ties == "split" else _Mass(ordered.weight, unit_of(ordered.weights))

    def n_bins(self, ordered: Ordered, observed: np.ndarray) -> np.ndarray:
        """Where the sweep ends for each row of running totals ``(m, scores + 1)`` of what happened."""
        rule, n = self.rule(ordered), len(ordered.order)
        slack = 0.0 if ordered.is_whole else SLACK
        alive = np.flatnonzero(_falls(observed, ordered.weight, slack))  # else every grouping of scores is in order
        result = np.full(len(observed), n)
        result[alive] = 1
        low, high = _mixed(ordered.weight, observed)
        for count in range(2, n + 1):
            if not len(alive):
                break
            inner = rule.cuts(count, np.arange(*rule.span(count, low, high)))
            cuts = np.unique(np.concatenate([[0], inner, [len(ordered)]]))
            alive = alive[~_falls(observed[alive[:, None], cuts], ordered.weight[cuts], slack)]
            result[alive] = count
        return result


def _falls(observed: np.ndarray, weight: np.ndarray, slack: float) -> np.ndarray:
    """Whether the frequency between neighbouring cuts ever falls, in each row."""
    frequency = np.diff(observed, axis=1) / np.diff(weight)
    return np.any(frequency[:, 1:] < frequency[:, :-1] - slack, axis=1)


def _mixed(weight: np.ndarray, observed: np.ndarray) -> tuple[int, int]:
    """Between which positions frequencies may be in disorder: below nothing happened, above everything did."""
    some = observed[:, 1:] > observed[:, :-1]
    lack = np.diff(observed, axis=1) < np.diff(weight)
    first, last = np.flatnonzero(some.any(axis=0)), np.flatnonzero(lack.any(axis=0))
    return (int(first[0]) if len(first) else len(weight) - 1), (int(last[-1]) + 1 if len(last) else 0)


@dataclass(frozen=True, eq=False)
class _SweptErrors:
    """The binned error as a function of resampled targets, each with the bins of its own sweep."""

    sweep: Sweep
    norm: float
    events: tuple[tuple[Event, Ordered], ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The error of each resample, ``(m,)``."""
        errors = np.stack([self._errors(e, o, targets) for e, o in self.events], axis=1)
        return lp_norm(errors, np.ones(errors.shape[1]), self.norm)

    def _errors(self, event: Event, ordered: Ordered, targets: np.ndarray) -> np.ndarray:
        observed = ordered.observed(event.observed(targets))
        counts, rule = self.sweep.n_bins(ordered, observed), self.sweep.rule(ordered)
        errors = np.empty(len(observed))
        for count in np.unique(counts).tolist():
            inner = rule.cuts(count, np.arange(1, count))
            cuts = np.unique(np.concatenate([[0], inner, [len(ordered)]]))
            rows, weight = counts == count, np.diff(ordered.weight[cuts])
            gap = (np.diff(ordered.predicted[cuts]) - np.diff(observed[rows][:, cuts], axis=1)) / weight
            errors[rows] = lp_norm(gap, weight, self.norm)
        return errors


class _Cutting(Protocol):
    """Cuts of so many bins as positions among the ordered scores."""

    def cuts(self, n_bins: int, j: np.ndarray) -> np.ndarray:
        """The j-th cuts."""
        ...

    def span(self, n_bins: int, low: int, high: int) -> tuple[int, int]:
        """A range of cuts from one at or below position low to one at or above position high, where there are any."""
        ...


@dataclass(frozen=True, eq=False)
class _Mass:
    weight: np.ndarray
    unit: float | None

    def _below(self, n_bins: int, j: np.ndarray) -> np.ndarray:
        return rows_below(j, self.weight[-1], n_bins, unit=self.unit) * (1 - 1e-12)

    def cuts(self, n_bins: int, j: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.weight, self._below(n_bins, j))

    def span(self, n_bins: int, low: int, high: int) -> tuple[int, int]:
        ends = self.weight[low], self.weight[high]
        return _range(n_bins, *ends, lambda j: float(self._below(n_bins, np.asarray(j))))


@dataclass(frozen=True, eq=False)
class _Ranks:
    n: int

    def cuts(self, n_bins: int, j: np.ndarray) -> np.ndarray:
        return -(-j * self.n // n_bins)

    def span(self, n_bins: int, low: int, high: int) -> tuple[int, int]:
        return _range(n_bins, low, high, lambda j: float(self.cuts(n_bins, np.asarray(j))))


@dataclass(frozen=True, eq=False)
class _Width:
    scores: np.ndarray

    def cuts(self, n_bins: int, j: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.scores, (j / n_bins).astype(self.scores.dtype), side="right")

    def span(self, n_bins: int, low: int, high: int) -> tuple[int, int]:
        return _range(n_bins, low, high, lambda j: float(self.cuts(n_bins, np.asarray(j))))


def _range(n_bins: int, low: float, high: float, value: Callable[[int], float]) -> tuple[int, int]:
    """The cuts from the last at or below ``low`` to the first at or above ``high``, by bisection."""
    first = max(bisect_right(range(1, n_bins), low, key=value), 1)
    last = min(bisect_left(range(1, n_bins), high, key=value) + 1, n_bins - 1)
    return first, last + 1
