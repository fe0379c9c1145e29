import numpy as np
import pytest

from calibrant import Bernoulli, Monitor, Normal
from calibrant._validate import InputError
from calibrant.monitoring.control import Limits
from calibrant.plots import WindowsDisplay, windows
from calibrant.plots.sequential.windows import MEASURES, limits_of
from calibrant.results import Table


def watched(n=620, window=100):
    rng = np.random.default_rng(1)
    p = rng.random(n)
    return Monitor(window=window).update((rng.random(n) < np.where(np.arange(n) < 300, p, p**3)) * 1, p)


def panels(display):
    return display.ax_.child_axes


def test_tables_are_those_of_the_limits():
    monitor = watched()
    tables = WindowsDisplay.from_monitor(monitor, level=0.9, n_resamples=199, seed=3).tables
    expected = Limits(0.9, 199, 3).tables(monitor.history)
    for name in ("gap", "error"):
        np.testing.assert_array_equal(tables[name]["high"], expected[name]["high"])
    assert tables["marks"]["row"].tolist() == [monitor.alarm.since, monitor.alarm.row]
    assert tables["settings"]["level"][0] == 0.9


def test_windows_beyond_chance_are_diamonds():
    display = windows(watched())
    upper, lower = panels(display)
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("Claimed \N{MINUS SIGN} happened, %", "Calibration error, %")
    gap = display.tables["gap"]
    inside, beyond = upper.collections[-2:]
    assert len(beyond.get_offsets()) == gap["beyond"].sum() > 0
    assert len(inside.get_offsets()) == (~gap["beyond"]).sum()
    np.testing.assert_allclose(beyond.get_offsets()[:, 1], 100 * gap["value"][gap["beyond"]])
    assert lower.get_xlim() == (0, 620)


def test_forecasts_show_bias_and_spread():
    y = np.random.default_rng(2).normal(0.5, 1.0, 101)
    display = windows(Monitor(window=50).update(y, Normal(np.zeros(101), 1.0)))
    assert [panel.get_ylabel() for panel in panels(display)] == ["Bias", "Spread"]
    assert "nan" not in display.to_svg()  # the last window has one row, and no spread


def test_a_short_last_window_does_not_set_the_axes():
    """Three rows may be off by anything."""
    ends = {"lowest": [-0.1, -0.9], "highest": [0.1, 0.9], "first": [1, 101], "last": [100, 103]}
    low, high = limits_of(Table(ends, value=[0.05, 0.8]), MEASURES["gap"])
    assert -12 < low < -10
    assert 10 < high < 12


def test_labels_are_chosen_by_name_or_by_the_evidence():
    rng = np.random.default_rng(3)
    p = rng.random((400, 2))
    monitor = Monitor().update((rng.random(p.shape) < p ** [1, 3]) * 1, Bernoulli(p, ["wet", "cold"]))
    assert WindowsDisplay.from_monitor(monitor).tables["settings"]["group"][0] == "cold"
    assert WindowsDisplay.from_monitor(monitor, group="wet").tables["settings"]["group"][0] == "wet"
    with pytest.raises(InputError, match="group must be one of wet, cold; got 'wett'"):
        WindowsDisplay.from_monitor(monitor, group="wett")


def test_refusals():
    with pytest.raises(InputError, match="no rows"):
        windows(Monitor())
    with pytest.raises(InputError, match="level"):
        windows(watched(), level=2)
