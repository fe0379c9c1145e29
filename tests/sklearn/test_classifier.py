import numpy as np
import pytest

pytest.importorskip("sklearn")

from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from calibrant import Brier, LogLoss
from calibrant._validate import InputError
from calibrant.recalibration import Default, Isotonic, OneVsRest, Platt, Recalibration, Temperature, VectorScaling
from calibrant.sklearn import RecalibratedClassifier, RecalibrationWarning, scorer

quiet = pytest.mark.filterwarnings("ignore::calibrant.sklearn.RecalibrationWarning")


def drawn(k=3, n=600, seed=0):
    """Rows on which naive Bayes is far too sure of itself."""
    return make_classification(
        n, 12, n_informative=4, n_redundant=6, n_classes=k, n_clusters_per_class=1, flip_y=0.2, random_state=seed
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("recalibrator", [None, VectorScaling()], ids=repr)
def test_the_map_of_out_of_fold_predictions_by_hand(k, recalibrator):
    X, y = drawn(k)
    found = RecalibratedClassifier(GaussianNB(), recalibrator, ensemble=False).fit(X, y)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    by_hand = (recalibrator or Default()).fit(y, held_out)
    assert np.array_equal(found.predict_proba(X), by_hand(GaussianNB().fit(X, y).predict_proba(X)))
    assert isinstance(found.recalibration_, Recalibration)
    assert found.recalibration_.n == len(y)
    for score, row in zip((LogLoss(), Brier()), found.recalibration_.scores.rows(), strict=True):
        assert row["before"] == pytest.approx(score(y, held_out).value, rel=1e-9)


def test_an_ensemble_is_the_mean_of_the_folds_models_each_mapped():
    X, y = drawn()
    found = RecalibratedClassifier(GaussianNB(), Temperature(), cv=4).fit(X, y)
    models = [GaussianNB().fit(X[learn], y[learn]) for learn, _ in StratifiedKFold(4).split(X, y)]
    expected = np.mean([found.recalibration_(model.predict_proba(X)) for model in models], axis=0)
    assert found.predict_proba(X) == pytest.approx(expected, abs=1e-14)
    assert len(found.estimators_) == 4
    alone = RecalibratedClassifier(GaussianNB(), Temperature(), cv=4, ensemble=False).fit(X, y)
    assert alone.recalibration_.map == found.recalibration_.map


@pytest.mark.parametrize("ensemble", [True, False])
def test_it_mends_a_model_that_is_too_sure(ensemble):
    X, y = drawn(3, 4_000)
    X, y, fresh, truth = X[:2_000], y[:2_000], X[2_000:], y[2_000:]
    model = RecalibratedClassifier(GaussianNB(), ensemble=ensemble).fit(X, y)
    plain = GaussianNB().fit(X, y)
    gain = LogLoss()(truth, plain.predict_proba(fresh)).value - LogLoss()(truth, model.predict_proba(fresh)).value
    promised = -model.recalibration_.scores["change"][0]
    assert gain > 0.1
    assert gain == pytest.approx(promised, abs=5 * model.recalibration_.scores["error"][0])


class Frozen(GaussianNB):
    """Refuses to be fitted twice."""

    def fit(self, X, y, sample_weight=None):
        assert not hasattr(self, "classes_"), "fitted again"
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_frozen_estimator_is_not_fitted_again(ensemble):
    X, y = drawn()
    model = Frozen().fit(X[:300], y[:300])
    found = RecalibratedClassifier(FrozenEstimator(model), Temperature(), ensemble=ensemble).fit(X[300:], y[300:])
    expected = Temperature().fit(y[300:], model.predict_proba(X[300:]))
    assert found.recalibration_.map == expected.map
    assert np.array_equal(found.predict_proba(X), expected(model.predict_proba(X)))
    assert found.recalibration_.n == 300
    assert clone(found).fit(X[300:], y[300:]).estimators_[0].estimator is model


def test_rows_for_a_frozen_estimator_may_lack_a_class():
    X, y = drawn()
    model = FrozenEstimator(GaussianNB().fit(X, y))
    found = RecalibratedClassifier(model, Temperature()).fit(X[y > 0], y[y > 0])
    assert found.classes_.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"y has labels that the estimator does not know: \[7\]; it knows \[0, 1, 2\]"):
        RecalibratedClassifier(model).fit(X, np.where(y == 0, 7, y))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [np.array(["no", "yes", "why"]), np.array([7, -2, 40]), np.array([3.0, 1.0, 2.0])])
def test_labels_of_any_kind(k, kind):
    X, y = drawn(k)
    plain = RecalibratedClassifier(GaussianNB(), Temperature()).fit(X, y)
    order = np.argsort(kind[:k])
    named = RecalibratedClassifier(GaussianNB(), Temperature()).fit(X, kind[:k][order][y])
    assert np.array_equal(named.classes_, kind[:k][order])
    assert np.array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(named.predict(X), named.classes_[plain.predict(X)])
    assert named.score(X, kind[:k][order][y]) == plain.score(X, y)


def test_truth_values_are_labels():
    X, y = drawn(2)
    found = RecalibratedClassifier(GaussianNB(), Platt()).fit(X, y == 1)
    assert found.predict(X).dtype == bool


def test_data_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = pandas.Series(["setosa", "versicolor", "virginica"])[y].reset_index(drop=True)
    found = RecalibratedClassifier(LogisticRegression(max_iter=500), Temperature()).fit(X, names)
    assert found.feature_names_in_.tolist() == X.columns.tolist()
    assert found.n_features_in_ == 4
    assert set(found.predict(X)) == set(names)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict_proba(X.rename(columns={X.columns[0]: "other"}))


def test_inside_a_pipeline_and_around_one():
    X, y = drawn()
    within = make_pipeline(StandardScaler(), RecalibratedClassifier(GaussianNB(), Temperature())).fit(X, y)
    around = RecalibratedClassifier(make_pipeline(StandardScaler(), GaussianNB()), Temperature()).fit(X, y)
    assert within.predict_proba(X) == pytest.approx(around.predict_proba(X), abs=0.01)
    assert around.n_features_in_ == 12


@quiet
def test_a_grid_over_recalibrators():
    X, y = drawn(2)
    model = RecalibratedClassifier(LogisticRegression())
    grid = {"recalibrator": [Platt(), Isotonic(smoothed=True)], "estimator__C": [1e-3, 1.0]}
    search = GridSearchCV(model, grid, scoring=scorer(LogLoss()), cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["recalibrator"] in grid["recalibrator"]
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.predict_proba(X).shape == (600, 2)


def test_clones_are_alike():
    X, y = drawn()
    model = RecalibratedClassifier(GaussianNB(), Temperature(), cv=3, ensemble=False)
    again = clone(model)
    assert again.get_params()["recalibrator"] == Temperature()
    assert np.array_equal(again.fit(X, y).predict_proba(X), model.fit(X, y).predict_proba(X))
    assert cross_val_score(model, X, y, cv=3).shape == (3,)


def test_whole_weights_are_repetitions_within_the_same_folds(rng):
    X, y = drawn(2, 200)
    w = rng.integers(0, 4, 200)
    learn, rest = np.arange(100), np.arange(100, 200)
    weighted = RecalibratedClassifier(GaussianNB(), Platt(), cv=[(learn, rest), (rest, learn)])
    weighted.fit(X, y, sample_weight=w)
    again = np.repeat(np.arange(200), w)
    first = np.flatnonzero(again < 100), np.flatnonzero(again >= 100)
    repeated = RecalibratedClassifier(GaussianNB(), Platt(), cv=[first, first[::-1]]).fit(X[again], y[again])
    assert weighted.predict_proba(X) == pytest.approx(repeated.predict_proba(X), abs=1e-9)


def test_rows_without_weight_are_as_good_as_absent(rng):
    X, y = drawn(2, 300)
    w = rng.random(300) * (rng.random(300) < 0.7)
    with_all = RecalibratedClassifier(GaussianNB(), Platt()).fit(X, y, sample_weight=w)
    rows = np.flatnonzero(w)
    without = RecalibratedClassifier(GaussianNB(), Platt()).fit(X[rows], y[rows], sample_weight=w[rows])
    assert np.array_equal(with_all.predict_proba(X), without.predict_proba(X))


def test_a_model_that_takes_no_weights_is_told_of(rng):
    X, y = drawn(2, 300)
    model = RecalibratedClassifier(make_pipeline(StandardScaler(), GaussianNB()), Platt())
    with pytest.warns(RecalibrationWarning, match="Pipeline takes no sample_weight: weights count for the map alone"):
        weighted = model.fit(X, y, sample_weight=rng.random(300))
    assert weighted.recalibration_.map != clone(model).fit(X, y).recalibration_.map


@quiet
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("k", [2, 3])
def test_decision_values_of_any_size_are_logits(k, factor):
    X, y = drawn(k)
    model = FrozenEstimator(RidgeClassifier().fit(X[:300], y[:300]))
    recalibrator = Platt() if k == 2 else VectorScaling()
    found = RecalibratedClassifier(model, recalibrator).fit(X[300:], y[300:])
    expected = found.predict_proba(X)
    model.estimator.coef_ *= factor
    model.estimator.intercept_ *= factor
    larger = RecalibratedClassifier(model, recalibrator).fit(X[300:], y[300:])
    assert larger.predict_proba(X) == pytest.approx(expected, abs=1e-8)
    assert larger.decision_scale_ == pytest.approx(factor * found.decision_scale_)


def test_platt_scaling_of_decision_values_is_logistic_regression():
    X, y = drawn(2)
    model = Perceptron(random_state=0).fit(X[:300], y[:300])
    found = RecalibratedClassifier(FrozenEstimator(model), Platt()).fit(X[300:], y[300:])
    values = model.decision_function(X)[:, None]
    logistic = LogisticRegression(C=np.inf, tol=1e-10).fit(values[300:], y[300:])
    assert found.predict_proba(X) == pytest.approx(logistic.predict_proba(values), abs=1e-4)


@quiet
def test_a_class_missing_from_a_fold_is_told_of():
    X, y = drawn(3, 120)
    rows = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2]])
    X, y = X[rows], y[rows]
    # one of the two rows of class 2 lies in each fold, so that no model but one knows the class
    folds = [(np.flatnonzero(np.arange(len(y)) % 2 == i), np.flatnonzero(np.arange(len(y)) % 2 != i)) for i in (0, 1)]
    first = [np.setdiff1d(learn, np.flatnonzero(y == 2)) for learn, _ in folds]
    cv = [(first[0], folds[0][1]), folds[1]]
    with pytest.warns(RecalibrationWarning, match=r"models had not seen the classes \[2\] of 1 row that"):
        found = RecalibratedClassifier(LogisticRegression(), Temperature(), cv=cv).fit(X, y)
    p = found.predict_proba(X)
    assert p.shape == (len(y), 3)
    assert np.isfinite(p).all()
    assert found.recalibration_.n == len(y) - 1


@quiet
@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("recalibrator", [None, VectorScaling(), OneVsRest(Platt())], ids=repr)
def test_a_class_of_a_single_row(recalibrator):
    X, y = drawn(3, 200)
    rows = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:1]])
    found = RecalibratedClassifier(GaussianNB(), recalibrator).fit(X[rows], y[rows])
    p = found.predict_proba(X)
    assert np.isfinite(p).all()
    assert p.sum(axis=1) == pytest.approx(1)


def test_a_map_that_makes_held_out_rows_worse_is_told_of(rng):
    X, y = rng.normal(size=(80, 1)), rng.integers(2, size=80)
    model = RecalibratedClassifier(DummyClassifier(), Isotonic())
    with pytest.warns(
        RecalibrationWarning, match=r"Isotonic\(.*\) took the held-out log loss from 0.668. to 0.67.* use another"
    ):
        model.fit(X, y)
    assert model.recalibration_.is_worse
    assert "held-out log loss got worse: do not use this map" in model.recalibration_.notes


def test_the_zeros_and_ones_of_a_tree_are_mended():
    X, y = drawn(2, 200)
    model = RecalibratedClassifier(DecisionTreeClassifier(random_state=0), Temperature()).fit(X, y)
    assert np.isfinite(model.recalibration_.scores["after"]).all()
    assert "none after the map" in model.recalibration_.notes[0]
    assert model.predict_proba(X).min() > 0


def test_several_jobs_give_the_same():
    X, y = drawn()
    with parallel_config(backend="threading"):
        one, two = (RecalibratedClassifier(GaussianNB(), Temperature(), n_jobs=j).fit(X, y) for j in (None, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_single_split_and_rows_held_out_twice():
    X, y = drawn(2)
    found = RecalibratedClassifier(GaussianNB(), Platt(), cv=ShuffleSplit(1, test_size=0.3, random_state=0)).fit(X, y)
    assert found.recalibration_.n == 180
    with pytest.raises(
        InputError, match=r"cv holds row \d+ out \d times: take a cv that holds each row out at most once"
    ):
        RecalibratedClassifier(GaussianNB(), cv=ShuffleSplit(9, random_state=0)).fit(X, y)


class Odd(GaussianNB):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, :2]


def test_bad_input():
    X, y = drawn()
    with pytest.raises(InputError, match="must have predict_proba or decision_function; LinearRegression"):
        RecalibratedClassifier(LinearRegression()).fit(X, y)
    with pytest.raises(InputError, match=r"such as Temperature\(\); got 'isotonic'"):
        RecalibratedClassifier(GaussianNB(), "isotonic").fit(X, y)
    with pytest.raises(InputError, match="y has one class, .*1.*: at least two classes are needed"):
        RecalibratedClassifier(GaussianNB()).fit(X, np.ones(600, int))
    with pytest.raises(InputError, match="X and y have no rows"):
        RecalibratedClassifier(GaussianNB()).fit(X[:0], y[:0])
    with pytest.raises(InputError, match=r"Platt maps two classes and y_pred has 3: use OneVsRest\(Platt\(\)\)"):
        RecalibratedClassifier(GaussianNB(), Platt()).fit(X, y)
    with pytest.raises(InputError, match=r"Odd gives values of shape \(\d+, 2\) for 3 classes"):
        RecalibratedClassifier(Odd()).fit(X, y)
    with pytest.raises(InputError, match=r"one column per class is needed \(decision_function_shape='ovr' for SVC\)"):
        RecalibratedClassifier(SVC(decision_function_shape="ovo")).fit(*drawn(4))
    with pytest.raises(InputError, match="sample_weight must not be negative"):
        RecalibratedClassifier(GaussianNB()).fit(X, y, sample_weight=-np.ones(600))


def test_cv_prefit_of_old_is_sent_to_the_frozen_estimator():
    X, y = make_classification(200, random_state=0)
    with pytest.raises(InputError, match=r"^cv='prefit' is no .*, FrozenEstimator\(model\) of sklearn\.frozen$"):
        RecalibratedClassifier(GaussianNB().fit(X, y), Temperature(), cv="prefit").fit(X, y)
    RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, y)), Temperature()).fit(X, y)
