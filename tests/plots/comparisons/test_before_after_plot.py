import numpy as np
import pytest

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.plots import BeforeAfterDisplay, PITHistogramDisplay, ReliabilityDisplay, before_after
from calibrant.recalibration import Platt
from calibrant.reports import before_and_after


def test_sides_are_the_displays_of_each(rng):
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    display = before_after(y, p, 0.3 + 0.1 * p, n_resamples=99)
    for side, q in (("before", p), ("after", 0.3 + 0.1 * p)):
        alone = ReliabilityDisplay.from_predictions(y, q, n_resamples=99).tables
        for name, table in alone.items():
            for column in table:
                np.testing.assert_array_equal(display.tables[f"{side}_{name}"][column], table[column])
    left, _, right, _ = display.ax_.child_axes
    assert (left.get_title(), right.get_title()) == ("Before", "After")
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()


def test_forecasts_show_levels_of_one_height(rng):
    y = rng.normal(0, 2, 200)
    display = before_after(y, Normal(np.zeros(200), 1.0), Normal(np.zeros(200), 2.0))
    alone = PITHistogramDisplay.from_predictions(y, Normal(np.zeros(200), 1.0)).tables["pit_histogram"]
    np.testing.assert_array_equal(display.tables["before_pit_histogram"]["observed"], alone["observed"])
    left, right = display.ax_.child_axes
    assert left.get_ylim() == right.get_ylim()
    assert len(display.to_svg()) < 150_000


def test_settings_are_those_of_one_side():
    with pytest.raises(InputError, match="method must be 'binned'"):
        BeforeAfterDisplay.from_predictions([0, 1], [0.2, 0.4], [0.3, 0.4], method="none")


def test_folds_of_a_map_are_for_the_report(rng):
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    parts = Platt().fit(y, p).held_out
    with pytest.raises(
        InputError, match=r"after holds the folds of a map: give them to calibrant\.reports\.before_and_after"
    ):
        before_after(y, p, parts)
    assert before_and_after(y, p, parts, n_resamples=99).n == 300
