import pytest

from calibrant import Monitor
from calibrant.monitoring.control import Limits
from calibrant.reports.render.html import DRAWINGS
from calibrant.reports.stream_report import stream_pictures

LIMITS = Limits(n_resamples=99)


def test_a_stream_has_two_pictures(watched, kind_of_stream):
    pictures = stream_pictures(watched(kind_of_stream), LIMITS)
    assert [picture.kind for picture in pictures] == ["evidence", "windows"]
    for picture in pictures:
        assert DRAWINGS[picture.kind].to_svg(picture.tables).startswith("<svg")
        assert picture.caption.endswith(".")
        assert len(picture.description) > 40


def test_no_rows_have_none():
    assert stream_pictures(Monitor(), LIMITS) == ()


def test_words_are_honest_about_bands(watched):
    windows = stream_pictures(watched(change=None), LIMITS)[1]
    assert "each by itself: of 16 such windows 0.8 leave it by chance" in windows.caption
    assert "all windows and both panels at once in 95 % of calibrated streams" in windows.caption
    assert "the alarm does not depend on them" in windows.caption
    assert windows.title == "Windows of 50 rows"


@pytest.mark.parametrize("kind", ["multi-label", "multi-class"])
def test_labels_and_classes_are_named(watched, kind):
    picture = stream_pictures(watched(kind), LIMITS)[1]
    assert picture.title == "Windows of 50 rows: dog"
    assert ("the class that the alarm is about" in picture.caption) == (kind == "multi-class")


def test_the_description_says_what_is_seen(watched):
    monitor = watched("multi-class")
    evidence, windows = (picture.description for picture in stream_pictures(monitor, LIMITS))
    assert f"at row {monitor.alarm.row:,} reaches the 20 of an alarm" in evidence
    beyond = stream_pictures(monitor, LIMITS)[1].tables["gap"]["beyond"].sum()
    assert f"{beyond} of the gap" in windows
    quiet = stream_pictures(Monitor().update([1, 0], [0.5, 0.5]), LIMITS)
    assert "does not reach" in quiet[0].description
