import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.distributions.empirical.ensemble import check_members, counted, padded


def test_missing_members_are_named():
    members = np.zeros((4, 3, 2))
    check_members(members)
    members[2, 1, 0] = np.nan
    members[3, 0, 1] = np.inf
    with pytest.raises(
        InputError,
        match="members has NaN or infinite values in 2 places, first in row 2, member 1: drop them; rows with .* Ensemble.from_ragged",
    ):
        check_members(members)


def test_rows_are_padded_without_weight():
    members, weights = padded([[1, 2, 3], [4.0], [5.0, 6.0]])
    assert members.tolist() == [[1, 2, 3], [4, 4, 4], [5, 6, 6]]
    assert weights == pytest.approx(np.array([[1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [0.5, 0.5, 0]]))
    vectors, weights = padded([np.ones((2, 3)), np.zeros((1, 3))])
    assert vectors.shape == (2, 2, 3)
    assert weights.tolist() == [[0.5, 0.5], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"rows must be lists of numbers, or of vectors of one length; got shapes \[\]"),
        ([[1.0], [[1.0, 2.0]]], r"got shapes \[\(1,\), \(1, 2\)\]"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], r"got shapes \[\(2, 2\), \(2, 3\)\]"),
        ([np.zeros((2, 2, 2))], r"got shapes \[\(2, 2, 2\)\]"),
        ([[1.0], []], r"rows\[1\] is empty"),
        ([[1.0], [2.0, np.nan]], r"rows\[1\] has NaN"),
    ],
)
def test_rows_are_checked(rows, message):
    with pytest.raises(InputError, match=message):
        padded(rows)


@pytest.mark.parametrize("compare", [np.less, np.less_equal])
def test_counts_for_stacks_of_targets(compare, rng):
    values, y = rng.integers(0, 5, (3, 7)), rng.integers(0, 5, (2, 4, 3))
    exact = compare(values, y[..., None]).sum(axis=-1)
    assert np.array_equal(counted(values, y, compare), exact)
