import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, Ensemble, ExactTest, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import ZMean, ZVariance


def test_moments_of_the_scores(rng):
    batch = Normal.example(rng, 60)
    y = rng.normal(size=60)
    z = (y - batch.loc) / batch.scale
    mean, variance = ZMean()(y, batch), ZVariance()(y, batch)
    assert mean.value == pytest.approx(z.mean())
    assert mean.standard_error == pytest.approx(z.std(ddof=1) / np.sqrt(60))
    assert variance.value == pytest.approx(z.var())
    assert variance.standard_error == pytest.approx(((z - z.mean()) ** 2).std() / np.sqrt(60))


def test_weights_are_repetitions(rng):
    batch, times = Normal.example(rng, 30), rng.integers(0, 4, 30)
    y = batch.sample(rng, 1)[0]
    rows = np.repeat(np.arange(30), times)
    for estimator in (ZMean(), ZVariance()):
        assert estimator(y, batch, sample_weight=times).value == pytest.approx(estimator(y[rows], batch[rows]).value)


def test_vectors_average_their_coordinates(rng):
    batch = MultivariateNormal.example(rng, 50)
    y = batch.sample(rng, 1)[0]
    z = (y - batch.mean) / batch.std
    assert ZMean()(y, batch).value == pytest.approx(z.mean())
    assert ZVariance()(y, batch).value == pytest.approx(z.var(axis=0).mean())


def test_intervals_hold_the_truth(rng):
    """95 % intervals of calibrated data sets of 200 rows, within binomial bounds."""
    inside = np.zeros(2)
    for _ in range(300):
        batch = Normal.example(rng, 200)
        y = batch.sample(rng, 1)[0]
        inside += [0 in ZMean()(y, batch).confidence_interval(), 1 in ZVariance()(y, batch).confidence_interval()]
    assert np.all(inside / 300 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300))


@pytest.mark.parametrize("estimator", [ZMean(), ZVariance()])
@pytest.mark.parametrize("family", [Normal, Ensemble, MultivariateNormal])
def test_they_conform(estimator, family, rng):
    batch = family.example(rng, 40)
    check_estimator(estimator, batch.sample(rng, 1)[0], batch)


def test_bias_and_spread_are_told_apart(rng):
    y = rng.normal(size=300)
    tests = [ExactTest(e, n_resamples=99, alternative="two-sided") for e in (ZMean(), ZVariance())]
    low, wide = Normal(np.full(300, -0.5), 1.0), Normal(np.zeros(300), 2.0)
    assert [test(y, low).pvalue <= 0.02 for test in tests] == [True, False]
    assert [test(y, wide).pvalue <= 0.02 for test in tests] == [False, True]
    assert ZMean()(y, low).value > 0.3
    assert ZVariance()(y, wide).value < 0.4


def test_what_is_refused():
    with pytest.raises(
        InputError, match="ZMean divides by the predicted standard deviation, which is 0.0 in row 1: drop"
    ):
        ZMean()([0.0, 1.0], Ensemble([[0.0, 1.0], [2.0, 2.0]]))
    with pytest.raises(InputError, match="ZVariance needs a mean, which Categorical predictions do not have"):
        ZVariance()([0], [[0.2, 0.3, 0.5]])
    with pytest.raises(InputError, match=r"which is \[0.5 0. \] in row 0"):
        ZMean()([[0, 1]], Bernoulli([[0.5, 1.0]]))


def test_one_row():
    assert ZVariance()([3.0], Normal([0.0], 1.0)).value == 0
    assert ZVariance()([3.0], Normal([0.0], 1.0)).standard_error is None
    assert ZMean()([3.0], Normal([0.0], 1.0)).value == 3


def test_few_members_have_no_interval_of_the_variance(rng):
    """Three members lie close together so often that z-scores have no variance: 59 % of intervals of 100 rows held it."""
    few, many = (Ensemble(rng.normal(size=(100, m))) for m in (9, 10))
    found = ZVariance()(rng.normal(size=100), few)
    assert found.withheld.startswith("spreads of 9 members are near zero by chance")
    assert found.withheld.endswith("10 or more have an interval")
    assert ZVariance()(rng.normal(size=100), many).has_interval
    assert ZMean()(rng.normal(size=100), few).has_interval


def test_the_variance_of_ten_members_is_covered(rng):
    """Of exchangeable normal members and targets it is ``(m + 1) / (m - 3)``."""
    covered = 0
    for _ in range(300):
        x = rng.normal(size=(100, 11))
        covered += 11 / 7 in ZVariance()(x[:, 0], Ensemble(x[:, 1:])).confidence_interval()
    assert covered >= binom.ppf(0.001, 300, 0.95)
