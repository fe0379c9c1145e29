import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.integrate import quad
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from calibrant import Ensemble, Laplace, Normal
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.recalibration.recalibrated import Recalibrated
from calibrant.sklearn.outputs import (
    as_categorical,
    class_numbers,
    gives_spread,
    mean_and_std,
    probabilities,
    response,
    spread,
)


def test_numbers_of_classes_in_any_order():
    classes = np.array(["c", "a", "b"])
    assert class_numbers(np.array(["a", "b", "c", "a"]), classes).tolist() == [1, 2, 0, 1]
    with pytest.raises(InputError, match=r"does not know: \['d', 'z'\]; it knows \['c', 'a', 'b'\]"):
        class_numbers(np.array(["z", "a", "d"]), classes)


def test_numeric_names_do_not_renumber_targets():
    predictions = as_categorical(np.array([[0.2, 0.8]]), np.array([1, 0]))
    assert predictions.as_targets(np.array([1])).tolist() == [1]


def test_columns_of_classes_that_a_model_has_not_seen(rng):
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "c", "a")
    classes = np.array(["a", "b", "c"])
    p = response(GaussianNB().fit(X, y), X, classes)
    assert np.all(p[:, 1] == 0)
    assert p.sum(axis=1) == pytest.approx(1)
    model = RidgeClassifier().fit(X, y)
    logits = response(model, X, classes)
    assert np.all(logits[:, 1] == -np.inf)
    assert probabilities(logits, 1.0)[:, 2] == pytest.approx(expit(model.decision_function(X)))


def test_the_spread_of_logits_by_hand():
    logits = np.array([[0.0, 2.0], [0.0, -4.0]])  # 1 and 2 about the mean
    assert spread(logits, None) == pytest.approx(np.sqrt((1 + 4) / 2))
    assert spread(logits, np.array([3.0, 1.0])) == pytest.approx(np.sqrt((3 * 1 + 4) / 4))
    assert spread(np.zeros((3, 4)), None) == 1.0


def test_who_tells_a_spread():
    assert gives_spread(BayesianRidge())
    assert gives_spread(FrozenEstimator(make_pipeline(BayesianRidge())))
    assert not gives_spread(make_pipeline(LinearRegression()))


def moments(predictions):
    """By adaptive quadrature of the density, a row at a time."""
    found = []
    for i in range(len(predictions)):
        row = predictions[i : i + 1]
        centre = float(row.quantile(np.array([0.5]))[0, 0])

        def moment(power, row=row, centre=centre):
            def integrand(y):
                return (y - centre) ** power * np.exp(row.log_prob(np.array([y]))[0])

            return sum(quad(integrand, a, b, limit=400)[0] for a, b in ((centre - 60, centre), (centre, centre + 60)))

        first, second = moment(1), moment(2)
        found.append((centre + first, np.sqrt(second - first**2)))
    return np.array(found).T


@pytest.mark.parametrize(
    "predictions",
    [
        Normal([0.0, 3.0], [1.0, 2.0]),
        Laplace([0.0, 3.0], [1.0, 2.0]),
        Recalibrated(Normal([0.0, 3.0], [1.0, 2.0]), [-1.0, 0.0, 0.5], [-1.5, 0.1, 0.4]),
    ],
    ids=repr,
)
def test_means_and_spreads_from_quantiles(predictions):
    for found, expected in zip(mean_and_std(predictions), moments(predictions), strict=True):
        assert found == pytest.approx(expected, abs=1e-5, rel=1e-5)


def test_means_and_spreads_of_members(rng):
    members = rng.normal(size=(3, 10))
    mean, std = mean_and_std(Ensemble(members))
    assert mean == pytest.approx(members.mean(axis=1), abs=0.01)
    assert std == pytest.approx(members.std(axis=1), abs=0.01)


class Told(Normal):
    """Says its own moments."""

    mean = property(lambda self: self.loc + 1)
    std = property(lambda self: self.scale * 2)


def test_a_family_that_knows_its_moments_is_asked():
    assert isinstance(Told([0.0], [1.0]), Distribution)
    assert [x.tolist() for x in mean_and_std(Told([0.0], [1.0]))] == [[1.0], [2.0]]


def test_many_rows_are_taken_in_parts(rng, monkeypatch):
    predictions = Normal(rng.normal(size=50), rng.random(50) + 0.5)
    whole = mean_and_std(predictions)
    monkeypatch.setattr("calibrant.sklearn.outputs.AT_ONCE", 3_000)
    for part, all_at_once in zip(mean_and_std(predictions), whole, strict=True):
        assert part == pytest.approx(all_at_once, rel=1e-14)
