import numpy as np
import pytest

from calibrant import Categorical
from calibrant._validate import InputError
from calibrant.distributions import as_distribution, as_problem


def test_a_distribution_passes_as_it_is():
    batch = Categorical([0.1, 0.2])
    assert as_distribution(batch) is batch


def test_hard_predictions_are_probabilities():
    targets, predictions = as_problem([0, 1, 1], [0, 1, 0])
    assert predictions.probs.tolist() == [0.0, 1.0, 0.0]
    assert targets.tolist() == [0, 1, 1]


def test_booleans_and_columns_of_labels():
    assert as_problem([True, False], [0.1, 0.2])[0].tolist() == [1, 0]
    assert as_problem(np.array([[1], [0]]), [0.1, 0.2])[0].tolist() == [1, 0]


def test_a_lone_number_is_no_data():
    with pytest.raises(InputError, match="y_true is a single value"):
        as_problem(np.array(1), [0.5])


def test_columns_of_truth_that_predictions_have_not_are_refused():
    pandas = pytest.importorskip("pandas")
    truth = pandas.DataFrame({"a": [0, 1], "c": [1, 0]})
    with pytest.raises(InputError, match=r"y_true has the columns \['a', 'c'\] and y_pred has \['a', 'b'\]"):
        as_problem(truth, pandas.DataFrame({"a": [0.5, 0.5], "b": [0.5, 0.5]}))
