"""Conformance of every estimator of forecasts, so that a new one inherits its tests by joining the list."""

import pickle

import numpy as np
import pytest

from calibrant import CRPS, Ensemble, Laplace, Mixture, Normal, Pinball, PITError
from calibrant._validate import InputError
from calibrant.cli.settings import parse_estimator
from calibrant.estimators import (
    ENCE,
    EachDraw,
    EnergyScore,
    IntervalScore,
    MarginalError,
    MeanStd,
    MeanWidth,
    QuantileError,
    ThresholdError,
    ZMean,
    ZVariance,
)

ESTIMATORS = [
    CRPS(),
    CRPS(n_draws=50, seed=3),
    Pinball(),
    Pinball(0.9),
    IntervalScore(0.8),
    PITError(),
    PITError("cramer-von-mises"),
    PITError("kuiper"),
    QuantileError(),
    QuantileError([0.1, 0.9], squared=True),
    MarginalError([-1.0, 0.0, 1.0]),
    MarginalError(norm=2),
    ThresholdError([0.0, 0.5]),
    ENCE(4),
    ZMean(),
    ZVariance(),
    MeanStd(),
    MeanWidth(0.5),
]

CHOOSE_BY_ROWS = (MarginalError(norm=2),)
"""Thresholds are taken from the rows, however often each counts."""

FAMILIES = [Normal, Laplace, Mixture, Ensemble]


@pytest.fixture
def problem(rng):
    batch = Normal(rng.normal(size=90).round(1), rng.uniform(0.5, 2, 90).round(1))
    return rng.normal(0, 1.4, 90), batch


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
class TestEstimator:
    def test_order_of_rows_changes_nothing(self, estimator, problem, rng):
        y, batch = problem
        order = rng.permutation(len(y))
        assert estimator(y[order], batch[order]).value == pytest.approx(estimator(y, batch).value, rel=1e-11)

    def test_weights_equal_repetition_of_rows(self, estimator, problem, rng):
        if estimator in CHOOSE_BY_ROWS:
            pytest.skip("thresholds depend on the rows")
        y, batch = problem
        times = rng.integers(0, 4, len(y))
        rows = np.repeat(np.arange(len(y)), times)
        repeated = estimator(y[rows], batch[rows]).value
        assert estimator(y, batch, sample_weight=times).value == pytest.approx(repeated, rel=1e-11)

    def test_unit_weights_change_nothing(self, estimator, problem):
        y, batch = problem
        assert estimator(y, batch, sample_weight=np.ones(90)).value == pytest.approx(
            estimator(y, batch).value, rel=1e-11
        )

    def test_float32_is_close_to_float64(self, estimator, problem):
        y, batch = problem
        y32 = y.astype(np.float32)
        single = Normal(batch.loc.astype(np.float32), batch.scale.astype(np.float32))
        double = Normal(single.loc.astype(np.float64), single.scale.astype(np.float64))
        assert estimator(y32, single).value == pytest.approx(estimator(y32.astype(np.float64), double).value, rel=1e-5)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_resamples_in_bulk_equal_resamples_one_by_one(self, estimator, family, rng):
        batch = family.example(rng, 40)
        drawn = batch.sample(rng, 6)
        for weights in (None, rng.random(40)):
            fast = estimator.given(batch, weights)(drawn)
            assert fast == pytest.approx(EachDraw(estimator, batch, weights)(drawn), rel=1e-11)

    def test_result_carries_its_settings(self, estimator, problem):
        result = estimator(*problem)
        assert result.n == 90
        assert type(result.estimator) is type(estimator)
        assert isinstance(result.value, float)
        assert result.to_dict()["value"] == result.value

    def test_the_statistic_travels_to_other_processes(self, estimator, problem, rng):
        _, batch = problem
        statistic = estimator.given(batch, None)
        drawn = batch.sample(rng, 3)
        assert np.array_equal(pickle.loads(pickle.dumps(statistic))(drawn), statistic(drawn))

    def test_estimators_are_values(self, estimator):
        copy = pickle.loads(pickle.dumps(estimator))
        assert (copy, hash(copy)) == (estimator, hash(estimator))
        assert parse_estimator(repr(estimator)) == estimator

    def test_other_libraries(self, estimator, problem, xp):
        y, batch = problem
        there = Normal(xp.asarray(batch.loc), xp.asarray(batch.scale))
        assert estimator(xp.asarray(y), there).value == pytest.approx(estimator(y, batch).value, rel=1e-11)

    def test_one_row(self, estimator):
        assert np.isfinite(estimator([0.3], Normal([0.0], 1.0)).value)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0.0, np.nan], "y_true has NaN"),
            ([0.0], "y_true has 1 row and y_pred has 2"),
            ([[0.0, 1.0], [1.0, 2.0]], "y_true must be one number per row"),
            ([], "y_true is empty"),
            (["a", "b"], "y_true must hold real numbers"),
        ],
    )
    def test_bad_targets(self, estimator, y, message):
        with pytest.raises(InputError, match=message):
            estimator(y, Normal([0.0, 1.0], 1.0))


@pytest.mark.parametrize("estimator", [EnergyScore(), EnergyScore(fair=True), CRPS(fair=True)], ids=repr)
def test_estimators_of_members(estimator, rng):
    batch = Ensemble.example(rng, 30)
    y, drawn = batch.sample(rng, 1)[0], batch.sample(rng, 5)
    order = rng.permutation(30)
    assert estimator(y[order], batch[order]).value == pytest.approx(estimator(y, batch).value, rel=1e-11)
    for weights in (None, rng.random(30)):
        fast = estimator.given(batch, weights)(drawn)
        assert fast == pytest.approx(EachDraw(estimator, batch, weights)(drawn), rel=1e-11)
    assert parse_estimator(repr(estimator)) == estimator
