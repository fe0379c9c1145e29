import numpy as np
import pytest

from calibrant import Monitor
from calibrant.monitoring.control import Limits
from calibrant.reports.render.html import columns_of, flags_of
from calibrant.reports.stream_verdict import stream_sections, window_table

LIMITS = Limits(n_resamples=199)


def test_windows_are_those_of_the_limits(watched):
    monitor = watched()
    (section,) = stream_sections(monitor, LIMITS)
    tables = LIMITS.tables(monitor.history)
    table = section.table
    np.testing.assert_array_equal(table["gap"], tables["gap"]["value"])
    np.testing.assert_array_equal(table["null_high"], tables["error"]["high"])
    np.testing.assert_array_equal(table["beyond_chance"], tables["gap"]["beyond"] | tables["error"]["beyond"])
    np.testing.assert_allclose(table["claimed"] - table["happened"], table["gap"])
    assert flags_of(table) == table["beyond_chance"].tolist()
    headings = [column.heading for column in columns_of(table)]
    assert headings == ["rows", "claimed", "happened", "gap", "if calibrated", "error", "if calibrated", "beyond"]
    assert columns_of(table)[0].texts[0] == "1 to 50"
    assert columns_of(table)[5].bars


def test_forecasts_have_bias_and_spread(watched):
    (section,) = stream_sections(watched("numbers"), LIMITS)
    headings = [column.heading for column in columns_of(section.table)]
    assert headings == ["rows", "bias", "if calibrated", "spread", "if calibrated", "beyond"]


@pytest.mark.parametrize(
    ("kind", "title", "first"),
    [
        ("multi-class", "By class", "dog"),
        ("multi-label", "By label", "dog"),
        ("vectors", "By coordinate", "coordinate 1"),
    ],
)
def test_what_is_wrong_comes_first(watched, kind, title, first):
    groups, windows = stream_sections(watched(kind), LIMITS)
    assert (groups.title, windows.title) == (title, f"Windows: {first}")
    assert groups.table["group"][0] == first
    assert groups.table["beyond_chance"][0]
    assert "since the onset" in groups.remark
    assert "{" not in groups.remark


def test_a_quiet_stream_has_all_windows(watched):
    groups, _ = stream_sections(watched("multi-class", change=None), LIMITS)
    assert groups.remark.startswith("Over all windows")
    assert groups.table["claimed"].sum() == pytest.approx(1)
    assert stream_sections(Monitor(), LIMITS) == ()


def test_a_window_of_one_row_has_no_spread(watched):
    monitor = watched("numbers", n=51)
    table = window_table(LIMITS.tables(monitor.history))
    assert np.isnan(table["spread"][-1])
    assert columns_of(table)[3].texts[-1] == ""
