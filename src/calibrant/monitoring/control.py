"""The numbers of a control chart: windows of a stream beside what a calibrated model would show there."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri

from calibrant._validate import check_count, check_fraction
from calibrant.inference.bands import outward
from calibrant.inference.proportions import Band
from calibrant.inference.redrawn_sums import redrawn_sums
from calibrant.monitoring.history import History
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.spans import Cut
from calibrant.monitoring.tallies import EventSums, EventTally, LevelSums, LevelTally
from calibrant.results import Table

SLACK = 1e-9
"""What rounding may do."""


@dataclass(frozen=True)
class Limits:
    """Limits of windows: ``low`` to ``high`` hold a calibrated model in each window by itself with chance ``level``, ``lowest``
    to ``highest`` in all windows at once, and in both measures of a chart.

    Of events, both come from ``n_resamples`` redraws of the outcomes, given the claims, by the sums that are kept of them
    (:func:`~calibrant.inference.redrawn_sums.redrawn_sums`); the wider ones are those of the largest standardised value of all
    windows, each measure having half of what may leave them. Of levels they are exact: normal scores have normal means and
    chi-square variances.
    None of these raises an alarm: that is left to :class:`~calibrant.Monitor`.
    """

    level: float = 0.95
    n_resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples", least=99)

    def tables(self, history: History, group: int = 0) -> dict[str, Table]:
        """Of events ``gap`` and ``error``, of forecasts ``bias`` and ``spread``: a row a window."""
        cut = history.windows
        if isinstance(history.tally, LevelTally):
            sums = history.tally.by_group(cut.values)
            return self.of_levels(LevelSums(*(part[:, group] for part in sums)), cut)
        assert isinstance(history.tally, EventTally)
        sums_of_events = history.tally.by_part(cut.values)
        return self._of_events(cut, sums_of_events.at((slice(None), group)))

    def _of_events(self, cut: Cut, sums: EventSums) -> dict[str, Table]:
        """The mean claim less the mean outcome; and the mean over parts of the distance of both, ``(windows, parts)`` given."""
        rows = sums.rows.sum(axis=1)
        drawn = self.redraw(sums)
        means = sums.over(1)
        gap = self._table(cut, means.gap / rows, drawn.sum(axis=2) / rows, is_error=False)
        claims = {"claimed": means.claimed / rows, "happened": means.happened / rows}
        error = self._table(cut, np.abs(sums.gap).sum(axis=1) / rows, np.abs(drawn).sum(axis=2) / rows, is_error=True)
        return {"gap": Table({**gap, **claims}), "error": error}

    def redraw(self, sums: EventSums) -> np.ndarray:
        """Claims less outcomes that are drawn anew, ``(n_resamples, ...)``."""
        rng = np.random.default_rng([self.seed, 1])
        return sums.claimed - redrawn_sums(sums.claimed, sums.noise, sums.skew, self.n_resamples, rng)

    def _table(self, cut: Cut, value: np.ndarray, drawn: np.ndarray, *, is_error: bool) -> Table:
        inner, outer = self.bands(drawn, is_error=is_error, measures=2)
        return _table(cut, value, inner, outer)

    def bands(self, drawn: np.ndarray, *, is_error: bool = False, measures: int = 1) -> tuple[Band, Band]:
        """What redraws ``(n_resamples, m)`` hold, each by itself and all at once; errors are not less than zero.

        Of several ``measures`` each may leave the wider ones with its part of the chance.
        """
        inner = outward(drawn, (1 - self.level) / 2)
        middle = drawn.mean(axis=0) if is_error else np.zeros(drawn.shape[1])
        scale = np.sqrt(np.mean((drawn - middle) ** 2, axis=0))
        known = np.where(scale > 0, scale, 1.0)
        standard = (drawn - middle) / known
        largest = (standard if is_error else np.abs(standard)).max(axis=1, initial=0.0)
        far = float(np.quantile(largest, 1 - (1 - self.level) / measures, method="higher"))
        least = np.zeros_like(middle) if is_error else middle - far * scale
        return inner, (np.minimum(least, inner[0]), np.maximum(middle + far * scale, inner[1]))

    def of_levels(self, sums: LevelSums, cut: Cut | None = None) -> dict[str, Table]:
        """The mean of the normal scores, and their standard deviation, of one row nothing: by window, or by whatever else."""
        rows, windows = sums.rows, max(len(sums.rows), 1)
        mean = sums.scores / rows
        free = np.where(rows > 1, rows - 1, np.nan)
        spread = np.sqrt(np.maximum(sums.squares - rows * mean**2, 0) / free)
        tails = [(1 - level) / 2 for level in (self.level, self.level ** (0.5 / windows))]
        far = [-ndtri(tail) / np.sqrt(rows) for tail in tails]
        bias = _table(cut, mean, *((-end, end) for end in far))
        ends = [tuple(np.sqrt(2 * gammaincinv(free / 2, t) / free) for t in (tail, 1 - tail)) for tail in tails]
        return {"bias": bias, "spread": _table(cut, spread, *ends)}


def _table(cut: Cut | None, value: np.ndarray, inner: Band, outer: Band) -> Table:
    beyond = (value < outer[0] - SLACK) | (value > outer[1] + SLACK)
    rows = {} if cut is None else {"first": cut.first, "last": cut.last}
    return Table(
        rows,
        value=value,
        low=inner[0],
        high=inner[1],
        lowest=outer[0],
        highest=outer[1],
        beyond=beyond,
    )


def strongest_group(monitor: Monitor) -> int:
    """Which label or coordinate the alarm is about, or without one the strongest bet; 0 where all is one."""
    found = monitor.alarm or monitor.leaning
    if found is None or monitor.bets is None or monitor.history is None:
        return 0
    words = [bet.words for bet in monitor.bets.bets()]  # as many for each group, one group after the other
    return words.index(found.words) * len(monitor.history.tally.groups) // len(words)
