import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.inference.monte_carlo import at_least, at_most, nearer_tail, rounding_of


def test_ranks_count_ties(rng):
    pool = rng.integers(0, 5, 40).astype(float)
    assert at_least(pool).tolist() == [(pool >= x).sum() for x in pool]
    assert at_most(pool).tolist() == [(pool <= x).sum() for x in pool]


def test_rounding_makes_ties():
    pool = np.array([1.0, 1.0 + 1e-14, 2.0])
    assert at_least(pool).tolist() == [3, 3, 1]
    assert at_most(pool).tolist() == [2, 2, 3]
    assert rounding_of(pool) == 2e-12


def test_infinite_statistics_are_extreme():
    assert at_least(np.array([1.0, np.inf, 3.0])).tolist() == [3, 1, 2]


def test_the_nearer_tail_is_ranked_again():
    assert nearer_tail(np.array([1.0, 2.0, 3.0, 4.0, 5.0])).tolist() == [2, 4, 5, 4, 2]


def test_missing_statistics_are_refused():
    with pytest.raises(InputError, match="not a number for 1 of 3"):
        at_least(np.array([1.0, np.nan, 2.0]))
