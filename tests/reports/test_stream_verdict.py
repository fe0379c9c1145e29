from dataclasses import replace

import numpy as np
import pytest

from calibrant import Monitor, Normal
from calibrant.monitoring import Alarm, Defect
from calibrant.monitoring.control import Limits
from calibrant.reports.stream_verdict import (
    in_words,
    is_of_pit,
    parts_of,
    pit_of,
    shown_name,
    sides_of,
    standing_out,
)
from calibrant.results import Finding


def test_windows_before_and_after_the_onset_leave_out_the_one_between(watched):
    monitor = watched()
    since, (first, last, _) = monitor.alarm.since, monitor.history.windows
    before, after = (float(parts_of(monitor, side).rows.sum()) for side in sides_of(monitor))
    assert before == last[last < since].max()
    assert after == monitor.n - first[first >= since].min() + 1
    assert before + after in (750, 800)


def test_without_an_alarm_or_a_window_before_it_all_is_one(watched):
    assert sides_of(watched(change=None)).before is None
    early = watched(n=100, change=0, window=100)
    assert early.alarm is not None
    assert sides_of(early).before is None
    late = watched(n=800, change=500, window=400)
    assert late.alarm.since > 401
    assert parts_of(late, sides_of(late).after).rows.sum() == 400  # no window begins later


def test_one_forecast_has_no_spread():
    one = Monitor().update([0.5], Normal(np.zeros(1), 1.0))
    assert in_words(one, sides_of(one).after) == "bias 0.50 in 1 row"
    two = one.update([-0.5], Normal(np.zeros(1), 1.0))
    assert in_words(two, sides_of(two).after) == "bias 0.00 and spread 0.71 in 2 rows"


def test_forecasts_are_watched_by_their_pit_values(watched):
    monitor = watched("numbers", change=None)
    assert pit_of(monitor, sides_of(monitor).after).rows == 800
    assert is_of_pit(monitor)
    assert not is_of_pit(Monitor())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("binary", "claimed and"),
        ("multi-class", "of dog claimed and"),
        ("multi-label", "of dog claimed and"),
        ("numbers", "bias"),
        ("vectors", "bias"),
    ],
)
def test_sides_in_words(watched, kind, words):
    monitor = watched(kind)
    before, after = (in_words(monitor, side) for side in sides_of(monitor))
    assert words in before
    assert before != after
    assert before.endswith("rows")


def test_without_an_alarm_classes_are_seen_by_the_confidence(watched):
    monitor = watched("multi-class", change=None)
    assert in_words(monitor, sides_of(monitor).after).startswith("a confidence of ")
    assert shown_name(monitor) == ""


def test_a_class_stands_out_where_the_alarm_is_about_all():
    """Twice as sure as it should be, of the second class alone."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 2000)
    truth = np.stack([p[:, 0] + p[:, 1] / 4, p[:, 1] / 2, p[:, 2] + p[:, 1] / 4], axis=1)
    y = (truth.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    defect = Defect(Finding.OVER_CONFIDENT, Finding.OVER_CONFIDENT)
    monitor = replace(Monitor(window=100).update(y, p), alarm=Alarm(100, 1, "the model is over-confident", defect))
    assert standing_out(monitor, sides_of(monitor).after, Limits()).startswith("the class 1, ")


def test_what_stands_out(watched):
    found = {}
    for kind in ("binary", "multi-class", "numbers"):
        monitor = watched(kind)
        found[kind] = standing_out(monitor, sides_of(monitor).after, Limits())
    assert found["binary"].startswith("claims between ")
    assert found["multi-class"] is None  # the alarm is about dog, and says so
    assert found["numbers"] is None
    quiet = watched(change=None)
    assert standing_out(quiet, sides_of(quiet).after, Limits()) is None
