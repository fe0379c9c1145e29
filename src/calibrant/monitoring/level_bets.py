"""Bets on forecasts of numbers, counts and vectors, through the levels of their targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.distributions.base import Distribution
from calibrant.distributions.coordinates import coordinate, dimensions
from calibrant.distributions.quantiles import Quantiles, fan_of
from calibrant.monitoring.bets import LOCAL_TILTS, TILTS, Bet, Bets, columns, shared, signed
from calibrant.monitoring.levels import levels_by_row

SPREADS = (0.5, 0.8, 1.25, 2.0)
"""Factors by which forecasts are taken to be too wide, below 1, or too narrow."""

PARTS = 10
"""Equal parts of the levels, each of which may hold too many or too few."""

FURTHEST = 8.0
"""Normal scores end here: beyond, a calibrated forecast has one level in 10^15."""


@dataclass(frozen=True)
class LevelBets(Bets):
    """On the levels ``F(y)``, uniform and independent of the past where the forecast is calibrated.

    Their normal scores may be off in mean or in spread; a tenth of the levels may come too often or too rarely. Where single
    values have a probability, and in ensembles, the level is drawn between its two ends, by the row's number.
    Of quantile forecasts bets are on the cells between the quantiles ``given``, and nothing is assumed within.
    """

    d: int = 0
    seed: int = 0
    given: tuple[float, ...] = ()

    kind = "forecast"

    def __str__(self) -> str:
        return f"forecasts of {f'vectors of {self.d}' if self.d else 'numbers'}"

    def bets(self) -> tuple[Bet, ...]:
        """Mean, spread and parts; of vectors, for every coordinate."""
        if self.given:
            shift, spread, _ = _groups("forecasts")
            return shared([shift, spread, _cell_words(self.given)])
        return shared([group for name in self._nouns() for group in _groups(name)])

    def _nouns(self) -> list[str]:
        return [f"forecasts of coordinate {i}" for i in range(self.d)] if self.d else ["forecasts"]

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the levels."""
        if (fan := fan_of(predictions)) is not None:
            return _of_cells(fan, targets)
        if not dimensions(predictions):
            return _of_levels(levels_by_row(targets, predictions, seen, [self.seed]))
        parts = [(targets[:, i], coordinate(predictions, i), seen, [self.seed, i]) for i in range(self.d)]
        return np.concatenate([_of_levels(levels_by_row(*part)) for part in parts], axis=1)


def _groups(noun: str) -> list[list[str]]:
    shift = [f"{noun} are too {'low' if tilt > 0 else 'high'}" for tilt in signed(TILTS)]
    spread = [f"{noun} are too {'wide' if factor < 1 else 'narrow'}" for factor in SPREADS]
    ends = [f"{100 * i / PARTS:g} % and {100 * (i + 1) / PARTS:g} %" for i in range(PARTS)]
    local = [
        f"outcomes fall between the {end} quantiles of {noun} too {'often' if tilt > 0 else 'rarely'}"
        for end in ends
        for tilt in signed(LOCAL_TILTS)
    ]
    return [shift, spread, local]


def _cell_words(given: Sequence[float]) -> list[str]:
    """What each says of a cell between quantiles."""
    names = [f"the {100 * u:g} % quantile" for u in given]
    between = [f"between the {100 * a:g} % and the {100 * b:g} % quantile" for a, b in pairwise(given)]
    cells = [f"below {names[0]}", *between, f"above {names[-1]}"]
    return [f"outcomes fall {cell} too {'often' if t > 0 else 'rarely'}" for cell in cells for t in signed(LOCAL_TILTS)]


def _of_cells(fan: Quantiles, targets: np.ndarray) -> np.ndarray:
    """Log likelihood ratios ``(rows, bets)`` of the quantiles that targets lie between.

    A target that equals a quantile may belong to either side, by chances that nobody knows: every bet gets the lesser of what it
    would win, so that none wins on average if forecasts are calibrated.
    """
    ratios = _cell_ratios(fan.levels)
    first, last = fan.cells_around(targets)
    found = ratios[first]
    for step in range(1, int((last - first).max(initial=0)) + 1):
        found = np.minimum(found, ratios[np.minimum(first + step, last)])
    return found


def _cell_ratios(given: np.ndarray) -> np.ndarray:
    """Log likelihood ratios ``(cells, bets)``: probabilities of cells if normal scores are off, over those that were promised."""
    ends = np.concatenate([[0.0], given, [1.0]])
    z, chance = ndtri(ends), np.diff(ends)

    def against(means: float, spread: float) -> np.ndarray:
        return np.log(np.diff(ndtr((z - means) / spread)) / chance)

    tilts, cells = signed(LOCAL_TILTS), range(len(chance))
    local = [
        np.where(np.arange(len(chance)) == at, tilt, 0.0) - np.log1p(np.expm1(tilt) * chance[at])
        for at in cells
        for tilt in tilts
    ]
    shift = columns(signed(TILTS), lambda tilt: against(tilt, 1.0))
    spread = columns(SPREADS, lambda factor: against(0.0, factor))
    return np.concatenate([shift, spread, np.stack(local, axis=1)], axis=1)


def _of_levels(levels: np.ndarray) -> np.ndarray:
    """Log likelihood ratios ``(rows, bets)`` of one column of levels."""
    z = np.clip(ndtri(levels), -FURTHEST, FURTHEST)
    part = np.minimum((levels * PARTS).astype(int), PARTS - 1)
    tilts = signed(LOCAL_TILTS)
    local = [
        np.where(part == at, tilt, 0.0) - np.log1p(np.expm1(tilt) / PARTS) for at in range(PARTS) for tilt in tilts
    ]
    return np.concatenate(
        [
            columns(signed(TILTS), lambda tilt: tilt * z - tilt**2 / 2),
            columns(SPREADS, lambda spread: -np.log(spread) - z**2 / 2 * (spread**-2 - 1)),
            np.stack(local, axis=1),
        ],
        axis=1,
    )
