import pytest

from calibrant.results import Interval
from calibrant.results.result import check_level


def test_an_interval_unpacks_and_holds_its_ends():
    low, high = interval = Interval(0.1, 0.4, 0.95, "bootstrap")
    assert (low, high) == (0.1, 0.4)
    assert 0.1 in interval
    assert 0.4 in interval
    assert 0.41 not in interval
    assert str(interval) == "0.1 to 0.4"


@pytest.mark.parametrize("level", [0, 1, 95, -0.5])
def test_levels_are_shares(level):
    with pytest.raises(ValueError, match=f"strictly between 0 and 1; got {level}"):
        check_level(level)
