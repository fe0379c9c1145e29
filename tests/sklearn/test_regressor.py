import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from calibrant import SKCE, LogLoss, Normal
from calibrant._validate import InputError
from calibrant.recalibration import QuantileRecalibration, Recalibrated, Temperature, VarianceScaling
from calibrant.recalibration.predictive.quantile import PITMap
from calibrant.recalibration.predictive.variance import ScaledMap
from calibrant.sklearn import RecalibratedRegressor, RecalibrationWarning, scorer

quiet = pytest.mark.filterwarnings("ignore::calibrant.sklearn.RecalibrationWarning")


def drawn(n=400, seed=0):
    """Numbers with heavy tails around a curve."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_t(5, n)


def overconfident():
    """A Gaussian process that knows little of the noise."""
    return GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None, normalize_y=True)


def test_a_spread_put_right_by_hand():
    X, y = drawn()
    found = RecalibratedRegressor(overconfident()).fit(X, y)
    held_out = np.empty((2, 400))
    for learn, rest in KFold(5).split(X):
        held_out[:, rest] = overconfident().fit(X[learn], y[learn]).predict(X[rest], return_std=True)
    expected = VarianceScaling().fit(y, Normal(*held_out))
    assert found.recalibration_.map.factor == pytest.approx(expected.map.factor, rel=1e-12)
    assert found.recalibration_.map.factor > 2
    assert found.recalibration_.scores["before"][0] == pytest.approx(LogLoss()(y, Normal(*held_out)).value, rel=1e-9)
    mean, std = overconfident().fit(X, y).predict(X, return_std=True)
    new_mean, new_std = found.predict(X, return_std=True)
    assert new_mean == pytest.approx(mean, rel=1e-12)
    assert new_std == pytest.approx(expected.map.factor * std, rel=1e-9)
    assert isinstance(found.predict_dist(X), Normal)


def test_points_get_the_spread_and_the_shape_of_their_errors():
    X, y = drawn(2_000)
    found = RecalibratedRegressor(LinearRegression(), QuantileRecalibration()).fit(X[:1_000], y[:1_000])
    errors = y[:1_000] - cross_val_predict(LinearRegression(), X[:1_000], y[:1_000])
    scaled = RecalibratedRegressor(LinearRegression(), VarianceScaling()).fit(X[:1_000], y[:1_000])
    assert scaled.predict(X, return_std=True)[1] == pytest.approx(np.sqrt((errors**2).mean()))
    predictions = found.predict_dist(X[1_000:])
    assert isinstance(predictions, Recalibrated)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = found.predict_quantiles(X[1_000:], levels)
    reached = (y[1_000:, None] <= quantiles).mean(axis=0)
    # both the map and the share are of 1,000 rows
    assert np.all(np.abs(reached - levels) < 3.5 * np.sqrt(2 * levels * (1 - levels) / 1_000))
    assert np.array_equal(quantiles, predictions.quantile(levels))


def test_predictions_are_means_of_the_distributions(rng):
    X, y = drawn()
    found = RecalibratedRegressor(LinearRegression(), QuantileRecalibration()).fit(X, y)
    few = found.predict_dist(X[:5])
    draws = few.sample(rng, 40_000)
    mean, std = found.predict(X[:5], return_std=True)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * std / 200)
    assert std == pytest.approx(draws.std(axis=0), rel=0.05)  # five standard errors of tails like these
    assert np.array_equal(found.predict(X[:5]), mean)


@quiet
def test_the_default_is_the_better_of_a_factor_and_a_shape():
    X, _ = drawn(2_000)
    normal, skewed = (RecalibratedRegressor(BayesianRidge()).fit(X, X[:, 0] + noise) for noise in noises(2_000))
    assert isinstance(normal.recalibration_.map, ScaledMap)
    assert isinstance(skewed.recalibration_.map, PITMap)
    assert skewed.recalibration_.scores["change"][0] < -0.1


def noises(n):
    rng = np.random.default_rng(1)
    return rng.normal(size=n), rng.exponential(size=n)


@pytest.mark.parametrize("recalibrator", [VarianceScaling(bias=True), QuantileRecalibration(), Temperature()], ids=repr)
def test_held_out_rows_gain(recalibrator):
    X, y = drawn(800)
    found = RecalibratedRegressor(overconfident(), recalibrator).fit(X[:400], y[:400])
    plain = Normal(*overconfident().fit(X[:400], y[:400]).predict(X[400:], return_std=True))
    gain = LogLoss()(y[400:], plain).value - LogLoss()(y[400:], found.predict_dist(X[400:])).value
    assert gain > 1
    assert found.recalibration_.scores["change"][0] < -1  # promised
    assert not found.recalibration_.is_worse


class Frozen(BayesianRidge):
    def fit(self, X, y, sample_weight=None):
        assert not hasattr(self, "coef_"), "fitted again"
        return super().fit(X, y, sample_weight)


def test_a_frozen_estimator_is_not_fitted_again():
    X, y = drawn()
    model = Frozen().fit(X[:200], y[:200])
    found = RecalibratedRegressor(FrozenEstimator(model), VarianceScaling(bias=True)).fit(X[200:], y[200:])
    expected = VarianceScaling(bias=True).fit(y[200:], Normal(*model.predict(X[200:], return_std=True)))
    assert found.recalibration_.map.factor == expected.map.factor
    assert found.predict(X) == pytest.approx(model.predict(X) + expected.map.shift, rel=1e-12)


@quiet
def test_pipelines_frames_and_grids():
    pandas = pytest.importorskip("pandas")
    X, y = drawn()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = RecalibratedRegressor(make_pipeline(StandardScaler(), BayesianRidge()))
    found = model.fit(frame, pandas.Series(y))
    assert found.feature_names_in_.tolist() == ["a", "b"]
    grid = {"recalibrator": [VarianceScaling(), QuantileRecalibration()]}
    search = GridSearchCV(clone(model), grid, scoring=scorer(LogLoss()), cv=2, error_score="raise").fit(frame, y)
    assert search.best_params_["recalibrator"] in grid["recalibrator"]
    kernel = scorer(SKCE())(found, frame, y)
    assert kernel == -SKCE()(y, found.predict_dist(frame)).value


@quiet
def test_whole_weights_are_repetitions_within_the_same_folds(rng):
    X, y = drawn(200)
    w = rng.integers(0, 4, 200)
    learn, rest = np.arange(100), np.arange(100, 200)
    weighted = RecalibratedRegressor(LinearRegression(), VarianceScaling(bias=True), cv=[(learn, rest), (rest, learn)])
    weighted.fit(X, y, sample_weight=w)
    again = np.repeat(np.arange(200), w)
    first = np.flatnonzero(again < 100), np.flatnonzero(again >= 100)
    repeated = RecalibratedRegressor(LinearRegression(), VarianceScaling(bias=True), cv=[first, first[::-1]])
    repeated.fit(X[again], y[again])
    for one, other in zip(*(model.predict(X, return_std=True) for model in (weighted, repeated)), strict=True):
        assert one == pytest.approx(other, rel=1e-9)


@quiet
def test_a_model_that_says_that_it_is_certain():
    """scikit-learn's dummy tells a spread of 0, which counts as a millionth of that of the targets."""
    X, y = drawn()
    dummy = FrozenEstimator(DummyRegressor().fit(X, y))
    found = RecalibratedRegressor(dummy, VarianceScaling()).fit(X, y)
    assert found.recalibration_.map.factor == pytest.approx(1e6)
    assert found.predict(X, return_std=True)[1] == pytest.approx(np.full(400, y.std()))


@quiet
def test_targets_that_are_known_exactly():
    """Certainty is no distribution: the spread has a floor."""
    X = np.arange(20.0)[:, None]
    for y in (np.full(20, 3.0), 2 * X[:, 0]):
        for estimator in (LinearRegression(), GaussianProcessRegressor(optimizer=None)):
            mean, std = RecalibratedRegressor(estimator).fit(X, y).predict(X, return_std=True)
            assert np.isfinite(mean).all()
            assert np.all(std > 0)


def test_a_map_that_makes_held_out_rows_worse_is_told_of():
    y = np.random.default_rng(3).normal(size=200)
    model = RecalibratedRegressor(LinearRegression(), QuantileRecalibration())
    with pytest.warns(RecalibrationWarning, match=r"RecalibratedRegressor: QuantileRecalibration\(\) took the"):
        model.fit(np.zeros((200, 1)), y)


@quiet
def test_bad_input():
    X, y = drawn()
    with pytest.raises(InputError, match=r"such as Temperature\(\); got 'variance'"):
        RecalibratedRegressor(LinearRegression(), "variance").fit(X, y)
    found = RecalibratedRegressor(BayesianRidge()).fit(X, y)
    for levels in ([0.5, 1.0], [[0.5]], [np.nan]):
        with pytest.raises(InputError, match="levels must lie strictly between 0 and 1"):
            found.predict_quantiles(X, levels)
    assert found.predict_quantiles(X[:3], 0.5).shape == (3, 1)
    with pytest.raises(InputError, match=r"predicts values of shape \(400, 2\): one number per row is needed"):
        RecalibratedRegressor(FrozenEstimator(DecisionTreeRegressor().fit(X, np.stack([y, y], axis=1)))).fit(X, y)
    with pytest.raises(InputError, match="X and y have no rows"):
        RecalibratedRegressor(LinearRegression()).fit(X[:0], y[:0])
