"""The pictures of a watched stream, each with how to read it and what is seen."""

from calibrant.monitoring.control import Limits, strongest_class
from calibrant.monitoring.monitor import Monitor
from calibrant.plots.control_chart import WindowsDisplay
from calibrant.plots.drift_map import DriftDisplay
from calibrant.plots.evidence_line import EvidenceDisplay
from calibrant.reports.legible import shortened
from calibrant.reports.model import Picture
from calibrant.reports.monitor_sides import in_words, is_of_levels, paired, shown_name, sides_of, tables_of
from calibrant.reports.monitor_verdict import evalue
from calibrant.results import how_many, number, percent


def stream_pictures(monitor: Monitor, limits: Limits) -> tuple[Picture, ...]:
    """The evidence, the windows, where it goes wrong, and what is claimed and happens on both sides of the onset."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    return (_evidence(monitor), _windows(monitor, limits), _drift(monitor, limits), _sides(monitor, limits))


def _evidence(monitor: Monitor) -> Picture:
    enough = number(1 / monitor.alpha)
    seen = "does not reach" if monitor.alarm is None else f"at row {monitor.alarm.row:,} reaches"
    return Picture(
        "evidence",
        "The evidence, row by row",
        f"The e-value: what a capital of 1 has become that was bet against the model, on a scale of powers of ten. While a model "
        f"is calibrated no bet wins on average, and the line ever reaches {enough} with probability at most "
        f"{percent(monitor.alpha)}. A line that goes down says that bets lose.",
        f"Line of the e-value over {how_many(monitor.n, 'row')}, which {seen} the {enough} of an alarm; it ends at "
        f"{evalue(monitor.log_evalue)}.",
        EvidenceDisplay.from_monitor(monitor).tables,
    )


def _windows(monitor: Monitor, limits: Limits) -> Picture:
    assert monitor.history is not None
    tables = WindowsDisplay.from_monitor(
        monitor, level=limits.level, n_resamples=limits.n_resamples, seed=limits.seed
    ).tables
    first, second = (name for name in tables if name not in ("marks", "settings"))
    windows, level = tables[first].n_rows, f"{100 * limits.level:g} %"
    by_chance = f": of {windows} such windows {number(round((1 - limits.level) * windows, 1))} leave it by chance"
    return Picture(
        "windows",
        _title(monitor),
        f"{_meaning(monitor)} The darker band holds a calibrated model in {level} of windows, each by "
        f"itself{by_chance if windows > 1 else ''}. The paler band holds all windows and both panels at once in {level} of "
        "calibrated streams; only what leaves that one is marked. Windows describe: the alarm does not depend on them.",
        f"Control chart of {how_many(windows, 'window')}, {first} above and {second} below. Beyond the band of all windows at "
        f"once: {int(tables[first]['beyond'].sum())} of the {first}, {int(tables[second]['beyond'].sum())} of the {second}.",
        tables,
    )


def _title(monitor: Monitor) -> str:
    assert monitor.history is not None
    rows = monitor.history.spans.width
    name = shown_name(monitor)
    return f"Windows of {how_many(rows, 'row')}{f': {name}' if name else ''}"


def _meaning(monitor: Monitor) -> str:
    """What the two panels show."""
    if is_of_levels(monitor):
        return (
            "Bias and spread are the mean and the standard deviation of the normal scores of the outcomes' levels in their "
            "forecasts: 0 and 1 if forecasts are calibrated."
        )
    assert monitor.bets is not None
    parts = "in sixteen parts of the range of probabilities"
    if strongest_class(monitor) is not None:
        return (
            "Above, the mean probability of the class that the alarm is about less how often it happened; below, the mean distance "
            f"of the confidence in the favoured class from how often it was right, {parts}."
        )
    claim = {
        "multi-class": "the mean confidence in the favoured class less how often it was right",
        "multi-label": "the mean probability of the label less how often it applied",
    }.get(monitor.bets.kind, "the mean probability less how often it happened")
    return f"Above, {claim}; below, the mean distance of both {parts}."


def _drift(monitor: Monitor, limits: Limits) -> Picture:
    tables = DriftDisplay.from_monitor(
        monitor, level=limits.level, n_resamples=limits.n_resamples, seed=limits.seed
    ).tables
    cells, noun = tables["cells"], str(tables["settings"]["noun"][0])
    places = {
        "claim": "parts of the range of probabilities",
        "class": "classes",
        "label": "labels",
        "level": "levels of outcomes in their forecasts",
    }[noun]
    framed = ", ".join(dict.fromkeys(str(name) for name in cells["place"][cells["beyond"]].tolist()))
    at = f", at {shortened(framed, 400)}" if framed else ""
    return Picture(
        "drift",
        "Where it goes wrong, and when",
        f"Windows by {places}: what was claimed less what happened. Orange: claimed too much; blue: too little. Framed cells are "
        f"beyond chance; a calibrated stream has none with chance {100 * limits.level:g} %.",
        f"Map of {cells.n_rows} cells, windows by {places}; {int(cells['beyond'].sum())} are beyond chance{at}.",
        tables,
    )


def _sides(monitor: Monitor, limits: Limits) -> Picture:
    """Reliability diagrams or histograms of levels: one, or two where there is a before."""
    before, after = sides_of(monitor)
    one = "levels" if is_of_levels(monitor) else "reliability"
    how = (
        "Each bar is the share of outcomes at that level of their forecast, even where it is calibrated. High ends: too sure; a "
        "hump: too timid; a slope: too low where it rises."
        if is_of_levels(monitor)
        else "Each mark is a part of the range of probabilities; larger marks hold more rows. On the dashed line, claims come "
        "true as often as stated. A calibrated model leaves the band in about one part of twenty."
    )
    if before is None:
        return Picture(
            one, _heading(one), how, f"All windows: {in_words(monitor, after)}.", tables_of(monitor, after, limits)
        )
    tables = paired(tables_of(monitor, before, limits), tables_of(monitor, after, limits))
    assert monitor.alarm is not None
    return Picture(
        "before_after",
        f"{_heading(one)}, before and after about row {monitor.alarm.since:,}",
        f"{how} Windows before the row since which evidence grew, and those after it.",
        f"Before: {in_words(monitor, before)}. After: {in_words(monitor, after)}.",
        tables,
    )


def _heading(kind: str) -> str:
    return "Where outcomes lie in their forecasts" if kind == "levels" else "What was claimed, what happened"
