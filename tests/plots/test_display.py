import doctest
import inspect
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import calibrant.plots
from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.plots import ReliabilityDisplay, reliability
from calibrant.plots.base import predictions_of


class Classifier:
    classes_ = np.array(["ham", "spam"])

    def predict_proba(self, X):
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1)


class Process:
    def predict(self, X, return_std=False):
        return (X[:, 0], np.ones(len(X))) if return_std else X[:, 0]


class Forecaster:
    def predict_dist(self, X):
        return Normal(X[:, 0], 2.0)


def test_estimators_say_what_they_predict(rng):
    X = rng.random((50, 1))
    y = np.where(rng.random(50) < X[:, 0], "spam", "ham")
    display = ReliabilityDisplay.from_estimator(Classifier(), X, y, n_resamples=39)
    direct = ReliabilityDisplay.from_predictions(y == "spam", X[:, 0], n_resamples=39)
    np.testing.assert_array_equal(display.tables["curve"]["observed"], direct.tables["curve"]["observed"])
    assert isinstance(predictions_of(Classifier(), X), Categorical)
    assert predictions_of(Process(), X).std.tolist() == [1.0] * 50
    assert predictions_of(Forecaster(), X).std.tolist() == [2.0] * 50


def test_models_of_scikit_learn_are_taken(rng):
    linear = pytest.importorskip("sklearn.linear_model")
    X = rng.normal(size=(200, 2))
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")
    model = linear.LogisticRegression().fit(X, y)
    curve = ReliabilityDisplay.from_estimator(model, X, y, n_resamples=39).tables["curve"]
    assert np.average(curve["observed"], weights=curve["weight"]) == pytest.approx((y == "yes").mean())
    ridge = linear.BayesianRidge().fit(X, X[:, 0])
    assert isinstance(predictions_of(ridge, X), Normal)


def test_models_without_a_spread_are_refused():
    with pytest.raises(InputError, match="estimator must have predict_proba.*object has none"):
        predictions_of(object(), np.zeros((2, 1)))


def test_functions_show_all_their_settings():
    names = list(inspect.signature(reliability).parameters)
    assert names[:2] == ["y_true", "y_pred"]
    assert {"method", "band", "axis", "bins", "ax", "theme", "legend"} <= set(names)
    assert reliability.__name__ == "reliability"
    assert "ReliabilityDisplay" in reliability.__doc__


def test_a_display_says_what_it_holds():
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.9], n_resamples=39)
    assert repr(display) == "<ReliabilityDisplay (curve: 2 rows, histogram: 40 rows, settings: 1 row)>"


def test_every_public_name_is_there():
    for name in calibrant.plots.__all__:
        assert getattr(calibrant.plots, name).__doc__
    assert dir(calibrant.plots) == sorted(calibrant.plots.__all__)
    with pytest.raises(AttributeError, match="'calibrant.plots' has no attribute 'pie'"):
        calibrant.plots.pie  # noqa: B018


def test_importing_and_preparing_load_no_matplotlib():
    code = (
        "import sys, calibrant.plots, calibrant.reports.render.html\n"
        "calibrant.plots.ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.9], n_resamples=39)\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


FUNCTIONS = [name for name in calibrant.plots.__all__ if not name.endswith("Display")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example_that_runs(name):
    function = getattr(calibrant.plots, name)
    home = vars(import_module(function.__module__))
    test = doctest.DocTestParser().get_doctest(function.__doc__, dict(home), name, None, None)
    assert any(f"{name}(" in example.source for example in test.examples)
    said = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)
