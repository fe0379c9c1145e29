import numpy as np
import pytest

from calibrant import Categorical, Ensemble, ExactTest, MultivariateNormal, Normal, groups
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import MeanStd, MeanWidth, ZVariance, by_spread
from calibrant.estimators.forecast_errors.spread import without_noise


def test_means_over_rows(rng):
    batch, w = Normal.example(rng, 40), rng.random(40)
    y = np.zeros(40)
    assert MeanStd()(y, batch, sample_weight=w).value == pytest.approx(np.average(batch.scale, weights=w))
    assert MeanWidth(0.95)(y, batch).value == pytest.approx(2 * 1.959964 * batch.scale.mean(), rel=1e-6)
    vectors = MultivariateNormal.example(rng, 40)
    assert MeanStd()(np.zeros((40, 3)), vectors).value == pytest.approx(vectors.std.mean())


@pytest.mark.parametrize("estimator", [MeanStd(), MeanWidth(0.5)])
def test_they_conform(estimator, rng):
    batch = Ensemble.example(rng, 30)
    check_estimator(estimator, batch.sample(rng, 1)[0], batch)
    assert ExactTest(estimator, n_resamples=19)(batch.sample(rng, 1)[0], batch).pvalue == 1  # targets play no part


def test_groups_by_spread_are_sorted_and_equal(rng):
    batch = Normal(np.zeros(100), rng.uniform(0.5, 2, 100))
    group = by_spread(batch, 4)
    names, sizes = np.unique(group, return_counts=True)
    assert sizes.tolist() == [25] * 4
    assert [batch.scale[group == name].mean() for name in names] == pytest.approx(names)
    assert np.all(np.diff([batch.scale[group == name].max() for name in names]) > 0)
    table = groups(ZVariance(), rng.normal(0, 1.0, 100), batch, by=group)
    assert np.all(np.diff(table["value"]) < 0)  # too sure where it says it is sure


def test_rows_of_equal_spread_are_one_group():
    assert by_spread(Normal([0.0, 1.0], 2.0)).tolist() == [2, 2]
    assert by_spread(Normal([0.0], 2.0)).tolist() == [2]


def test_what_is_refused():
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1; got 1"):
        MeanWidth(1)
    with pytest.raises(InputError, match="by_spread needs a standard deviation, which Categorical"):
        by_spread(Categorical([[0.2, 0.3, 0.5]]))
    with pytest.raises(InputError, match="n_bins must be a whole number of at least 1"):
        by_spread(Normal([0.0], 1.0), 0)
    with pytest.raises(InputError, match="MeanStd needs a standard deviation"):
        MeanStd()([0], [[0.2, 0.3, 0.5]])


def test_spreads_that_single_precision_tells_apart_are_two(rng):
    assert len(np.unique(without_noise(np.array([1.0, 1.000001, 9e-9, 9.000001e-9])))) == 4
    assert len(np.unique(without_noise(np.array([1.0, 1.0000001, 9e-9, 9.0000001e-9])))) == 2
