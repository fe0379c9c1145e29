"""What tests and intervals do with families of every kind: they run out of the box, hold their level, and have power."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import SKCE, AggregatedTest, ExactTest, Gamma, LogLoss, LogNormal, NegativeBinomial, Poisson, StudentT
from calibrant.distributions import Beta, Dirichlet, Logistic, PowerExponential, Uniform
from calibrant.estimators import UCME

FAMILIES = [
    *(StudentT, Logistic, PowerExponential, LogNormal, Gamma, Beta, Dirichlet, Uniform, Poisson, NegativeBinomial)
]

RESAMPLES = 19
"""P-values are then multiples of 1/20, each as likely as any other."""


def pvalues(test, family, n, data_sets, seed):
    rng = np.random.default_rng(seed)
    found = []
    for i in range(data_sets):
        predictions = family.example(rng, n)
        found.append(test(predictions.sample(rng, 1)[0], predictions, rng=i).pvalue)
    return np.array(found)


def check_level(found):
    """Rejections of calibrated predictions at several levels, within the 99.9 % binomial bound."""
    for alpha in (0.05, 0.2, 0.5):
        low, high = binom.interval(0.999, len(found), alpha)
        assert low <= (found <= alpha + 1e-9).sum() <= high, alpha


@pytest.mark.parametrize(("family", "n", "data_sets"), [(StudentT, 30, 100), (Poisson, 30, 200), (Poisson, 300, 40)])
def test_the_level_is_exact(family, n, data_sets):
    check_level(pvalues(ExactTest(SKCE(), n_resamples=RESAMPLES), family, n, data_sets, seed=1))


@pytest.mark.parametrize("family", [StudentT, Poisson])
def test_the_level_is_exact_with_many_rows(family):
    check_level(pvalues(ExactTest(LogLoss(), n_resamples=RESAMPLES), family, 300, 400, seed=2))
    check_level(pvalues(ExactTest(SKCE(), n_resamples=RESAMPLES), family, 300, 10, seed=3))


@pytest.mark.study
@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("family", FAMILIES)
def test_levels_of_all_families(family, n):
    data_sets = 1000 if n == 30 else 300
    for name, test in (
        ("SKCE", ExactTest(SKCE(), n_resamples=RESAMPLES)),
        ("log loss", ExactTest(LogLoss(), n_resamples=RESAMPLES)),
        ("aggregated", AggregatedTest(n_resamples=RESAMPLES)),
    ):
        found = pvalues(test, family, n, data_sets // (1 if name != "aggregated" else 4), seed=4)
        shares = ", ".join(f"{np.mean(found <= alpha + 1e-9):.3f}" for alpha in (0.05, 0.2, 0.5))
        print(f"{family.__name__:16} n={n:3} {name:10} of {len(found):4} data sets rejected at 5, 20, 50 %: {shares}")
        check_level(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_runs_out_of_the_box(family, rng):
    predictions = family.example(rng, 25)
    y = predictions.sample(rng, 1)[0]
    for estimator in (SKCE(), UCME(), LogLoss()):
        found = estimator(y, predictions)
        assert np.isfinite(found.value)
        assert 0 < ExactTest(estimator, n_resamples=9)(y, predictions).pvalue <= 1
    assert 0 < AggregatedTest(n_resamples=9)(y, predictions).pvalue <= 1
    found = SKCE()(y, predictions)
    interval = found.confidence_interval()
    assert 0 <= interval.low <= max(found.value, 0) <= interval.high


def wider(predictions):
    """The same families with more spread than was predicted."""
    if isinstance(predictions, StudentT):
        return StudentT(predictions.df, predictions.loc, 2 * predictions.scale)
    if isinstance(predictions, Uniform):
        width = predictions.high - predictions.low
        return Uniform(predictions.low - width / 2, predictions.high + width / 2)
    if isinstance(predictions, Logistic | LogNormal):
        return type(predictions)(predictions.loc, 2 * predictions.scale)
    if isinstance(predictions, Poisson | NegativeBinomial):
        return NegativeBinomial(predictions.rate, 3.0)
    return predictions.temper(4.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_too_narrow_predictions_are_found_out(family, rng):
    predictions = family.example(rng, 150)
    y = wider(predictions).sample(rng, 1)[0]
    assert ExactTest(SKCE(), n_resamples=49)(y, predictions).pvalue <= 0.04
    assert SKCE()(y, predictions).value > 0


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float32, np.float64])
def test_counts_of_any_type_have_the_same_error(dtype, rng):
    predictions = Poisson.example(rng, 30)
    y = predictions.sample(rng, 1)[0]
    assert SKCE()(y.astype(dtype), predictions).value == pytest.approx(SKCE()(y, predictions).value, rel=1e-4)


def test_counts_of_another_library_have_the_same_error(xp, rng):
    host = Poisson.example(rng, 30)
    y = host.sample(rng, 1)[0]
    found = SKCE()(xp.asarray(y), Poisson(xp.asarray(host.rate)))
    assert float(found.value) == pytest.approx(SKCE()(y, host).value, rel=1e-9)
    assert found.route == "spectral; plain"
