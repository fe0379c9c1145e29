import numpy as np
import pytest

from calibrant import EqualMass, EqualWidth
from calibrant._validate import InputError
from calibrant.plots.base import resamples
from calibrant.plots.classification.reliability import Spaced, bins_of, floor_for


def test_resamples_grow_fewer_where_rows_are_many():
    assert [resamples(None, n, 200_000_000) for n in (10, 500_000, 10**8)] == [999, 400, 99]
    assert resamples(50, 10**8, 1) == 50
    with pytest.raises(InputError, match="n_resamples must be a whole number"):
        resamples(0, 10, 100)


def test_bins_follow_the_scores():
    wide, narrow = np.linspace(0, 1, 100), np.linspace(0.4, 0.5, 100)
    assert bins_of(wide, None) == EqualWidth(15)
    assert bins_of(wide, 0.001) == Spaced(0.001)
    assert bins_of(narrow, None) == EqualMass(15)


def test_log_odds_only_where_asked_or_crowded():
    crowd, even = np.array([0.001, 0.999, 0.5]), np.linspace(0, 1, 50)
    assert floor_for("probability", crowd, 100) is None
    assert floor_for("logit", even, 100) == 0.005
    assert floor_for("auto", crowd, 100) == 0.005
    assert floor_for("auto", even, 100) is None
