"""Windows of a stream against what a calibrated model would show: a control chart."""

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from calibrant._validate import InputError, did_you_mean
from calibrant.monitoring.control import Limits, strongest_class, strongest_group
from calibrant.monitoring.monitor import Monitor
from calibrant.plots.base import Display, Drawing, Layout, Legend, Tables, level_in, plotter
from calibrant.plots.sequential.evidence_plot import ABOVE, STEPS, draw_marks, history_of, label_marks, marks_of
from calibrant.plots.style import Palette, dress, inches_of
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Measure(NamedTuple):
    """What a panel shows: its words, what is right, its unit, and what it means to be above and below."""

    words: str
    right: float | None
    scale: float
    above: str
    below: str


MEASURES = {
    "gap": _Measure("Claimed \N{MINUS SIGN} happened, %", 0.0, 100.0, "claims\ntoo high", "claims\ntoo low"),
    "error": _Measure("Calibration error, %", None, 100.0, "", ""),
    "bias": _Measure("Bias", 0.0, 1.0, "forecasts\ntoo low", "forecasts\ntoo high"),
    "spread": _Measure("Spread", 1.0, 1.0, "too\nnarrow", "too\nwide"),
}
"""What windows may show, in the order from above."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Panels one above the other, over the same rows."""
    axes.set_axis_off()
    names = [name for name in MEASURES if name in tables]
    height = inches_of(axes)[1]
    share = (1 - 0.22 * (len(names) - 1) / height) / len(names)
    for i, name in enumerate(names):
        panel = axes.inset_axes((0.0, 1 - share - i * (1 - share) / max(len(names) - 1, 1), 1.0, share))
        draw_panel(panel, tables[name], MEASURES[name], palette)
        draw_marks(panel, tables["marks"], palette)
        panel.yaxis.set_label_coords(-0.55 / inches_of(axes)[0], 0.5)
        panel.tick_params(labelbottom=i == len(names) - 1)
        if not i:
            label_marks(panel, tables["marks"], palette)
    panel.set(xlabel="Row")


def draw_panel(axes: "Axes", table: Table, measure: _Measure, palette: Palette) -> None:
    """Windows as dots, over both bands; those beyond the wider one as diamonds."""
    from matplotlib.ticker import MaxNLocator

    dress(axes, palette)
    edges = np.stack([table["first"] - 1, table["last"]], axis=1).ravel()
    for least, most, alpha in (("lowest", "highest", 0.2), ("low", "high", 0.3)):
        below, above = (np.nan_to_num(measure.scale * np.repeat(table[end], 2)) for end in (least, most))
        axes.fill_between(edges, below, above, color=palette.band, alpha=alpha, linewidth=0, zorder=1)
    if measure.right is not None:
        axes.axhline(measure.right, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=2)
    low, high = limits_of(table, measure)
    value = np.clip(measure.scale * table["value"], low, high)
    known, beyond = np.isfinite(value), table["beyond"]
    middle, size = (table["first"] - 1 + table["last"]) / 2, 30 if len(value) <= 60 else 17
    axes.plot(middle[known], value[known], color=palette.accent, linewidth=1, alpha=0.6, zorder=4)
    for chosen, colour, marker in ((known & ~beyond, palette.accent, "o"), (known & beyond, palette.bad, "D")):
        axes.scatter(middle[chosen], value[chosen], s=size, color=colour, marker=marker, linewidth=0, zorder=5)
    axes.set(xlim=(float(edges[0]), float(edges[-1])), ylim=(low, high), ylabel=measure.words)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=STEPS))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    for place, words, side in ((1.0, measure.above, "top"), (0.0, measure.below, "bottom")):
        axes.text(
            1.012, place, words, transform=axes.transAxes, va=side, fontsize=9, color=palette.muted, linespacing=1.1
        )


def limits_of(table: Table, measure: _Measure) -> tuple[float, float]:
    """Room for all windows of at least half the usual rows: the last one may have few, and go anywhere."""
    rows = table["last"] - table["first"] + 1
    usual = rows >= rows.max() / 2
    found = np.concatenate([measure.scale * table[name][usual] for name in ("value", "lowest", "highest")])
    found = found[np.isfinite(found)] if np.isfinite(found).any() else np.array([0.0, 1.0])
    low, high = float(found.min()), float(found.max())
    padding = 0.07 * (high - low) or 0.5
    return (0.0 if measure.right is None else low - padding), high + padding


def legend_of(tables: Tables) -> Legend:
    """Marks and words."""
    level = level_in(tables)
    return (
        ("dot", "a window, within chance"),
        ("diamond", "beyond chance"),
        ("band", f"if calibrated, {level}; paler: all windows at once"),
    )


def layout_of(tables: Tables) -> Layout:
    """Room for words above where there are any."""
    above, raised = (ABOVE, ABOVE - 0.1) if tables["marks"].n_rows else (0.12, 0.0)
    return Layout((7.8, 4.5 + above), (0.75, 0.72, 0.56, above), raised)


class WindowsDisplay(Display):
    """Windows of a stream as a control chart: what each claimed less what happened, and its calibration error.

    Of forecasts of numbers, the mean and the standard deviation of the normal scores of PIT values: 0 and 1 where they
    are calibrated. The darker band holds a calibrated model in each window with chance ``level``, the paler one in all windows at
    once; only what leaves the paler one is marked. Windows describe: alarms are those of :class:`calibrant.Monitor`.
    ``tables`` hold ``gap`` and ``error``, or ``bias`` and ``spread``, with ``marks`` and ``settings``.

    >>> from calibrant import Monitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(800)
    >>> monitor = Monitor(window=200).update((rng.random(800) < p**2) * 1, p)
    >>> WindowsDisplay.from_monitor(monitor).tables["gap"]["value"].round(2)
    array([0.19, 0.15, 0.17, 0.17])
    """

    drawing = Drawing(draw, is_wide=True, layout_of=layout_of, legend_of=legend_of)

    @classmethod
    def from_monitor(
        cls, monitor: Monitor, *, group: str | None = None, level: float = 0.95, n_resamples: int = 999, seed: int = 0
    ) -> Self:
        """The windows that the monitor has kept.

        Of several labels or coordinates they are those of one ``group``, without a name the one that the evidence is about. Where
        an alarm is about one of several classes, the upper panel is that of this class, and the lower one of the confidence.
        """
        history = history_of(monitor)
        names = history.tally.groups
        if group is not None and group not in names:
            raise InputError(
                f"group must be one of {', '.join(names[:9])}; got {group!r}{did_you_mean(str(group), names)}"
            )
        place = strongest_group(monitor) if group is None else names.index(group)
        single = strongest_class(monitor) if group is None else None
        tables = Limits(level, n_resamples, seed).tables(history, place, single)
        name = names[place] if single is None else history.tally.classes[single]  # type: ignore[attr-defined]
        settings = Table(level=[level], group=[name])
        return cls({**tables, "marks": marks_of(monitor), "settings": settings})


windows = plotter(WindowsDisplay.from_monitor, "windows")
