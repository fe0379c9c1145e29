import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant._wording import SPEAKS_OPTIONS
from calibrant.io import read

pytest.importorskip("polars")

CROSSING = "y,q_0.1,q_0.5,q_0.9\n1,0,1,2\n2,1.5,1,3\n3,2,3,4\n"


@pytest.fixture
def crossing(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text(CROSSING, encoding="utf-8")
    return path


@pytest.mark.parametrize("family", ["Quantiles(q_*)", "Quantiles.joined(q_*)", "Interval(q_0.1, q_0.5, 0.9)"])
def test_quantiles_that_cross_are_refused_and_sorted_where_asked(crossing, family):
    with pytest.raises(
        InputError, match=r"quantiles cross in 1 row, first in row 2 \(1.5, 1.*\): rearrange=True sorts them"
    ):
        read(crossing, y_true="y", predict=family)
    data = read(crossing, y_true="y", predict=family, rearrange=True)
    assert (np.diff(data.y_pred.values, axis=1) >= 0).all()
    assert "quantiles crossed in 1 row of 3, and were sorted" in data.notes


def test_a_command_is_told_its_option(crossing):
    token = SPEAKS_OPTIONS.set(True)
    try:
        with pytest.raises(InputError, match="--rearrange sorts them"):
            read(crossing, y_true="y", predict="Quantiles(q_*)")
    finally:
        SPEAKS_OPTIONS.reset(token)


def test_what_has_no_quantiles_cannot_be_rearranged(crossing):
    with pytest.raises(InputError, match="rearrange=True goes with Quantiles and Interval, and Normal has none"):
        read(crossing, y_true="y", predict="Normal(q_0.1, q_0.9)", rearrange=True)


def test_an_interval_is_two_quantiles(crossing):
    data = read(crossing, y_true="y", predict="Interval(q_0.5, q_0.9, 0.8)")
    np.testing.assert_array_equal(data.y_pred.values, [[1, 2], [1, 3], [3, 4]])
    np.testing.assert_allclose(data.y_pred.levels, [0.1, 0.9])


def test_columns_with_and_without_a_number_say_no_levels(tmp_path):
    (tmp_path / "q.csv").write_text("y,q_0.1,qu\n1,0.5,1\n0,0.4,1\n")
    with pytest.raises(InputError, match="the columns q_0.1, qu do not say their levels as in q_0.05"):
        read(tmp_path / "q.csv", y_true="y", predict="Quantiles(q*)")
