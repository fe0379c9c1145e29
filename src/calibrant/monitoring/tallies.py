"""What is kept of a stream for its picture: sums over rows, from which windows of any width can be put together."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.coordinates import coordinate, dimensions
from calibrant.lenses import PositiveClass, TopLabel
from calibrant.monitoring.bets import EDGES, Bets
from calibrant.monitoring.class_bets import ClassBets, LabelBets
from calibrant.monitoring.level_bets import FURTHEST, LevelBets
from calibrant.monitoring.levels import levels_by_row

CUTS = (*(edge for edge in EDGES if edge < 0.4), 0.4, 0.5, 0.6, *(edge for edge in EDGES if edge > 0.6))
"""Ends of the parts of [0, 1] that claims are kept in: tenths, and finer ones at both ends."""

LEVELS = 20
"""Equal parts that levels are kept in."""


class EventSums(NamedTuple):
    """Sums over rows, ``(..., groups, cells)``: rows, claims, outcomes, and the variance and third cumulant of the outcomes."""

    rows: np.ndarray
    claimed: np.ndarray
    happened: np.ndarray
    noise: np.ndarray
    skew: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Claims less outcomes."""
        return self.claimed - self.happened

    def over(self, axis: int | tuple[int, ...]) -> Self:
        """Sums along an axis: of spans, or of cells."""
        return type(self)(*(part.sum(axis=axis) for part in self))

    def at(self, rows: slice | np.ndarray | int | tuple[slice | int, ...]) -> Self:
        """Some spans, groups or cells."""
        return type(self)(*(part[rows] for part in self))


class LevelSums(NamedTuple):
    """Sums over rows, ``(..., groups)``: rows, normal scores of levels, their squares; and ``counts`` of levels in equal parts,
    ``(..., groups, parts)``."""

    rows: np.ndarray
    scores: np.ndarray
    squares: np.ndarray
    counts: np.ndarray

    def over(self, axis: int) -> Self:
        """Sums along an axis."""
        return type(self)(*(part.sum(axis=axis) for part in self))

    def at(self, rows: slice | np.ndarray) -> Self:
        """Some spans."""
        return type(self)(*(part[rows] for part in self))


class Tally(ABC):
    """What is summed of rows of one kind, as a flat vector of ``size`` numbers; subclasses are frozen dataclasses.

    ``groups`` are watched by themselves: there is one, or one a label or a coordinate.
    """

    groups: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers."""

    @abstractmethod
    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of some rows, ``(size,)``; ``seen`` rows came before."""


@dataclass(frozen=True)
class EventTally(Tally):
    """Of events by their claims: the positive class, the favoured one of several, or every label.

    Of several classes, each is summed by itself too, whatever was claimed.
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Five sums a part of a group, and five a class."""
        return 5 * (len(self.groups) * (len(CUTS) + 1) + len(self.classes))

    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """By part, group by group; then by class."""
        events = self._events(targets, predictions)
        parts = np.stack([_by_part(*event) for event in events], axis=1)
        if not self.classes:
            return parts.ravel()
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        each = _moments(probs, targets[:, None] == np.arange(probs.shape[1])).sum(axis=1)
        return np.concatenate([parts.ravel(), each.ravel()])

    def _events(self, targets: np.ndarray, predictions: Distribution) -> list[tuple[np.ndarray, np.ndarray]]:
        """The claim and the outcome of every row, group by group."""
        if targets.ndim == 2:
            probs = to_numpy(predictions.probs)  # type: ignore[attr-defined]
            return [*zip(probs.T.astype(np.float64), targets.T == 1, strict=True)]
        event = (TopLabel() if self.classes else PositiveClass()).events(predictions)[0]
        return [(event.probability.astype(np.float64), event.happened(targets))]

    def by_part(self, values: np.ndarray) -> EventSums:
        """The sums in flat vectors ``(..., size)``, as ``(..., groups, parts)``."""
        end = self.size - 5 * len(self.classes)
        shaped = values[..., :end].reshape(*values.shape[:-1], 5, len(self.groups), len(CUTS) + 1)
        return EventSums(*np.moveaxis(shaped, -3, 0))

    def by_class(self, values: np.ndarray) -> EventSums:
        """The sums of every class, as ``(..., classes)``."""
        end = self.size - 5 * len(self.classes)
        shaped = values[..., end:].reshape(*values.shape[:-1], 5, len(self.classes))
        return EventSums(*np.moveaxis(shaped, -2, 0))


@dataclass(frozen=True)
class LevelTally(Tally):
    """Of the levels of outcomes in their forecasts; of vectors, of every coordinate."""

    groups: tuple[str, ...]
    seed: int = 0

    @property
    def size(self) -> int:
        """Rows, scores, squares and counts a group."""
        return len(self.groups) * (3 + LEVELS)

    def sums(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Group by group, of the levels that bets see."""
        if not dimensions(predictions):
            return _of_levels(levels_by_row(targets, predictions, seen, [self.seed]))
        parts = [
            levels_by_row(targets[:, i], coordinate(predictions, i), seen, [self.seed, i])
            for i in range(len(self.groups))
        ]
        return np.concatenate([_of_levels(part) for part in parts])

    def by_group(self, values: np.ndarray) -> LevelSums:
        """The sums in flat vectors ``(..., size)``, as ``(..., groups)`` and counts as ``(..., groups, parts)``."""
        shaped = values.reshape(*values.shape[:-1], len(self.groups), 3 + LEVELS)
        return LevelSums(shaped[..., 0], shaped[..., 1], shaped[..., 2], shaped[..., 3:])


def tally_of(bets: Bets) -> Tally:
    """What is summed beside these bets."""
    if isinstance(bets, LevelBets):
        return LevelTally(tuple(f"coordinate {i}" for i in range(bets.d)) or ("forecasts",), bets.seed)
    if isinstance(bets, LabelBets):
        return EventTally(bets.names)
    if isinstance(bets, ClassBets):
        return EventTally(("confidences",), bets.names)
    return EventTally(("probabilities",))


def _moments(p: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """What is summed of each claim: five numbers, along a new first axis."""
    noise = p * (1 - p)
    return np.stack([np.ones_like(p), p, happened.astype(np.float64), noise, noise * (1 - 2 * p)])


def _by_part(p: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """Sums in parts of the range of claims, ``(5, parts)``."""
    part = np.searchsorted(np.array(CUTS), p, side="left")
    return np.stack([np.bincount(part, weights, len(CUTS) + 1) for weights in _moments(p, happened)])


def _of_levels(levels: np.ndarray) -> np.ndarray:
    """Rows, scores, squares, and counts in equal parts."""
    z = np.clip(ndtri(levels), -FURTHEST, FURTHEST)
    part = np.minimum((levels * LEVELS).astype(np.intp), LEVELS - 1)
    return np.concatenate([[len(z), z.sum(), (z**2).sum()], np.bincount(part, minlength=LEVELS)])
