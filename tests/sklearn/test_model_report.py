import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import BayesianRidge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

from calibrant import InputError, Normal, evaluate
from calibrant.sklearn import evaluate_model

FEW = {"n_resamples": 99, "advice": False, "rng": 0}


@pytest.fixture(scope="module")
def fitted():
    pandas = pytest.importorskip("pandas")
    X, y = make_classification(400, 6, flip_y=0.2, random_state=1)
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(site=np.arange(400) % 2)
    names = pandas.Series(np.array(["bad", "good"])[y])
    return GaussianNB().fit(frame[:200], names[:200]), frame[200:], names[200:]


def test_it_is_the_report_on_the_models_probabilities(fitted):
    model, X, y = fitted
    for event in ("good", "bad"):
        found = evaluate_model(model, X, y, pos_label=event, **FEW)
        p = model.predict_proba(X)[:, list(model.classes_).index(event)]
        plain = evaluate((y == event).to_numpy() * 1, p, **FEW)
        assert [x.value for x in found.numbers] == pytest.approx([x.value for x in plain.numbers], rel=1e-9)
    assert found.title == "Calibration of GaussianNB"


def test_slices_are_columns_of_the_inputs(fitted):
    model, X, y = fitted
    for by in ("site", ["site"], X["site"]):
        assert any(section.title == "By site" for section in evaluate_model(model, X, y, by=by, **FEW).sections)


def test_a_class_that_the_model_has_not_seen_has_probability_0():
    X, y = make_classification(300, 8, n_informative=4, n_classes=3, random_state=0)
    model = GaussianNB().fit(X[y < 2], y[y < 2])
    found = evaluate_model(model, X, y, **FEW)
    p = np.concatenate([model.predict_proba(X), np.zeros((300, 1))], axis=1)
    assert found.numbers[0].value == pytest.approx(evaluate(y, p, **FEW).numbers[0].value)


def test_regressors_that_know_their_spread():
    X, y = make_regression(200, 3, noise=10, random_state=0)
    model = BayesianRidge().fit(X[:100], y[:100])
    found = evaluate_model(model, X[100:], y[100:], **FEW)
    plain = evaluate(y[100:], Normal(*model.predict(X[100:], return_std=True)), **FEW)
    assert [x.value for x in found.numbers] == [x.value for x in plain.numbers]


def test_models_without_probabilities_are_sent_to_the_wrapper(fitted):
    _, X, y = fitted
    with pytest.raises(InputError, match="RidgeClassifier has no predict_proba: wrap it in RecalibratedClassifier"):
        evaluate_model(RidgeClassifier().fit(X, y), X, y)


def test_slips_are_answered(fitted):
    model, X, y = fitted
    with pytest.raises(InputError, match=r"^by='sites' is no column of X \(did you mean 'site'\?\)$"):
        evaluate_model(model, X, y, by="sites", **FEW)
    with pytest.raises(InputError, match="^model must be a fitted model of scikit-learn; got a method$"):
        evaluate_model(model.predict_proba, X, y)
    for swapped in ((model, y), (y, model)):
        with pytest.raises(InputError, match=r"is a GaussianNB: .* calibrant\.sklearn\.evaluate_model\(model, X, y\)$"):
            evaluate(*swapped)
