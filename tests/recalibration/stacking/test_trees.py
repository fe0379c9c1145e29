import json

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration.stacking.boosted import Trees, joined
from calibrant.results import jsonable


def two_levels():
    """x0 <= 0 ? (x1 <= 1 ? a : b) : c."""
    return Trees([0, 1], [0.0, 1.0], [1, ~0], [~2, ~1], [0], [0], [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])


X = np.array([[-1.0, 0.0], [0.0, 1.0], [0.0, 1.5], [0.1, -9.0]])


def test_rows_go_left_up_to_the_threshold():
    assert two_levels()(X, 2).tolist() == [[1, 10], [1, 10], [2, 20], [3, 30]]


def test_values_add_up_in_the_columns_of_their_trees():
    stump = Trees([0], [0.0], [~0], [~1], [0], [2], [[5.0], [7.0]])
    leaf = Trees([], [], [], [], [~0], [1], [[0.5]])
    found = joined([stump, leaf, stump.times(2.0)], 1)(X, 3)
    assert found.tolist() == [[0, 0.5, 15], [0, 0.5, 15], [0, 0.5, 15], [0, 0.5, 21]]


def test_joined_trees_are_the_sum(rng):
    one = two_levels()
    both = joined([one, one.times(-0.5), one], 2)
    assert both(X, 2) == pytest.approx(1.5 * one(X, 2))
    assert joined([], 3)(X, 3).tolist() == np.zeros((4, 3)).tolist()


def test_no_tree_and_trees_come_back_from_json():
    for trees in (Trees.none(2), two_levels()):
        again = Trees(**json.loads(json.dumps(jsonable(trees.to_dict()))))
        assert np.array_equal(again(X, 2), trees(X, 2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"threshold": [0.0]}, "a threshold and two children a node"),
        ({"columns": [0, 1]}, "a column a root"),
        ({"left": [0, ~0]}, "children of trees must come after their parents"),
        ({"left": [5, ~0]}, "end in leaves that have values"),
        ({"right": [~3, ~1]}, "end in leaves that have values"),
    ],
)
def test_trees_that_are_none(changed, message):
    with pytest.raises(InputError, match=message):
        Trees(**{**vars(two_levels()), **changed})
