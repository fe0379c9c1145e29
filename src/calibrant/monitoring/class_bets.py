"""Bets on probabilities of classes and of labels."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.lenses import PositiveClass, TopLabel
from calibrant.monitoring.bets import (
    EDGES,
    POWERS,
    TILTS,
    Bet,
    Bets,
    LocalTilts,
    columns,
    level_words,
    shared,
    sharpened,
    signed,
    tilted,
)

CLASS_TILT = 0.5
"""By how much the log odds of a single class are taken to be off."""

SURENESS = [f"the model is {'over' if power < 1 else 'under'}-confident" for power in POWERS]
"""What powers say."""


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
        return shared([level_words("probabilities"), SURENESS, self.parts.words("probabilities")])

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the positive class."""
        event = PositiveClass().events(predictions)[0]
        p, happened = event.probability.astype(np.float64), event.happened(targets)
        return np.concatenate(
            [
                columns(signed(TILTS), lambda tilt: tilted(p, happened, tilt)),
                columns(POWERS, lambda power: sharpened(p, happened, power)),
                self.parts.log_ratios(p, happened),
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
        lower = [f"probabilities of {name} are too low" for name in self.names]
        upper = [f"probabilities of {name} are too high" for name in self.names]
        return shared([level_words("confidences"), SURENESS, lower + upper, self.parts.words("confidences")])

    def class_of(self, words: str) -> int | None:
        """The class that a bet is about, ``None`` of bets about all.

        >>> ClassBets(("cat", "dog", "bird")).class_of("probabilities of dog are too high")
        1
        """
        said = [{f"probabilities of {name} are too {side}" for side in ("low", "high")} for name in self.names]
        return next((i for i, both in enumerate(said) if words in both), None)

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the favoured class, of the tempered probabilities, and of each class against the rest."""
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        top = TopLabel().events(predictions)[0]
        confidence, right = top.probability.astype(np.float64), top.happened(targets)
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
        groups = [
            [*level_words(f"probabilities of {name}"), *(f"{words} about {name}" for words in SURENESS)]
            for name in self.names
        ]
        return shared(groups)

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Labels of a row may depend on each other: each has bets of its own, which are never multiplied."""
        probs = to_numpy(predictions.probs).astype(np.float64)  # type: ignore[attr-defined]
        parts = []
        for p, happened in zip(probs.T, targets.T == 1, strict=True):
            parts.append(columns(signed(TILTS), lambda tilt, p=p, y=happened: tilted(p, y, tilt)))  # type: ignore[misc]
            parts.append(columns(POWERS, lambda power, p=p, y=happened: sharpened(p, y, power)))  # type: ignore[misc]
        return np.concatenate(parts, axis=1)
