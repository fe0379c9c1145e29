"""Bets against calibration: ways in which predictions may be wrong; those on classes and on labels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.lenses.class_lenses import PositiveClass, TopLabel
from calibrant.results import Finding

TILTS = (0.1, 0.3, 1.0)
"""By how much log odds, or means in standard deviations, are taken to be off."""

POWERS = (0.5, 0.8, 1.25, 2.0)
"""Factors by which log odds are taken to be off; below 1, predictions are too sure."""

LOCAL_TILTS = (0.3, 1.0)
"""By how much log odds are taken to be off in one part of the range."""

EDGES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Ends of the parts of [0, 1] in which probabilities may be wrong by themselves."""


@dataclass(frozen=True)
class Defect:
    """What may be wrong with predictions: what a verdict calls it, which way it is, of what, and where.

    ``member`` is the number of the class, label or coordinate, ``None`` where all are meant; ``part`` that of a part of the range.
    The way says what is wrong with the claim: outcomes that fall into a part too often were claimed too low there.
    """

    finding: Finding
    way: Finding
    member: int | None = None
    part: int | None = None


class Bet(NamedTuple):
    """What a bet says of the predictions, and its share of the capital."""

    defect: Defect
    share: float


class Bets(ABC):
    """Bets on predictions of one kind; subclasses are frozen dataclasses."""

    kind: str

    @abstractmethod
    def bets(self) -> tuple[Bet, ...]:
        """All of them; their shares sum to one."""

    @abstractmethod
    def words(self, defect: Defect) -> str:
        """What one of these bets says, as a part of a sentence."""

    @abstractmethod
    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """How much likelier each bet makes what happened, ``(rows, bets)``, on the log scale.

        ``seen`` rows came before: what is drawn at random depends on the row, and not on how rows come together.
        """

    def __str__(self) -> str:
        """What they are on, and of what names: at most nine of them."""
        names = getattr(self, "names", ())
        more = f" and {len(names) - 9:,} more" if len(names) > 9 else ""
        return f"{self.kind} predictions{' of ' if names else ''}{', '.join(names[:9])}{more}"

    @property
    def shares(self) -> np.ndarray:
        """The part of the capital that is on each."""
        return np.array([bet.share for bet in self.bets()])


def shared(groups: Sequence[Sequence[Defect]]) -> tuple[Bet, ...]:
    """Bets whose groups have equal parts of the capital, divided evenly within each.

    >>> [bet.share for bet in shared([overall(HEIGHTS[:2]), overall(SURENESS[:1])])]
    [0.25, 0.25, 0.5]
    """
    return tuple(Bet(defect, 1 / len(groups) / len(group)) for group in groups for defect in group)


def tilted(probability: np.ndarray, observed: np.ndarray, tilt: np.ndarray | float) -> np.ndarray:
    """The log likelihood ratio of an event whose log odds are off by ``tilt``.

    ``y d - log(1 + p (e^d - 1))``. What had probability zero is evidence without end, for tilts towards it; for others any
    finite value will do.

    >>> tilted(np.array([0.5, 0.0]), np.array([True, True]), 1.0).round(3)
    array([0.38,  inf])
    """
    ratio = observed * tilt - np.log1p(probability * np.expm1(tilt))
    impossible = np.where(observed, probability == 0, probability == 1)
    return np.where(impossible & (observed == (tilt > 0)), np.inf, ratio)


def sharpened(probability: np.ndarray, observed: np.ndarray, power: float) -> np.ndarray:
    """The log likelihood ratio of an event whose log odds are off by a factor: two classes tempered.

    What had probability zero is evidence without end that the model is too sure, and none that it is too timid.

    >>> sharpened(np.array([0.9, 0.5]), np.array([False, True]), 0.5).round(3)
    array([ 0.916, -0.   ])
    """
    p, rest = probability, 1 - probability
    with np.errstate(divide="ignore"):
        ratio = (power - 1) * np.log(np.where(observed, p, rest)) - np.log(p**power + rest**power)
    return np.where(np.where(observed, p, rest) == 0, np.inf if power < 1 else 0.0, ratio)


@dataclass(frozen=True)
class LocalTilts:
    """Tilts in one part of the range of probabilities each; the others leave a row alone."""

    edges: tuple[float, ...]

    @property
    def tilts(self) -> list[tuple[int, float]]:
        """Part and tilt of every bet."""
        return [(part, sign * tilt) for part in range(len(self.edges) + 1) for tilt in LOCAL_TILTS for sign in (1, -1)]

    def defects(self) -> list[Defect]:
        """What each says, in the order of :attr:`tilts`."""
        return [Defect(Finding.LOCAL, height(tilt), part=part) for part, tilt in self.tilts]

    def place(self, part: int) -> str:
        """A part of the range in words.

        >>> LocalTilts((0.2, 0.5)).place(1)
        'between 20 % and 50 %'
        """
        ends = [0.0, *self.edges, 1.0]
        return f"between {100 * ends[part]:g} % and {100 * ends[part + 1]:g} %"

    def log_ratios(self, probability: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """``(rows, bets)``."""
        part = np.searchsorted(np.array(self.edges), probability, side="left")
        each = {tilt: tilted(probability, observed, tilt) for tilt in {tilt for _, tilt in self.tilts}}
        return np.stack([np.where(part == at, each[tilt], 0.0) for at, tilt in self.tilts], axis=1)


def columns(values: Sequence[float], of: Callable[[float], np.ndarray]) -> np.ndarray:
    """A column for each value."""
    return np.stack([of(value) for value in values], axis=1)


def signed(tilts: Sequence[float]) -> list[float]:
    """Each up and down.

    >>> signed((0.1, 1.0))
    [0.1, -0.1, 1.0, -1.0]
    """
    return [sign * tilt for tilt in tilts for sign in (1, -1)]


def height(tilt: float) -> Finding:
    """What a tilt says of the claim: too low, where more happens."""
    return Finding.TOO_LOW if tilt > 0 else Finding.TOO_HIGH


HEIGHTS = tuple(height(tilt) for tilt in signed(TILTS))
"""What tilts say."""

SURENESS = tuple(Finding.OVER_CONFIDENT if power < 1 else Finding.UNDER_CONFIDENT for power in POWERS)
"""What powers say."""


def overall(ways: Sequence[Finding], member: int | None = None) -> list[Defect]:
    """Each way, over the whole range."""
    return [Defect(way, way, member) for way in ways]


CLASS_TILT = 0.5
"""By how much the log odds of a single class are taken to be off."""


@dataclass(frozen=True)
class EventBets(Bets):
    """On the probability of one event: too high or low, too sure or timid, or wrong in a part of its range.

    >>> len(EventBets().bets())
    66
    """

    kind = "binary"

    @property
    def parts(self) -> LocalTilts:
        """Where it may be wrong."""
        return LocalTilts(EDGES)

    def bets(self) -> tuple[Bet, ...]:
        """Level, sureness, parts."""
        return shared([overall(HEIGHTS), overall(SURENESS), self.parts.defects()])

    def words(self, defect: Defect) -> str:
        """Of the probability, or of the model."""
        return _words("probabilities", defect, self.parts)

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the positive class."""
        event = PositiveClass().events(predictions)[0]
        p, observed = event.probability.astype(np.float64), event.observed(targets)
        return np.concatenate(
            [
                columns(signed(TILTS), lambda tilt: tilted(p, observed, tilt)),
                columns(POWERS, lambda power: sharpened(p, observed, power)),
                self.parts.log_ratios(p, observed),
            ],
            axis=1,
        )


@dataclass(frozen=True)
class ClassBets(Bets):
    """On all classes at once: the confidence, the temperature, every single class, and parts of the confidence's range."""

    names: tuple[str, ...]

    kind = "multi-class"

    @property
    def parts(self) -> LocalTilts:
        """Where the confidence may be wrong; it is never below an even share."""
        return LocalTilts(tuple(edge for edge in EDGES if edge > 1 / len(self.names)))

    def bets(self) -> tuple[Bet, ...]:
        """Confidence, temperature, classes, parts."""
        members, ways = range(len(self.names)), [height(tilt) for tilt in signed([CLASS_TILT])]
        classes = [Defect(Finding.CLASS, way, member) for way in ways for member in members]
        return shared([overall(HEIGHTS), overall(SURENESS), classes, self.parts.defects()])

    def words(self, defect: Defect) -> str:
        """Of the confidence, of the model, or of the probability of a class."""
        if defect.member is not None:
            return f"probabilities of {self.names[defect.member]} are {defect.way}"
        return _words("confidences", defect, self.parts)

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the favoured class, of the tempered probabilities, and of each class against the rest."""
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        top = TopLabel().events(predictions)[0]
        confidence, right = top.probability.astype(np.float64), top.observed(targets)
        is_class = targets[:, None] == np.arange(probs.shape[1])
        return np.concatenate(
            [
                columns(signed(TILTS), lambda tilt: tilted(confidence, right, tilt)),
                columns(POWERS, lambda power: _tempered(probs, targets, power)),
                *(tilted(probs, is_class, tilt) for tilt in signed([CLASS_TILT])),
                self.parts.log_ratios(confidence, right),
            ],
            axis=1,
        )


def _words(noun: str, defect: Defect, parts: LocalTilts) -> str:
    """What is said of one probability per row."""
    if defect.part is not None:
        return f"{noun} {parts.place(defect.part)} are {defect.way}"
    return f"the model is {defect.way}" if defect.way.is_of_confidence else f"{noun} are {defect.way}"


def _tempered(probs: np.ndarray, targets: np.ndarray, power: float) -> np.ndarray:
    """The log likelihood ratio of ``p^power``, made to sum to one."""
    chosen = probs[np.arange(len(probs)), targets]
    with np.errstate(divide="ignore"):
        ratio = (power - 1) * np.log(chosen) - np.log((probs**power).sum(axis=1))
    return np.where(chosen == 0, np.inf if power < 1 else 0.0, ratio)


@dataclass(frozen=True)
class LabelBets(Bets):
    """On each of several labels: too high or low, too sure or timid."""

    names: tuple[str, ...]

    kind = "multi-label"

    def bets(self) -> tuple[Bet, ...]:
        """Level and sureness, label by label."""
        ways, members = (*HEIGHTS, *SURENESS), range(len(self.names))
        return shared([[Defect(Finding.LABEL, way, member) for way in ways] for member in members])

    def words(self, defect: Defect) -> str:
        """Of the probability of a label, or of the model about it."""
        assert defect.member is not None
        name = self.names[defect.member]
        if defect.way.is_of_confidence:
            return f"the model is {defect.way} about {name}"
        return f"probabilities of {name} are {defect.way}"

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Labels of a row may depend on each other: each has bets of its own, which are never multiplied."""
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        parts = []
        for p, observed in zip(probs.T, targets.T == 1, strict=True):
            parts.append(columns(signed(TILTS), lambda tilt, p=p, y=observed: tilted(p, y, tilt)))  # type: ignore[misc]
            parts.append(columns(POWERS, lambda power, p=p, y=observed: sharpened(p, y, power)))  # type: ignore[misc]
        return np.concatenate(parts, axis=1)
