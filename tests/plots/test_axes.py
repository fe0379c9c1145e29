import numpy as np
import pytest
from scipy.special import logit

from calibrant.plots.style import limits_of, ticks_of


def test_labels_are_apart_and_symmetric():
    for low in (0.3, 0.1, 0.01, 1e-4, 1e-6):
        ticks = np.array(ticks_of(low, 1 - low, 0.13))
        assert len(ticks) >= 2
        assert (np.diff(logit(ticks)) > 0.13 * np.diff(logit(np.array([low, 1 - low])))).all()
        assert 0.5 in ticks


@pytest.mark.parametrize(
    ("values", "floor", "expected"),
    [
        ([0.0, 0.5], None, (-0.02, 1.02)),
        ([0.2, 0.3], None, (0.19, 0.31)),
        ([0.0, 0.1], None, (-0.002, 0.11)),
        ([0.3, 0.3], None, (0.28, 0.32)),
    ],
)
def test_limits_hold_all_values(values, floor, expected):
    assert limits_of(np.array(values), floor) == pytest.approx(expected)


def test_limits_in_log_odds_stay_inside():
    low, high = limits_of(np.array([0.0, 1.0]), 0.001)
    assert 0 < low < 0.001
    assert 0.999 < high < 1
    low, high = limits_of(np.array([1.0, 1.0]), 0.001)
    assert 0 < low < 0.999 < high < 1
