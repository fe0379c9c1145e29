from dataclasses import replace

import numpy as np
import pytest

from calibrant import Monitor
from calibrant.reports.stream_report import stream_notes


@pytest.mark.parametrize(
    ("lines", "words"), [(1, "1 line could not be used and is left out"), (1200, "1,200 lines could")]
)
def test_lines_are_counted(watched, lines, words):
    assert stream_notes(watched(), lines)[0].startswith(words)
    assert not any("could not be used" in note for note in stream_notes(watched(), 0))


def test_windows_that_were_put_together_are_told(watched):
    notes = " ".join(stream_notes(watched(window=5), 0))
    assert "Windows had 5 rows at first" in notes
    assert "each has 10 now" in notes
    assert "tell little" in notes
    assert "at first" not in " ".join(stream_notes(watched(), 0))


def test_what_was_impossible_is_told():
    assert "probability zero" in " ".join(stream_notes(Monitor().update([1], [0.0]), 0))


def test_an_alarm_says_of_which_rows_a_report_would_tell_more(watched):
    monitor = watched()
    start = monitor.alarm.since - 1
    assert f"evaluate(y_true[{start}:], y_pred[{start}:])" in " ".join(stream_notes(monitor, 0))
    assert "evaluate" not in " ".join(stream_notes(watched(change=None), 0))


def test_rows_of_an_older_state_are_told(watched):
    monitor = replace(watched(n=100), history=None).update(np.array([1, 0]), np.array([0.5, 0.5]))
    assert "Windows begin after row 100" in " ".join(stream_notes(monitor, 0))


def test_labels_and_the_order_of_rows(watched):
    notes = " ".join(stream_notes(watched("multi-label"), 0))
    assert "may depend on each other" in notes
    assert "before its outcome was known" in notes
    assert stream_notes(Monitor(), 0) == ()
