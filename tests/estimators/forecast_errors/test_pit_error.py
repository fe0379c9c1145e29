import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from calibrant import Ensemble, ExactTest, MultivariateNormal, Normal, PITError, Poisson, Quantiles
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import CentralCoverage
from calibrant.estimators.forecast_errors.pit_error import distance_at, distance_from_uniform

DISTANCES = ("kolmogorov", "cramer-von-mises", "kuiper")


def test_distances_are_those_of_scipy(rng):
    u = rng.random((5, 40)) ** 1.5
    kolmogorov = [stats.kstest(row, "uniform").statistic for row in u]
    assert distance_from_uniform(u, None, "kolmogorov") == pytest.approx(kolmogorov, rel=1e-12)
    cramer = [stats.cramervonmises(row, "uniform").statistic for row in u]
    assert 40 * distance_from_uniform(u, None, "cramer-von-mises") ** 2 == pytest.approx(cramer, rel=1e-10)
    sides = [sum(stats.kstest(row, "uniform", alternative=a).statistic for a in ("less", "greater")) for row in u]
    assert distance_from_uniform(u, None, "kuiper") == pytest.approx(sides, rel=1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
def test_weights_are_repetitions(distance, rng):
    u, times = rng.random((1, 20)).round(1), rng.integers(1, 4, 20)
    repeated = distance_from_uniform(np.repeat(u, times, axis=1), None, distance)
    assert distance_from_uniform(u, times / times.sum(), distance) == pytest.approx(repeated, rel=1e-10)


@pytest.mark.parametrize("distance", DISTANCES)
def test_one_row_and_the_ends(distance):
    assert distance_from_uniform(np.array([[1.0]]), None, distance) == pytest.approx(
        np.sqrt(1 / 3) if distance == "cramer-von-mises" else 1
    )
    assert distance_from_uniform(np.array([[0.5]]), None, distance) == pytest.approx(
        {"kolmogorov": 0.5, "kuiper": 1.0, "cramer-von-mises": np.sqrt(1 / 12)}[distance]
    )


@pytest.mark.parametrize("distance", DISTANCES)
def test_it_conforms(distance, rng):
    batch = Normal.example(rng, 60)
    check_estimator(PITError(distance), batch.sample(rng, 1)[0], batch)


def rejections(make, estimator, sets=200):
    """How often calibrated data are rejected at 10 %, with 19 resamples."""
    rng = np.random.default_rng(5)
    test = ExactTest(estimator, n_resamples=19)
    hits = 0
    for i in range(sets):
        batch = make(rng)
        hits += test(batch.sample(rng, 1)[0], batch, rng=i).pvalue <= 0.1
    return hits


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_level_is_exact(distance, counts):
    """Two in twenty, within five standard deviations of 200 data sets."""
    most = 20 + 5 * np.sqrt(200 * 0.1 * 0.9)
    for family in (Normal, counts, Ensemble):
        assert 20 - 18 < rejections(lambda rng, family=family: family.example(rng, 12), PITError(distance)) < most
    assert rejections(lambda rng: MultivariateNormal.example(rng, 12), PITError(distance, "band"), sets=50) < 16


def test_power_against_bias_and_spread(rng):
    y = rng.normal(size=300)
    for wrong in (Normal(np.full(300, 0.4), 1.0), Normal(np.zeros(300), 1.6), Normal(np.zeros(300), 0.6)):
        assert all(ExactTest(PITError(d), n_resamples=99)(y, wrong).pvalue == 0.01 for d in DISTANCES)


def test_counts_are_tested_like_numbers(counts):
    rng = np.random.default_rng(1)
    batch = counts.example(rng, 400)
    y = batch.sample(rng, 1)[0]
    assert ExactTest(PITError(), n_resamples=99)(y, batch).pvalue > 0.05
    assert ExactTest(PITError(), n_resamples=99)(y, counts(batch.chance * 0.8)).pvalue == 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: PITError("chi-square"),
            "distance must be 'kolmogorov', 'cramer-von-mises' or 'kuiper'; got 'chi-square'",
        ),
        (lambda: PITError(prerank="mean"), "prerank must be"),
        (lambda: PITError()([0, 1], [0.2, 0.4]), "PITError needs a distribution function, which Categorical"),
        (
            lambda: PITError()([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0)),
            "PITError orders numbers and MultivariateNormal predicts vectors here: say how to order them",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("scale", [1.0, 1.3])
@pytest.mark.parametrize("n", [20, 400])
@pytest.mark.parametrize("kind", ["normal", "any interval", "quantiles", "counts"])
def test_the_interval_covers_the_distance_of_infinitely_many_rows(kind, scale, n, rng):
    """Targets are so many times as wide as forecast; of quantiles the gap at their levels, of counts that of another rate."""
    sets, levels = 300, np.array([0.1, 0.5, 0.9])
    at = levels if kind == "quantiles" else np.linspace(0.0, 1.0, 100_001)[1:-1]
    truth = np.abs(ndtr(ndtri(at) / scale) - at).max()
    batch: object = Normal(np.zeros(n), 1.0)
    error = PITError("kuiper" if kind == "any interval" else "kolmogorov")
    truth = 2 * truth if kind == "any interval" else truth  # as far above as below
    if kind == "quantiles":
        batch = Quantiles(np.tile(ndtri(levels), (n, 1)), levels)
    elif kind == "counts":
        batch, many = Poisson(np.full(n, 2.0)), Poisson(np.full(400_000, 2.0))
        truth = 0.0 if scale == 1 else float(PITError(seed=1)(rng.poisson(2 * scale, 400_000), many))
    below = above = 0
    for _ in range(sets):
        y = rng.poisson(2 * scale, n) if kind == "counts" else scale * rng.standard_normal(n)
        low, high = error(y, batch).confidence_interval(0.9)
        below, above = below + (truth + 0.003 < low), above + (truth - 0.003 * (kind == "counts") > high)
    assert max(below, above) <= binom.isf(0.001, sets, 0.05)


def test_where_no_interval_is_known_there_is_none(rng):
    batch = Normal(np.zeros(50), 1.0)
    assert not PITError("cramer-von-mises")(rng.standard_normal(50), batch).has_interval
    for distance in ("kolmogorov", "kuiper"):
        assert not PITError(distance)(rng.standard_normal(50), batch, sample_weight=np.ones(50)).has_interval


def test_quantiles_stand_for_the_levels_that_are_nearest(rng):
    """Cramer and von Mises' distance by integration over all levels."""
    levels, shares = np.array([0.05, 0.1, 0.4, 0.8]), rng.random((3, 4))
    u = (np.arange(200_000) + 0.5) / 200_000
    nearest = np.abs(u[:, None] - levels).argmin(axis=1)
    expected = [np.sqrt(np.mean((row - levels)[nearest] ** 2)) for row in shares]
    assert distance_at(shares, levels, "cramer-von-mises") == pytest.approx(expected, rel=1e-4)


def test_central_intervals_of_quantiles_are_those_between_them():
    fan = Quantiles(np.tile([0.0, 1.0, 2.0], (4, 1)), [0.1, 0.5, 0.9])
    assert CentralCoverage(0.8)([1.0, 1.5, 3.0, 0.5], fan).value == 0.75
    with pytest.raises(InputError, match="CentralCoverage asks for the levels 25 %, 75 %, and these quantiles have"):
        CentralCoverage(0.5)([1.0, 1.5, 3.0, 0.5], fan)
