import numpy as np
import pytest

from calibrant import Categorical, Monitor
from calibrant._validate import InputError
from calibrant.monitoring.control import Limits
from calibrant.monitoring.control import drift as cells_of
from calibrant.plots import DriftDisplay, drift

NAMES = ["cat", "dog", "bird"]


def watched(n=1500):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], n)
    truth = p.copy()
    truth[700:, 1] *= 4
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Monitor(window=100).update(np.array(NAMES)[y], Categorical(p, NAMES))


def test_cells_are_those_of_the_stream_and_frames_those_beyond_chance():
    monitor = watched()
    display = drift(monitor, n_resamples=199)
    cells = display.tables["cells"]
    np.testing.assert_array_equal(cells["score"], cells_of(monitor.history, Limits(n_resamples=199))["score"])
    axes = display.ax_
    assert [tick.get_text() for tick in axes.get_yticklabels()] == NAMES
    assert len(axes.patches) == cells["beyond"].sum() > 0
    assert axes.get_ylabel() == "Class"


def test_marks_lie_between_the_columns_of_their_rows():
    monitor = watched()
    axes = drift(monitor).ax_
    since, alarm = (line.get_xdata()[0] for line in axes.lines[:2])
    assert since == pytest.approx(monitor.alarm.since / 100 - 0.5)
    assert alarm == pytest.approx(monitor.alarm.row / 100 - 0.5)


def test_refusals():
    with pytest.raises(InputError, match="no rows"):
        DriftDisplay.from_monitor(Monitor())
