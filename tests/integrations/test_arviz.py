"""Draws as ArviZ keeps them, by ArviZ where it is installed, else by mappings."""

import numpy as np
import pytest

from calibrant import CRPS, Ensemble, InputError
from calibrant.integrations import from_arviz


@pytest.fixture
def draws(rng):
    """Four chains of 25 draws for rows in a table of 3 x 2, and what was observed."""
    return rng.normal(size=(4, 25, 3, 2)), rng.normal(size=(3, 2))


def one_by_one(predicted, observed):
    """The same by a loop."""
    members = [[predicted[c, d, i, j] for c in range(4) for d in range(25)] for i in range(3) for j in range(2)]
    return np.array([observed[i, j] for i in range(3) for j in range(2)]), np.array(members)


def test_draws_are_members_and_the_rest_rows(draws):
    predicted, observed = draws
    y_true, y_pred = from_arviz({"posterior_predictive": {"y": predicted}, "observed_data": {"y": observed}})
    expected, members = one_by_one(predicted, observed)
    np.testing.assert_array_equal(y_true, expected)
    np.testing.assert_array_equal(y_pred.members, members)
    assert CRPS()(y_true, y_pred).value == pytest.approx(CRPS()(expected, Ensemble(members)).value, rel=1e-12)


def test_dimensions_are_read_by_name(draws):
    predicted, observed = draws
    turned = np.moveaxis(predicted, (0, 1), (3, 1))  # row, draw, column, chain

    class Named(np.ndarray):
        dims = ("row", "draw", "column", "chain")

    y_true, y_pred = from_arviz({"posterior_predictive": {"y": turned.view(Named)}, "observed_data": {"y": observed}})
    assert np.array_equal(np.sort(y_pred.members), np.sort(one_by_one(predicted, observed)[1]))
    assert np.array_equal(y_true, observed.ravel())


def test_real_containers(draws):
    arviz = pytest.importorskip("arviz")
    predicted, observed = draws
    groups = {"posterior_predictive": {"y": predicted, "z": predicted}, "observed_data": {"y": observed}}
    data = arviz.from_dict(**groups) if arviz.__version__.startswith("0.") else arviz.from_dict(groups)
    y_true, y_pred = from_arviz(data)
    np.testing.assert_array_equal(y_true, observed.ravel())
    np.testing.assert_array_equal(y_pred.members, one_by_one(predicted, observed)[1])


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"posterior": {}}, {}, "data has no group 'posterior_predictive'"),
        (3, {}, "data has no group"),
        ({"posterior_predictive": {"y": []}, "observed_data": {"z": []}}, {}, "name= is needed: .* are none"),
        (
            {"posterior_predictive": {"y": []}, "observed_data": {"y": []}},
            {"name": "z"},
            r"name='z' is not in both",
        ),
        (
            {"posterior_predictive": {"y": np.zeros((2, 5, 3))}, "observed_data": {"y": np.zeros(4)}},
            {},
            r"'y' has predictions of shape \(3,\) and observations of shape \(4,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(data, options, message):
    with pytest.raises(InputError, match=message):
        from_arviz(data, **options)
