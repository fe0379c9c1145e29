"""Bets against calibration: ways in which predictions may be wrong, and how much likelier each makes what happened."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.distributions.base import Distribution

TILTS = (0.1, 0.3, 1.0)
"""By how much log odds, or means in standard deviations, are taken to be off."""

POWERS = (0.5, 0.8, 1.25, 2.0)
"""Factors by which log odds are taken to be off; below 1, predictions are too sure."""

LOCAL_TILTS = (0.3, 1.0)
"""By how much log odds are taken to be off in one part of the range."""

EDGES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Ends of the parts of [0, 1] in which probabilities may be wrong by themselves."""


class Bet(NamedTuple):
    """What a bet says of the predictions, and its share of the capital."""

    words: str
    share: float


class Bets(ABC):
    """Bets on predictions of one kind; subclasses are frozen dataclasses."""

    kind: str

    @abstractmethod
    def bets(self) -> tuple[Bet, ...]:
        """All of them; their shares sum to one."""

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


def shared(groups: Sequence[Sequence[str]]) -> tuple[Bet, ...]:
    """Bets whose groups have equal parts of the capital, divided evenly within each.

    >>> shared([["too high", "too low"], ["over-confident"]])[1]
    Bet(words='too low', share=0.25)
    """
    return tuple(Bet(words, 1 / len(groups) / len(group)) for group in groups for words in group)


def tilted(probability: np.ndarray, happened: np.ndarray, tilt: np.ndarray | float) -> np.ndarray:
    """The log likelihood ratio of an event whose log odds are off by ``tilt``.

    ``y d - log(1 + p (e^d - 1))``. What had probability zero is evidence without end, for tilts towards it; for others any
    finite value will do.

    >>> tilted(np.array([0.5, 0.0]), np.array([True, True]), 1.0).round(3)
    array([0.38,  inf])
    """
    ratio = happened * tilt - np.log1p(probability * np.expm1(tilt))
    impossible = np.where(happened, probability == 0, probability == 1)
    return np.where(impossible & (happened == (tilt > 0)), np.inf, ratio)


def sharpened(probability: np.ndarray, happened: np.ndarray, power: float) -> np.ndarray:
    """The log likelihood ratio of an event whose log odds are off by a factor: two classes tempered.

    What had probability zero is evidence without end that the model is too sure, and none that it is too timid.

    >>> sharpened(np.array([0.9, 0.5]), np.array([False, True]), 0.5).round(3)
    array([ 0.916, -0.   ])
    """
    p, rest = probability, 1 - probability
    with np.errstate(divide="ignore"):
        ratio = (power - 1) * np.log(np.where(happened, p, rest)) - np.log(p**power + rest**power)
    return np.where(np.where(happened, p, rest) == 0, np.inf if power < 1 else 0.0, ratio)


@dataclass(frozen=True)
class LocalTilts:
    """Tilts in one part of the range of probabilities each; the others leave a row alone."""

    edges: tuple[float, ...]

    @property
    def tilts(self) -> list[tuple[int, float]]:
        """Part and tilt of every bet."""
        return [(part, sign * tilt) for part in range(len(self.edges) + 1) for tilt in LOCAL_TILTS for sign in (1, -1)]

    def words(self, noun: str) -> list[str]:
        """What each says, in the order of :attr:`tilts`."""
        ends = [0.0, *self.edges, 1.0]
        parts = [f"{noun} between {100 * a:g} % and {100 * b:g} %" for a, b in itertools.pairwise(ends)]
        return [f"{parts[part]} are too {'low' if tilt > 0 else 'high'}" for part, tilt in self.tilts]

    def log_ratios(self, probability: np.ndarray, happened: np.ndarray) -> np.ndarray:
        """``(rows, bets)``."""
        part = np.searchsorted(np.array(self.edges), probability, side="left")
        each = {tilt: tilted(probability, happened, tilt) for tilt in {tilt for _, tilt in self.tilts}}
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


def level_words(noun: str, tilts: Sequence[float] = TILTS) -> list[str]:
    """What tilts of the level say."""
    return [f"{noun} {'are too low' if tilt > 0 else 'are too high'}" for tilt in signed(tilts)]
