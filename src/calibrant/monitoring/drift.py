"""Where a stream goes wrong, and when: claims against outcomes by window and by part, class, label or level."""

import itertools
from typing import NamedTuple

import numpy as np

from calibrant.monitoring.control import SLACK, Limits
from calibrant.monitoring.history import History
from calibrant.monitoring.tallies import CUTS, LEVELS, EventSums, EventTally, LevelTally
from calibrant.results import Table

COLUMNS = 34
"""Windows side by side at most; more are put together."""

PLACES = 20
"""Places that are shown at most, those that stand out most."""

WORK = 4_000_000
"""Redrawn sums that marks may cost before they make do with fewer redraws."""


class Places(NamedTuple):
    """What is looked at by itself: names, and sums of rows, claims less outcomes and their variance, ``(windows, places)``, with
    redraws of the claims less outcomes, ``(redraws, windows, places)``."""

    names: tuple[str, ...]
    rows: np.ndarray
    gap: np.ndarray
    noise: np.ndarray
    drawn: np.ndarray


def drift(history: History, limits: Limits, group: int = 0) -> Table:
    """Claims less outcomes in every place and window: a row a cell, place by place.

    ``score`` is the gap in units of its spread if calibrated, one row's worth added, so that single surprises where nothing was
    expected do not drown the rest. ``beyond`` marks those larger than the largest of all cells is in ``level`` of redraws: a
    calibrated stream has no mark with that chance. Places are parts of the range of probabilities; classes or labels, where there
    are several; of forecasts tenths of the levels.
    """
    cut = history.windows
    starts = np.arange(0, len(cut.last), max(1, -(-len(cut.last) // COLUMNS)))
    values = np.add.reduceat(cut.values, starts)
    last = cut.last[np.append(starts[1:] - 1, len(cut.last) - 1)]
    if isinstance(history.tally, LevelTally):
        places = _levels(history.tally, values, limits, group)
    else:
        assert isinstance(history.tally, EventTally)
        places = _events(history.tally, values, limits)
    spread = np.sqrt(places.noise + 1)
    score = places.gap / spread
    largest = np.abs(places.drawn / spread).max(axis=(1, 2))
    choices = len(history.tally.groups) if isinstance(history.tally, LevelTally) else 1
    far = float(np.quantile(largest, 1 - (1 - limits.level) / choices, method="higher"))
    order = _shown(score)
    return Table(
        place=np.repeat(np.array(places.names, dtype=object)[order], len(starts)),
        first=np.tile(cut.first[starts], len(order)),
        last=np.tile(last, len(order)),
        rows=places.rows.T[order].ravel(),
        gap=(places.gap / np.where(places.rows > 0, places.rows, np.nan)).T[order].ravel(),
        score=np.where(places.rows > 0, score, np.nan).T[order].ravel(),
        beyond=(np.abs(score) > far + SLACK).T[order].ravel(),
    )


def noun_of(history: History) -> str:
    """What places are called."""
    if isinstance(history.tally, LevelTally):
        return "level"
    assert isinstance(history.tally, EventTally)
    return "class" if history.tally.classes else "label" if len(history.tally.groups) > 1 else "claim"


def _events(tally: EventTally, values: np.ndarray, limits: Limits) -> Places:
    """Of classes or labels, else of parts that have rows, the highest first."""
    parts = tally.by_part(values)
    names: tuple[str, ...]
    if tally.classes:
        sums, names = tally.by_class(values), tally.classes
    elif len(tally.groups) > 1:
        sums, names = parts.over(-1), tally.groups
    else:
        held = np.flatnonzero(parts.rows[:, 0].sum(axis=0))[::-1]
        ends = [*itertools.pairwise((0.0, *CUTS, 1.0))]
        sums = EventSums(*(part[:, 0][:, held] for part in parts))
        names = tuple(f"{100 * ends[i][0]:g} to {100 * ends[i][1]:g} %" for i in held)
    return Places(names, sums.rows, sums.gap, sums.noise, _fewer(limits, sums.rows.size).redraw(sums))


def _levels(tally: LevelTally, values: np.ndarray, limits: Limits, group: int) -> Places:
    """Tenths of the levels, the highest first; outcomes that are there too often were claimed too little."""
    counts = tally.by_group(values).counts[:, group].reshape(len(values), LEVELS // 2, 2).sum(axis=2)[:, ::-1]
    rows, share = counts.sum(axis=1, keepdims=True), 2 / LEVELS
    rng, draws = np.random.default_rng([limits.seed, 2]), _fewer(limits, counts.size).n_resamples
    even = np.full(LEVELS // 2, share)
    drawn = rng.multinomial(rows[:, 0].astype(np.int64), even, (draws, len(rows)))
    names = tuple(f"{100 * i * share:.0f} to {100 * (i + 1) * share:.0f} %" for i in range(LEVELS // 2))[::-1]
    noise = np.broadcast_to(rows * share * (1 - share), counts.shape)
    return Places(names, np.broadcast_to(rows, counts.shape), share * rows - counts, noise, share * rows - drawn)


def _fewer(limits: Limits, cells: int) -> Limits:
    """Redraws that so many cells can afford."""
    return Limits(limits.level, max(99, min(limits.n_resamples, WORK // max(cells, 1))), limits.seed)


def _shown(score: np.ndarray) -> np.ndarray:
    """All places in their order, or those with the largest scores."""
    largest = np.abs(score).max(axis=0)
    return np.sort(np.argsort(-largest, kind="stable")[:PLACES])
