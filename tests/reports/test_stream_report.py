import json
from dataclasses import asdict

import numpy as np
import pytest

from calibrant import Monitor, monitor_report
from calibrant._validate import InputError

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
