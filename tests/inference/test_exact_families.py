"""The exact test keeps its level for every kind of prediction: how often calibrated models are rejected at 5 %."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from calibrant import SKCE, Ensemble, ExactTest, Laplace, Mixture, MultivariateNormal, Normal, Quantiles
from calibrant.distributions import Censored, Foreign, Histogram, Truncated

TEST = ExactTest(SKCE(), n_resamples=19)
"""At 5 %: rejected where no resample reaches what was observed."""


def members(rng, n):
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, 20))


FAMILIES = {
    "Ensemble of 20": lambda rng, n: Ensemble(members(rng, n)),
    "Ensemble of up to 20": lambda rng, n: Ensemble.from_ragged([row[: rng.integers(2, 20)] for row in members(rng, n)]),
    "Ensemble of vectors": lambda rng, n: Ensemble(rng.normal(size=(n, 1, 2)) + rng.normal(size=(n, 5, 2))),
    "Quantiles at 19 levels": lambda rng, n: Quantiles.joined(np.sort(members(rng, n)[:, 1:], axis=1), np.arange(1, 20) / 20),
    "Quantiles with zeros": lambda rng, n: Quantiles.joined(np.maximum(np.sort(members(rng, n)[:, 1:], axis=1), 0), np.arange(1, 20) / 20),
    "Histogram": lambda rng, n: Histogram([-np.inf, -1.0, 0.0, 1.0, np.inf], rng.dirichlet(np.ones(4), n)),
    "Mixture": Mixture.example,
    "Mixture of families": lambda rng, n: Mixture([Normal.example(rng, n), Laplace.example(rng, n), Ensemble.example(rng, n)]),
    "MultivariateNormal in 3 dimensions": MultivariateNormal.example,
    "Truncated": Truncated.example,
    "Censored": Censored.example,
    "Foreign": lambda rng, n: Foreign(stats.gumbel_r(rng.normal(size=n), rng.uniform(0.5, 2, n))),
}  # fmt: skip


INTEGRATED = ("Truncated", "Censored", "Foreign")
"""Whose characteristic functions are integrals, which take their time."""


def rejections(name, n, data_sets, seed):
    """How many of so many calibrated data sets are rejected."""
    rng = np.random.default_rng(seed)
    count = 0
    for repetition in range(data_sets):
        predictions = FAMILIES[name](rng, n)
        count += TEST(predictions.sample(rng, 1)[0], predictions, rng=repetition).pvalue <= 0.05
    return count


@pytest.mark.parametrize("name", FAMILIES)
def test_level_at_30_rows(name):
    data_sets = 15 if name in INTEGRATED else 25
    low, high = binom.interval(0.999, data_sets, 0.05)
    assert low <= rejections(name, 30, data_sets, seed=1) <= high


@pytest.mark.study
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("n", "data_sets"), [(30, 1000), (300, 300)])
def test_level_over_many_data_sets(name, n, data_sets):
    low, high = binom.interval(0.999, data_sets, 0.05)
    count = rejections(name, n, data_sets, seed=2)
    print(
        f"{name}, n = {n}: {100 * count / data_sets:.1f} % rejected at 5 % ({data_sets} data sets, bound {low:.0f} to {high:.0f})"
    )
    assert low <= count <= high


@pytest.mark.parametrize("name", FAMILIES)
def test_predictions_that_are_too_low_are_rejected(name, rng):
    predictions = FAMILIES[name](rng, 60)
    y = predictions.sample(rng, 1)[0]
    if name == "Truncated":  # whose targets must stay in their range
        y = np.where(np.isfinite(predictions.high), (y + predictions.high) / 2, y + 2)
    elif name == "Censored":
        y = np.clip(y + 1, predictions.low, predictions.high)
    else:
        y = y + 2
    assert ExactTest(SKCE(), n_resamples=99)(y, predictions).pvalue == 0.01
