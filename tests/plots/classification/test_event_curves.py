import numpy as np
import pytest

from calibrant.plots.classification.event_curves import histogram_of, is_crowded


@pytest.mark.parametrize("floor", [None, 0.001])
@pytest.mark.parametrize(
    "scores", [np.array([0.4]), np.array([0.0, 1.0]), np.array([0.2, 0.21]), np.linspace(0, 1, 77), np.full(5, 0.3)]
)
def test_every_row_is_counted_once(scores, floor):
    table = histogram_of(scores, None, floor)
    assert table["weight"].sum() == len(scores)
    assert table.n_rows == 40
    assert (table["upper"] > table["lower"]).all()


def test_parts_are_equal_in_log_odds():
    table = histogram_of(np.array([0.0001, 0.5, 0.999]), None, 0.001)
    edges = np.append(table["lower"], table["upper"][-1])
    np.testing.assert_allclose(np.diff(np.log(edges / (1 - edges))), 2 * np.log(999) / 40)
    assert table["weight"][[0, -1]].tolist() == [1, 1]


def test_weights_count():
    assert histogram_of(np.array([0.1, 0.9]), np.array([2.0, 0.5]))["weight"].sum() == 2.5


def test_crowds_stand_at_the_ends():
    scores = np.array([0.01, 0.99, 0.5])
    assert is_crowded(scores)
    assert not is_crowded(scores, np.array([1.0, 1.0, 3.0]))
