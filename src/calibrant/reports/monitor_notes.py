"""What a reader should know of a watched stream before believing its page."""

import math

from calibrant.monitoring.history import History
from calibrant.monitoring.monitor import Monitor
from calibrant.results import how_many

FEW = 50
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
    if width < FEW:
        found.append(f"Windows of {how_many(width, 'row')} tell little: their bands are wide.")
    return found
