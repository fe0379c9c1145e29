"""A watched stream as a page: is the model still calibrated, since when not, and which way."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant.monitoring.control import Limits, strongest_class, strongest_group
from calibrant.monitoring.history import CUTS, EventSums, EventTally, History, PITSums, PITTally
from calibrant.monitoring.monitor import Alarm, Monitor
from calibrant.plots.sequential.evidence_plot import EvidenceDisplay
from calibrant.plots.sequential.windows import WindowsDisplay
from calibrant.reports.core.model import Page, Picture, Verdict
from calibrant.reports.evaluation import versions
from calibrant.reports.render.html import charts_of, rendered
from calibrant.results import SCHEMA, Finding, how_many, number, percent
from calibrant.results.result import plain_data
from calibrant.results.text import details, escaped, plain_text

ENDS = np.array([0.0, *CUTS, 1.0])
"""Ends of the parts that claims are kept in."""


class Sides(NamedTuple):
    """Sums of all windows before and of all after; ``before`` is ``None`` where all windows are one part."""

    before: np.ndarray | None
    after: np.ndarray


def sides_of(monitor: Monitor) -> Sides:
    """Windows that end before the alarm's first row, and those that begin with it or later; the one between is left out.

    Where none begins later, the one between is what comes after.
    """
    assert monitor.history is not None
    first, last, values = monitor.history.windows
    if monitor.alarm is None or not (last < monitor.alarm.since).any():
        return Sides(None, values.sum(axis=0))
    since = monitor.alarm.since
    later = first >= since
    later = later if later.any() else last >= since
    return Sides(values[last < since].sum(axis=0), values[later].sum(axis=0))


def parts_of(monitor: Monitor, values: np.ndarray) -> EventSums:
    """Sums by part of the range of claims, of the group that the evidence is about."""
    assert monitor.history is not None
    assert isinstance(monitor.history.tally, EventTally)
    return monitor.history.tally.by_part(values).at(strongest_group(monitor))


def pit_of(monitor: Monitor, values: np.ndarray) -> PITSums:
    """Sums of levels, of the group that the evidence is about."""
    assert monitor.history is not None
    assert isinstance(monitor.history.tally, PITTally)
    return PITSums(*(part[strongest_group(monitor)] for part in monitor.history.tally.by_group(values)))


def is_of_pit(monitor: Monitor) -> bool:
    """Whether forecasts of numbers are watched."""
    return monitor.history is not None and isinstance(monitor.history.tally, PITTally)


def shown_name(monitor: Monitor) -> str:
    """The class, label or coordinate that windows show; nothing where they show all there is."""
    assert monitor.history is not None
    tally, single = monitor.history.tally, strongest_class(monitor)
    if single is not None:
        return str(tally.classes[single])  # type: ignore[attr-defined]
    return str(tally.groups[strongest_group(monitor)]) if len(tally.groups) > 1 else ""


def in_words(monitor: Monitor, values: np.ndarray) -> str:
    """What one side shows, as a part of a sentence."""
    if is_of_pit(monitor):
        sums = pit_of(monitor, values)
        n, mean = float(sums.rows), float(sums.scores / sums.rows)
        if n == 1:
            return f"bias {mean:z.2f} in 1 row"  # which has no spread
        spread = np.sqrt(max(float(sums.squares) - n * mean**2, 0) / (n - 1))
        return f"bias {mean:z.2f} and spread {spread:.2f} in {round(n):,} rows"
    tally, single = monitor.history.tally, strongest_class(monitor)  # type: ignore[union-attr]
    assert isinstance(tally, EventTally)
    total = parts_of(monitor, values).over(-1) if single is None else tally.by_class(values).at(single)
    predicted, observed = (percent(float(part / total.rows)) for part in (total.predicted, total.observed))
    rows = how_many(round(float(total.rows)), "row")
    name = shown_name(monitor)
    if tally.classes and not name:
        return f"a confidence of {predicted} on average and {observed} right in {rows}"
    return f"{predicted}{f' of {name}' if name else ''} claimed and {observed} happened in {rows}"


def standing_out(monitor: Monitor, values: np.ndarray, limits: Limits) -> str | None:
    """The part, class or label of one side that is furthest beyond chance, in words; nothing where none is, or of levels."""
    if is_of_pit(monitor):
        return None
    assert monitor.history is not None
    tally = monitor.history.tally
    assert isinstance(tally, EventTally)
    sums = tally.by_class(values) if tally.classes else parts_of(monitor, values)
    score, drawn = (gap / np.sqrt(sums.noise + 1) for gap in (sums.gap, limits.resample(sums)))
    worst = int(np.argmax(np.abs(score)))
    enough = 1 - (1 - limits.level) / len(tally.groups)
    if abs(score[worst]) <= np.quantile(np.abs(drawn).max(axis=1), enough, method="higher"):
        return None
    if tally.classes and worst == strongest_class(monitor):
        return None  # which is told anyway
    predicted, observed = (percent(float(part[worst] / sums.rows[worst])) for part in (sums.predicted, sums.observed))
    if tally.classes:
        return f"the class {tally.classes[worst]}, {predicted} claimed and {observed} happened"
    place = f"{100 * ENDS[worst]:g} % and {100 * ENDS[worst + 1]:g} %"
    return f"claims between {place}, {predicted} on average, of which {observed} happened"


MAX_EARLY_SHARE = 0.1
"""A defect that began in this share of the rows up to its alarm, or in the first few, was there from the first."""


def judge_stream(monitor: Monitor, limits: Limits) -> Verdict:
    """The verdict rests on the e-process alone; windows only describe what it found."""
    if monitor.alarm is not None:
        return _alarmed(monitor, monitor.alarm, limits)
    if monitor.leaning is None:
        return Verdict("unsure", "No rows yet: nothing can be said.", (), 1.0, Finding.TOO_FEW_ROWS)
    enough = 1 / monitor.alpha
    evidence = (
        f"The e-value has been {evalue(monitor.peak)} at most, and {number(enough)} would raise the alarm; the p-value, valid at "
        f"every look, is {number(monitor.pvalue)}.",
        f"Most speaks for this: {monitor.leaning.words}, since about row {monitor.leaning.since:,}. That is no finding.",
        *_overall(monitor),
    )
    tone, headline, finding = _quiet(monitor)
    return Verdict(tone, headline, evidence, monitor.pvalue, finding)


def _quiet(monitor: Monitor) -> tuple[Literal["good", "unsure"], str, Finding]:
    """Tone, headline and finding without an alarm."""
    assert monitor.leaning is not None
    if monitor.n < MIN_ROWS:
        rows = how_many(monitor.n, "row")
        return "unsure", f"Too few rows to tell: no alarm after {rows}.", Finding.TOO_FEW_ROWS
    if monitor.peak >= -math.log(monitor.alpha) / 2:
        headline = f"No alarm in {monitor.n:,} rows, but evidence has gathered: {monitor.leaning.words}."
        return "unsure", headline, Finding.NONE
    return "good", f"No alarm in {monitor.n:,} rows: nothing says that the model is not calibrated.", Finding.NONE


def _alarmed(monitor: Monitor, alarm: Alarm, limits: Limits) -> Verdict:
    is_early = alarm.since <= max(MIN_ROWS, MAX_EARLY_SHARE * alarm.row)
    headline = (
        f"Not calibrated, from the first rows on: {alarm.words}."
        if is_early
        else f"Not calibrated any more since about row {alarm.since:,}: {alarm.words}."
    )
    evidence = (
        f"The evidence sufficed at row {alarm.row:,}: the e-value reached {number(1 / monitor.alpha)}, which it ever does for a "
        f"calibrated model with probability at most {percent(monitor.alpha)}, however long it is watched.",
        *_overall(monitor),
        *_where(monitor, limits),
        *_by_now(monitor, alarm),
    )
    return Verdict("bad", headline, evidence, monitor.pvalue, alarm.defect.finding)


def _overall(monitor: Monitor) -> tuple[str, ...]:
    """What was claimed and what happened, on both sides of the onset where there are two."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    before, after = sides_of(monitor)
    if before is None:
        return (f"Over all: {in_words(monitor, after)}.",)
    return (f"In the windows before: {in_words(monitor, before)}; in those since: {in_words(monitor, after)}.",)


def _where(monitor: Monitor, limits: Limits) -> tuple[str, ...]:
    """What is furthest off since then, where something is beyond chance."""
    found = None if monitor.history is None else standing_out(monitor, sides_of(monitor).after, limits)
    return () if found is None else (f"Furthest beyond chance since then: {found}.",)


def _by_now(monitor: Monitor, alarm: Alarm) -> tuple[str, ...]:
    """How the evidence stands after the last row, where that is news."""
    now = monitor.leaning
    if math.isinf(monitor.peak):
        return ("Something happened that had been given probability zero, which by itself is evidence without end.",)
    if monitor.log_evalue < -math.log(monitor.alpha):
        return (
            f"By row {monitor.n:,} the e-value has fallen to {evalue(monitor.log_evalue)}: rows since the alarm speak against what "
            "it said. Was something put right, or was it a false alarm?",
        )
    if now is not None and now.defect != alarm.defect:
        return (f"By row {monitor.n:,} most speaks for this: {now.words}, since about row {now.since:,}.",)
    return ()


def evalue(log_evalue: float) -> str:
    """An e-value with three digits, also where it is out of all bounds.

    >>> evalue(0.0), evalue(1.0), evalue(200.0), evalue(float("inf"))
    ('1', '2.72', '7e86', 'infinite')
    """
    power = log_evalue / math.log(10)
    if math.isinf(power):
        return "infinite" if power > 0 else "0"
    if -3 < power < 4:
        return f"{10**power:.3g}"
    whole = math.floor(power)
    return f"{10 ** (power - whole):.0f}e{whole}"


@dataclass(frozen=True, eq=False, repr=False)
class MonitorReport(Page):
    """Everything the page of a watched stream shows, as data; :func:`calibrant.monitor_report` makes it.

    The ``verdict`` rests on the e-process of the monitor alone; one of the two ``pictures`` describes windows of rows.

    >>> from calibrant import Monitor, monitor_report
    >>> page = monitor_report(Monitor(window=100).update([0, 1] * 100, [0.4, 0.6] * 100))
    >>> page.n, len(page.pictures)
    (200, 2)
    """

    title: str
    n: int
    kind: str
    verdict: Verdict
    alarm: Alarm | None
    log_evalue: float
    bad_lines: int
    pictures: tuple[Picture, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        head = {"schema": SCHEMA, "kind": "monitor-report", "title": self.title, "problem": self.kind}
        parts = ("n", "verdict", "alarm", "log_evalue", "bad_lines", "pictures", "notes", "settings")
        alarm = None if self.alarm is None else asdict(self.alarm)
        return head | plain_data(self, *parts) | {"alarm": alarm}

    def picture(self, kind: str) -> Picture:
        """The picture of this kind."""
        return next(picture for picture in self.pictures if picture.kind == kind)

    def to_html(self) -> str:
        """One self-contained page."""

        return to_html(self)

    def to_markdown(self) -> str:
        """Verdict and evidence in GitHub's Markdown; notes and settings to unfold."""
        from calibrant.reports.render.markdown import opening

        notes = [f"- {escaped(note, longest=600)}" for note in self.notes]
        settings = [f"- {escaped(name)}: {escaped(str(value))}" for name, value in self.settings.items()]
        parts = [*opening(self), details("Notes and settings", "\n".join([*notes, *settings]))]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _repr_html_(self) -> str:
        from calibrant.reports.render.notebook import summary

        about = f"{how_many(self.n, 'row')} · {escape(plain_text(self.kind))}"
        return summary(self.title, about, self.verdict, self.pictures, "")


KINDS = {"binary": "binary", "multi-class": "multi-class", "multi-label": "multi-label", "forecast": "forecasts"}
"""What is watched, by the kind of the bets."""


def monitor_report(
    monitor: Monitor,
    *,
    title: str = "Calibration of a stream",
    bad_lines: int = 0,
    notes: Sequence[str] = (),
    level: float = 0.95,
    n_resamples: int = 999,
) -> MonitorReport:
    """The page of a watched stream, as data: the verdict, the evidence row by row, and windows as a control chart.

    What is wrong on either side of the row that the verdict names, :func:`calibrant.evaluate` says of the rows there.

    ``bad_lines`` counts lines that could not be used, where rows came from a file; ``level`` is that of the bands of windows,
    ``n_resamples`` how many resamples they rest on. Nothing of the stream is read again: all is put together from what the
    monitor keeps, at a cost that does not depend on the rows.

    >>> import numpy as np
    >>> from calibrant import Monitor, monitor_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> truth = np.where(np.arange(2000) < 1000, p, p**2)  # the world changes half way
    >>> report = monitor_report(Monitor(window=100).update((rng.random(2000) < truth) * 1, p), n_resamples=199)
    >>> report.verdict.headline
    'Not calibrated any more since about row 1,006: probabilities are too high.'
    """
    if not isinstance(monitor, Monitor):
        raise InputError(f"monitor must be a Monitor, such as Monitor().update(y_true, y_pred); got {monitor!r}")
    check_count(bad_lines, "bad_lines", least=0)
    limits = Limits(level, n_resamples, monitor.seed)
    return MonitorReport(
        title=title,
        n=monitor.n,
        kind="no rows yet" if monitor.bets is None else KINDS[monitor.bets.kind],
        verdict=judge_stream(monitor, limits),
        alarm=monitor.alarm,
        log_evalue=monitor.log_evalue,
        bad_lines=bad_lines,
        pictures=stream_pictures(monitor, limits),
        notes=(*notes, *stream_notes(monitor, bad_lines)),
        settings=_settings(monitor, limits),
    )


def _settings(monitor: Monitor, limits: Limits) -> dict[str, Any]:
    """What repeats the run."""
    return {
        **versions(),
        "alpha": monitor.alpha,
        "seed": monitor.seed,
        "window": monitor.window,
        "bets": 0 if monitor.bets is None else len(monitor.bets.shares),
        "level": limits.level,
        "resamples": limits.n_resamples,
    }


def stream_pictures(monitor: Monitor, limits: Limits) -> tuple[Picture, ...]:
    """The evidence, and the windows."""
    if monitor.history is None or not len(monitor.history.windows.last):
        return ()
    return (_evidence(monitor), _windows(monitor, limits))


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
    if is_of_pit(monitor):
        return (
            "Bias and spread are the mean and the standard deviation of the normal scores of the outcomes' PIT values in their "
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


MIN_ROWS = 50
"""Windows of fewer rows tell little."""


def stream_notes(monitor: Monitor, bad_lines: int) -> tuple[str, ...]:
    """About lines, windows and the evidence."""
    found = []
    if bad_lines:
        lines = how_many(bad_lines, "line could not be used and is", "lines could not be used and are")
        found.append(f"{lines} left out; rows are counted without.")
    if math.isinf(monitor.peak):
        found.append("Something happened that had been given probability zero: one such row is evidence without end.")
    if monitor.history is not None:
        found += _about_windows(monitor, monitor.history)
    if monitor.bets is not None and monitor.bets.kind == "multi-label":
        found.append(
            "Labels of a row may depend on each other; each is tested by itself, and the picture shows one of them."
        )
    if monitor.alarm is not None:
        start = monitor.alarm.since - 1
        found.append(
            f"What is wrong, in full: a report of the rows since then, evaluate(y_true[{start}:], y_pred[{start}:]), beside one "
            "of the rows before."
        )
    if monitor.n:
        found.append(
            "The test holds where each prediction was made before its outcome was known, and rows come in that order; outcomes "
            "known together that hang together, as those of one day, are not covered."
        )
    return tuple(found)


def _about_windows(monitor: Monitor, history: History) -> list[str]:
    found = []
    start, width = history.spans.start, history.spans.width
    if start:
        found.append(f"Windows begin after row {start:,}: of earlier rows the state had kept the evidence alone.")
    if width > monitor.window:
        found.append(
            f"Windows had {monitor.window:,} rows at first. As there came more than {history.spans.most}, neighbours were put "
            f"together, so that memory does not grow: each has {width:,} now."
        )
    if width < MIN_ROWS:
        found.append(f"Windows of {how_many(width, 'row')} tell little: their bands are wide.")
    return found


def to_html(report: "MonitorReport") -> str:
    """The page, in the frame that all pages share."""
    there = {
        "pictures": ("Pictures", report.pictures),
        "notes": ("Data", True),
        "methods": ("Methods", True),
    }
    return rendered(
        "monitor.html.jinja",
        report,
        download="calibrant-monitor.json",
        parts={anchor: words for anchor, (words, part) in there.items() if part},
        charts=charts_of(report.pictures),
    )
