"""The numbers of a control chart: windows of a stream beside what a calibrated model would show there."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri

from calibrant._validate import check_count, check_fraction
from calibrant.inference.bands import outward
from calibrant.inference.proportions import Band
from calibrant.inference.redrawn_sums import redrawn_sums
from calibrant.monitoring.class_bets import ClassBets
from calibrant.monitoring.history import History
from calibrant.monitoring.monitor import Monitor
from calibrant.monitoring.spans import Cut
from calibrant.monitoring.tallies import EventSums, EventTally, LevelSums, LevelTally
from calibrant.results import Table

WORK = 8_000_000
"""Redrawn sums that far limits may cost beyond what was asked for."""

SLACK = 1e-9
"""What rounding may do."""


@dataclass(frozen=True)
class Limits:
    """Limits of windows: ``low`` to ``high`` hold a calibrated model in each window by itself with chance ``level``, ``lowest``
    to ``highest`` in all windows at once, and in both measures of a chart.

    Of events, both come from ``n_resamples`` redraws of the outcomes, given the claims, by the sums that are kept of them
    (:func:`~calibrant.inference.redrawn_sums.redrawn_sums`); the wider ones are those of the largest standardised value of all
    windows, what may leave them being shared evenly by all measures and groups that can be shown. Of levels they are exact:
    normal scores have normal means and chi-square variances.
    None of these raises an alarm: that is left to :class:`~calibrant.Monitor`.
    """

    level: float = 0.95
    n_resamples: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples", least=99)

    def tables(self, history: History, group: int = 0, single: int | None = None) -> dict[str, Table]:
        """Of events ``gap`` and ``error``, of forecasts ``bias`` and ``spread``: a row a window.

        They are those of one label or coordinate, where there are several; of several classes, the ``gap`` may be that of a
        ``single`` one. The wider limits hold whichever was chosen, and however.
        """
        cut, tally = history.windows, history.tally
        if isinstance(tally, LevelTally):
            sums = LevelSums(*(part[:, group] for part in tally.by_group(cut.values)))
            return self.of_levels(sums, cut, len(tally.groups))
        assert isinstance(tally, EventTally)
        parts = tally.by_part(cut.values).at((slice(None), group))
        one = parts if single is None else tally.by_class(cut.values).at((slice(None), slice(single, single + 1)))
        choices = len(tally.groups) + len(tally.classes)
        return {"gap": self._gap(cut, one, choices), "error": self._error(cut, parts, len(tally.groups))}

    def _gap(self, cut: Cut, parts: EventSums, choices: int) -> Table:
        """The mean claim less the mean outcome, from sums ``(windows, parts)``."""
        sums = parts.over(1)
        drawn = self.redraw(parts, 2 * choices).sum(axis=2) / sums.rows
        table = _table(cut, sums.gap / sums.rows, *self.bands(drawn, choices=2 * choices))
        return Table({**table, "claimed": sums.claimed / sums.rows, "happened": sums.happened / sums.rows})

    def _error(self, cut: Cut, parts: EventSums, choices: int) -> Table:
        """The mean over parts of the distance of claims and outcomes."""
        rows = parts.rows.sum(axis=1)
        drawn = np.abs(self.redraw(parts, 2 * choices)).sum(axis=2) / rows
        value = np.abs(parts.gap).sum(axis=1) / rows
        return _table(cut, value, *self.bands(drawn, is_error=True, choices=2 * choices))

    def redraw(self, sums: EventSums, choices: int = 1) -> np.ndarray:
        """Claims less outcomes that are drawn anew, ``(n_resamples, ...)``; more often where many choices ask for far limits."""
        rng, wanted = np.random.default_rng([self.seed, 1]), round(choices / (1 - self.level))
        draws = max(self.n_resamples, min(wanted, WORK // max(sums.rows.size, 1)))
        return sums.claimed - redrawn_sums(sums.claimed, sums.noise, sums.skew, draws, rng)

    def bands(self, drawn: np.ndarray, *, is_error: bool = False, choices: int = 1) -> tuple[Band, Band]:
        """What redraws ``(n_resamples, m)`` hold, each by itself and all at once; errors are not less than zero.

        Of several ``choices``, measures that are looked at or groups that may be, each may leave the wider ones with its part of
        the chance.
        """
        inner = outward(drawn, (1 - self.level) / 2)
        middle = drawn.mean(axis=0) if is_error else np.zeros(drawn.shape[1])
        scale = np.sqrt(np.mean((drawn - middle) ** 2, axis=0))
        standard = (drawn - middle) / np.where(scale > 0, scale, 1.0)
        largest = (standard if is_error else np.abs(standard)).max(axis=1, initial=0.0)
        far = float(np.quantile(largest, 1 - (1 - self.level) / choices, method="higher"))
        least = np.zeros_like(middle) if is_error else middle - far * scale
        return inner, (np.minimum(least, inner[0]), np.maximum(middle + far * scale, inner[1]))

    def of_levels(self, sums: LevelSums, cut: Cut | None = None, choices: int = 1) -> dict[str, Table]:
        """The mean of the normal scores, and their standard deviation, of one row nothing: by window, or by whatever else."""
        rows, windows = sums.rows, max(len(sums.rows), 1)
        mean = sums.scores / rows
        free = np.where(rows > 1, rows - 1, np.nan)
        spread = np.sqrt(np.maximum(sums.squares - rows * mean**2, 0) / free)
        tails = [(1 - level) / 2 for level in (self.level, self.level ** (0.5 / windows / choices))]
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


def strongest_class(monitor: Monitor) -> int | None:
    """The class that the alarm is about, ``None`` where it is about no single one."""
    is_known = monitor.alarm is not None and isinstance(monitor.bets, ClassBets)
    return monitor.bets.class_of(monitor.alarm.words) if is_known else None  # type: ignore[union-attr]


def strongest_group(monitor: Monitor) -> int:
    """Which label or coordinate the alarm is about, or without one the strongest bet; 0 where all is one."""
    found = monitor.alarm or monitor.leaning
    if found is None or monitor.bets is None or monitor.history is None:
        return 0
    words = [bet.words for bet in monitor.bets.bets()]  # as many for each group, one group after the other
    return words.index(found.words) * len(monitor.history.tally.groups) // len(words)
