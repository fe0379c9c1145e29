import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import Learned
from calibrant.recalibration.stacking.learned import LearnedMap


def drawn(rng, k=3, n=400):
    p = rng.dirichlet(np.ones(k), n)
    truth = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("features", ["logits", "probabilities"])
def test_the_classifiers_answer_with_the_prediction_as_one_more_row(features, k, rng):
    y, p = drawn(rng, k)
    found = Learned(GaussianNB(), features).fit(y, p, folds=0)
    if features == "logits":
        x = np.log(np.maximum(p, 1 / 1600))
        x = x[:, 1:] - x[:, :1] if k == 2 else x - x.mean(axis=1, keepdims=True)
    else:
        x = p[:, 1:] if k == 2 else p
    expected = (400 * GaussianNB().fit(x, y).predict_proba(x) + p) / 401
    assert found(p) == pytest.approx(expected, rel=1e-12)


def test_logistic_regression_is_matrix_scaling_and_gains(rng):
    y, p = drawn(rng, 3, 2_000)
    found = Learned(LogisticRegression(C=np.inf)).fit(y, p)
    assert found.scores["change"][0] < -5 * found.scores["error"][0]


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_other_libraries(library, rng):
    module = pytest.importorskip(library)
    options = {"n_estimators": 10, "num_leaves": 4, "verbosity": -1, "n_jobs": 1}
    if library == "catboost":
        options = {"iterations": 10, "verbose": False, "thread_count": 1, "allow_writing_files": False}
    kind = module.LGBMClassifier if library == "lightgbm" else module.CatBoostClassifier
    y, p = drawn(rng, 3)
    found = Learned(kind(**options)).fit(y, p, folds=0)(p)
    assert found.sum(axis=1) == pytest.approx(1)


def test_the_classifier_that_was_given_stays_unfitted(rng):
    model = GaussianNB()
    Learned(model).fit(*drawn(rng), folds=0)
    assert not hasattr(model, "classes_")


def test_a_class_that_never_happened_keeps_a_chance(rng):
    y, p = drawn(rng)
    found = Learned(RandomForestClassifier(10, random_state=0)).fit(np.where(y == 2, 0, y), p, folds=0)
    assert np.all(found(p)[:, 2] > 0)
    alone = Learned(LogisticRegression()).fit(np.zeros(400, int), p, folds=0)
    assert alone(p)[:, 0] == pytest.approx((400 + p[:, 0]) / 401)


def test_weights_reach_the_classifier(rng):
    y, p = drawn(rng, 2)
    w = rng.integers(1, 4, 400)
    again = np.repeat(np.arange(400), w)
    weighted = Learned(GaussianNB()).fit(y, p, sample_weight=w, folds=0)
    repeated = Learned(GaussianNB()).fit(y[again], p[again], folds=0)
    assert weighted(p) == pytest.approx(repeated(p), abs=0.01)  # but for how many rows the prediction stands against
    assert weighted(p) != pytest.approx(Learned(GaussianNB()).fit(y, p, folds=0)(p), abs=0.01)
    with pytest.raises(InputError, match="sample_weight cannot be used: fit of KNeighborsClassifier does not take it"):
        Learned(KNeighborsClassifier()).fit(y, p, sample_weight=w)


def test_it_cannot_be_saved_and_says_what_to_do(rng, tmp_path):
    fitted = Learned(HistGradientBoostingClassifier(max_iter=5)).fit(*drawn(rng), folds=0)
    message = "a fitted HistGradientBoostingClassifier cannot be saved as JSON: keep the rows and fit it again, or use"
    for call in (lambda: fitted.save(tmp_path / "map.json"), fitted.to_json, fitted.map.to_dict):
        with pytest.raises(InputError, match=message):
            call()
    assert "Learned" in repr(fitted)


@pytest.mark.parametrize("classifier", [GaussianNB, "forest", object(), None])
def test_what_is_no_classifier(classifier):
    with pytest.raises(InputError, match="classifier must be an object with fit and predict_proba"):
        Learned(classifier)


def test_bad_input(rng):
    with pytest.raises(InputError, match="features must be 'logits' or 'probabilities'; got 'ranks'"):
        Learned(GaussianNB(), "ranks")
    with pytest.raises(InputError, match="Learned maps class probabilities; got Normal"):
        Learned(GaussianNB()).fit([0.0, 1.0], Normal([0.0, 0.0], 1.0))
    with pytest.raises(InputError, match="model must be a fitted classifier; got 'forest'"):
        LearnedMap(2, 10.0, None, np.array([0, 1]), "forest")
