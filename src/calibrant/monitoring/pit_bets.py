"""Bets on forecasts of numbers, counts and vectors, through the PIT values of their targets."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import Quantiles, fan_of
from calibrant.distributions.multivariate import coordinate, dimensions
from calibrant.estimators.forecast_errors.pit import pit_of
from calibrant.monitoring.bets import (
    HEIGHTS,
    LOCAL_TILTS,
    TILTS,
    Bet,
    Bets,
    Defect,
    columns,
    height,
    overall,
    shared,
    signed,
)
from calibrant.results import Finding


def pit_by_row(targets: np.ndarray, predictions: Distribution, seen: int, seeds: list[int]) -> np.ndarray:
    """``F(y)`` of each row; where single values have a probability, at a random place between ``P(Y < y)`` and ``P(Y <= y)``.

    Every row has one random number, which depends on how many rows were ``seen`` before it and on the seeds, and not on which
    rows come together.

    >>> from calibrant import Poisson
    >>> y, predictions = np.array([0, 1, 2]), Poisson(np.ones(3))
    >>> whole = pit_by_row(y, predictions, 0, [0])
    >>> bool(pit_by_row(y[2:], predictions[2:], 2, [0])[0] == whole[2])
    True
    """
    low, high = pit_of(predictions, pit_by_row)(targets)
    if low is high:
        return low
    source = np.random.PCG64(np.random.SeedSequence(seeds)).advance(seen)
    return low + np.random.Generator(source).random(len(targets)) * (high - low)


SPREADS = (0.5, 0.8, 1.25, 2.0)
"""Factors by which forecasts are taken to be too wide, below 1, or too narrow."""

WIDTHS = tuple(Finding.TOO_WIDE if factor < 1 else Finding.TOO_NARROW for factor in SPREADS)
"""What factors say."""

PARTS = 10
"""Equal parts of the range of PIT values, each of which may hold too many or too few."""

MAX_SCORE = 8.0
"""Normal scores end here: beyond, a calibrated forecast has one PIT value in 10^15."""


@dataclass(frozen=True)
class PITBets(Bets):
    """On the PIT values ``F(y)``, uniform and independent of the past where the forecast is calibrated.

    Their normal scores may be off in mean or in spread; a tenth of the PIT values may come too often or too rarely. Where single
    values have a probability, and in ensembles, the PIT value is drawn between its two ends, by the row's number.
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
        n_parts = len(self.given) + 1 if self.given else PARTS
        members = range(self.d) if self.d else [None]
        return shared([group for member in members for group in _groups(member, n_parts)])

    def words(self, defect: Defect) -> str:
        """Of forecasts, or of outcomes between their quantiles."""
        noun = "forecasts" if defect.member is None else f"forecasts of coordinate {defect.member}"
        if defect.part is None:
            return f"{noun} are {defect.way}"
        often = "often" if defect.way is Finding.TOO_LOW else "rarely"  # what was claimed of that part
        if self.given:
            return f"outcomes fall {_cell(self.given, defect.part)} too {often}"
        low, high = (f"{100 * i / PARTS:g} %" for i in (defect.part, defect.part + 1))
        return f"outcomes fall between the {low} and {high} quantiles of {noun} too {often}"

    def log_ratios(self, targets: np.ndarray, predictions: Distribution, seen: int) -> np.ndarray:
        """Of the PIT values."""
        if (fan := fan_of(predictions)) is not None:
            return _of_cells(fan, targets)
        if not dimensions(predictions):
            return _of_pit(pit_by_row(targets, predictions, seen, [self.seed]))
        parts = [(targets[:, i], coordinate(predictions, i), seen, [self.seed, i]) for i in range(self.d)]
        return np.concatenate([_of_pit(pit_by_row(*part)) for part in parts], axis=1)


def _groups(member: int | None, n_parts: int) -> list[list[Defect]]:
    """Those of one coordinate: mean, spread and parts."""
    tilts = signed(LOCAL_TILTS)
    local = [Defect(Finding.LOCAL, height(tilt), member, part) for part in range(n_parts) for tilt in tilts]
    return [overall(HEIGHTS, member), overall(WIDTHS, member), local]


def _cell(given: tuple[float, ...], part: int) -> str:
    """A cell between quantiles, in words."""
    if part == 0:
        return f"below the {100 * given[0]:g} % quantile"
    if part == len(given):
        return f"above the {100 * given[-1]:g} % quantile"
    return f"between the {100 * given[part - 1]:g} % and the {100 * given[part]:g} % quantile"


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


def _of_pit(pit: np.ndarray) -> np.ndarray:
    """Log likelihood ratios ``(rows, bets)`` of one column of PIT values."""
    z = np.clip(ndtri(pit), -MAX_SCORE, MAX_SCORE)
    part = np.minimum((pit * PARTS).astype(int), PARTS - 1)
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
