import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from calibrant import Monitor, Normal, monitor_report
from calibrant._validate import InputError
from calibrant.monitoring import Alarm, Defect
from calibrant.monitoring.control import Limits
from calibrant.reports.stream_report import (
    in_words,
    is_of_pit,
    parts_of,
    pit_of,
    shown_name,
    sides_of,
    standing_out,
)
from calibrant.results import Finding

HOSTILE = "<img src=x onerror=alert(1)> @someone | a"


def test_plain_data(watched, kind_of_stream, tmp_path):
    monitor = watched(kind_of_stream)
    report = monitor_report(monitor, title="Scores", bad_lines=3, n_resamples=99)
    data = json.loads(report.save(tmp_path / "x.json").read_text(encoding="utf-8"))
    assert data == json.loads(report.to_json())
    assert (data["schema"], data["kind"], data["title"], data["n"]) == ("calibrant/1", "monitor-report", "Scores", 800)
    assert data["alarm"] == asdict(monitor.alarm)
    assert data["alarm"]["defect"]["finding"] == data["verdict"]["finding"]
    assert (data["bad_lines"], data["log_evalue"]) == (3, monitor.log_evalue)
    assert data["verdict"]["pvalue"] == monitor.pvalue
    assert [picture["kind"] for picture in data["pictures"]] == ["evidence", "windows"]
    assert report.picture("windows").tables["marks"].n_rows
    assert data["settings"]["resamples"] == 99
    assert report.picture("windows").kind == "windows"


def test_the_same_from_a_state(watched):
    monitor = watched()
    again = Monitor.from_dict(json.loads(monitor.to_json()))
    assert monitor_report(again, n_resamples=99).to_json() == monitor_report(monitor, n_resamples=99).to_json()


def test_a_comment(watched, tmp_path):
    report = monitor_report(watched("multi-class", names=(HOSTILE, HOSTILE + "2", "c")), title=HOSTILE, n_resamples=99)
    text = report.save(tmp_path / "x.md").read_text(encoding="utf-8")
    assert text.startswith("### ❌ Not calibrated any more since about row ")
    assert "<img" not in text
    assert "@someone" not in text
    assert "<details>" in text


def test_one_row_is_no_rows():
    report = monitor_report(Monitor(window=1).update([1], [0.3]), n_resamples=99)
    assert " · 1 row · " in report.to_markdown()
    assert "1 rows" not in report.to_json()
    assert "1 windows" not in report.to_json()


def test_reading_and_notebooks(watched):
    report = monitor_report(watched(), title=HOSTILE, n_resamples=99)
    assert report.verdict.headline in repr(report)
    pytest.importorskip("matplotlib")
    shown = report._repr_html_()
    assert "<img" not in shown
    assert "Not calibrated any more" in shown
    assert "<svg" in shown
    assert "No rows yet" in monitor_report(Monitor())._repr_html_()


def test_impossible_outcomes_and_the_first_window(watched):
    monitor = Monitor(window=10).update([1] * 12, [0.0] * 12)
    report = monitor_report(monitor, n_resamples=99)
    assert report.alarm.row == 1
    assert report.log_evalue == np.inf
    assert json.loads(report.to_json())["log_evalue"] == "inf"
    assert json.loads(report.to_json())["verdict"]["pvalue"] == 0
    assert report.picture("windows").tables["gap"]["beyond"].all()


def test_nothing_is_computed_again(watched):
    """A report of a stream a hundred times as long has as many windows at most."""
    rng = np.random.default_rng(0)
    p = rng.random(60_000)
    monitor = Monitor(window=10).update((rng.random(60_000) < p) * 1, p)
    windows = monitor_report(monitor, n_resamples=99).picture("windows").tables["gap"]
    assert 50 <= windows.n_rows <= 100
    assert windows["last"][-1] == 60_000


def test_refusals(watched):
    with pytest.raises(InputError, match="monitor must be a Monitor"):
        monitor_report([1, 0])
    with pytest.raises(InputError, match="bad_lines"):
        monitor_report(watched(), bad_lines=-1)
    with pytest.raises(InputError, match="level"):
        monitor_report(watched(), level=0)


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
