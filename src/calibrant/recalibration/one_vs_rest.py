"""Many classes put right one at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.recalibration.base import ClassMap, Found, Map, Recalibrator, check_classes


@dataclass(frozen=True)
class OneVsRest(Recalibrator):
    """A recalibrator of two classes for many: one map a class, of that class against the rest; rows are then normalised.

    Each map sees its own class only, so it can follow what is special to a class, and nothing of what classes share.
    Zadrozny & Elkan (2002).

    >>> from calibrant.recalibration.scaling import Platt
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = OneVsRest(Platt()).fit([rng.choice(3, p=row) for row in p], sharp)
    >>> fitted([[0.8, 0.1, 0.1]]).round(2)
    array([[0.59, 0.22, 0.19]])
    """

    recalibrator: Recalibrator

    def __post_init__(self) -> None:
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(f"OneVsRest takes a recalibrator such as Platt(); got {self.recalibrator!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """A fit a class."""
        check_classes(predictions, "OneVsRest")
        assert isinstance(predictions, Categorical)
        p = to_numpy(predictions.matrix).astype(np.float64)
        fits = [
            self.recalibrator.find((targets == c).astype(np.int64), Categorical(two), weights)
            for c, two in enumerate(_against_rest(p))
        ]
        names = predictions.class_names
        notes = tuple(f"class {name}: {note}" for name, fit in zip(names, fits, strict=True) for note in fit.notes)
        maps = OneVsRestMap(len(fits), tuple(fit.map for fit in fits))
        return Found(maps, all(fit.is_converged for fit in fits), notes if len(notes) <= 5 else _counted(notes, names))


def _counted(notes: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """The first notes, and how many more there are."""
    return (*notes[:3], f"{len(notes) - 3:,} more notes on other classes of the {len(names):,}")


def _against_rest(p: np.ndarray) -> list[np.ndarray]:
    """For each class, the probabilities of all others together and of itself, ``(n, 2)``; sums, not 1 - p, keep small tails.

    Rows may miss one, by rounding; the two of a class do not.
    """
    p = p / p.sum(axis=1, keepdims=True)
    edge = np.zeros((len(p), 1))
    before = np.concatenate([edge, np.cumsum(p[:, :-1], axis=1)], axis=1)
    after = np.concatenate([np.cumsum(p[:, :0:-1], axis=1)[:, ::-1], edge], axis=1)
    return [np.stack([before[:, c] + after[:, c], p[:, c]], axis=1) for c in range(p.shape[1])]


@dataclass(frozen=True)
class OneVsRestMap(ClassMap):
    """A map of two classes for each class; rows that all maps send to 0 stay as they are."""

    n_classes: int
    maps: Any

    def __post_init__(self) -> None:
        maps = tuple(part if isinstance(part, Map) else Map.from_dict(part) for part in self.maps)
        if len(maps) != self.n_classes or not all(isinstance(m, ClassMap) and m.n_classes == 2 for m in maps):
            raise InputError(f"OneVsRestMap must hold {self.n_classes} maps of two classes; got {len(maps)} maps")
        object.__setattr__(self, "maps", maps)

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """One column a map, divided by their sum."""
        pairs = zip(self.maps, _against_rest(p), strict=True)
        new = np.stack([m.probabilities(two)[:, 1] for m, two in pairs], axis=1)
        total = new.sum(axis=1, keepdims=True)
        return np.where(total > 0, new / np.where(total > 0, total, 1), p)
