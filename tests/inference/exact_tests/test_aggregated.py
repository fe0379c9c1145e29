from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import ECE, SKCE, AggregatedTest, Bernoulli, Categorical, EqualMass, ExactTest, Normal, Poisson
from calibrant._validate import InputError
from calibrant.estimators import TailScan
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels
from calibrant.inference.exact_tests.aggregated import Pool, default_grid, scales_around
from calibrant.kernels import Exponential, Gaussian
from calibrant.lab import Localised, RareTop, Sharp, Sigmoid, Smooth, Tempered

RARE = {
    "0.1 to 2 %": lambda rng: Categorical(rng.uniform(0.001, 0.02, 100)),
    "99.9 %": lambda rng: Categorical(np.full(200, 0.999)),
    "ties and exact 0 and 1": lambda rng: Categorical(rng.choice([0, 0.1, 0.5, 1.0], 50)),
    "one dominant class": lambda rng: Categorical(rng.dirichlet([20.0, 0.2, 0.1], 40)),
    "ten classes": lambda rng: Categorical(rng.dirichlet(np.full(10, 0.3), 30)),
}
"""Calibrated predictions, from a generator."""


def test_one_statistic_is_the_exact_test(rng):
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    estimator = SKCE(Exponential(0.3))
    alone = ExactTest(estimator, 99)(y, p, rng=5)
    result = AggregatedTest((estimator,), 99)(y, p, rng=5)
    assert result.pvalue == alone.pvalue
    assert np.array_equal(result.null_distribution, alone.null_distribution)


def test_the_smallest_rank_is_ranked_again(rng):
    p = rng.random(40)
    y = (rng.random(40) < p).astype(int)
    estimators = SKCE(Exponential(0.1)), ECE(EqualMass(5)), ECE()
    result = AggregatedTest(estimators, 49)(y, p, rng=1)
    alone = [ExactTest(e, 49)(y, p, rng=1) for e in estimators]
    pool = np.stack([np.append(t.null_distribution, t.statistic) for t in alone])
    ranks = np.array([[(row >= x - 1e-15).sum() for x in row] for row in pool]).min(axis=0)
    scores = ((pool - pool.mean(axis=1, keepdims=True)) / pool.std(axis=1, keepdims=True)).max(axis=0)
    first = (ranks < ranks[-1]) | ((ranks == ranks[-1]) & (scores >= scores[-1]))
    assert result.pvalue == first.mean()
    assert result.statistic in [t.statistic for t in alone]


@pytest.mark.parametrize("n", [2, 10, 40])
def test_the_level_is_exact(n):
    """Rejections of calibrated predictions at 5 %, within the 99.9 % binomial bound."""
    rng, rejected, sets = np.random.default_rng(n), 0, 300
    for _ in range(sets):
        p = rng.random(n)
        y = (rng.random(n) < p).astype(int)
        rejected += AggregatedTest(n_resamples=39)(y, p, rng=rng).pvalue <= 0.05
    low, high = binom.ppf([0.0005, 0.9995], sets, 0.05)
    assert rejected <= high
    if n > 2:  # two rows have few different statistics, and ties count against rejection
        assert low <= rejected


def test_fine_and_coarse_errors_are_found(rng):
    p = rng.random(1500)
    fine = (rng.random(1500) < p + 0.25 * np.sign(np.sin(60 * p)) * np.minimum(p, 1 - p) * 2).astype(int)
    coarse = (rng.random(1500) < 0.2 + 0.6 * p).astype(int)
    for y in (fine, coarse):
        assert AggregatedTest(n_resamples=199)(y, p).pvalue == 0.005


@pytest.mark.parametrize(
    ("predictions", "kind", "count", "tails"),
    [
        (Categorical([0.2, 0.3, 0.5]), SKCE, 2, 1),
        (Categorical([[0.2, 0.3, 0.5]]), SKCE, 3, 2),
        (Bernoulli([[0.2, 0.9], [0.1, 0.4]]), ECE, 4, 1),
        (Normal([0.0, 1.0], 1.0), SKCE, 6, 0),
    ],
)
def test_default_grids(predictions, kind, count, tails):
    grid = default_grid(predictions)
    assert len(set(grid)) == len(grid)
    assert [sum(isinstance(e, wanted) for e in grid) for wanted in (kind, TailScan)] == [count, tails]


def test_a_wrong_top_of_a_rare_event_is_found(bounds):
    """Claims above one half fail in 5 of 1,000 rows; errors over all rows reject this as often as a calibrated model."""
    rng = np.random.default_rng(3)
    rejected = [
        AggregatedTest(n_resamples=39)(*RareTop(1.0).draw(10_000, rng), rng=rng).pvalue <= 0.05 for _ in range(20)
    ]
    assert sum(rejected) >= bounds(20, 0.8)[0]


@pytest.mark.filterwarnings("ignore:class .* never occurs")
@pytest.mark.parametrize("world", RARE)
def test_the_level_is_exact_for_rare_and_certain_events(world, bounds):
    rng, rejected, sets = np.random.default_rng(8), 0, 200
    for _ in range(sets):
        predictions = RARE[world](rng)
        y = predictions.sample(rng, 1)[0]
        rejected += AggregatedTest(n_resamples=39)(y, predictions, rng=rng).pvalue <= 0.05
    assert rejected <= bounds(sets)[1]


def test_every_family_can_be_tested(rng):
    predictions = Normal.example(rng, 30)
    result = AggregatedTest(n_resamples=19)(predictions.sample(rng, 1)[0], predictions)
    assert 0.05 <= result.pvalue <= 1
    assert isinstance(result.estimate.estimator.on_targets, Gaussian)
    assert "6 statistics; the strongest is SKCE" in result.notes[0]


def test_engines_change_no_digit(rng, monkeypatch):
    monkeypatch.setattr("calibrant.inference.monte_carlo.CHUNK", 500)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    plain = AggregatedTest(n_resamples=59)(y, p, rng=3)
    with ThreadPoolExecutor(2) as pool:
        assert AggregatedTest(n_resamples=59)(y, p, rng=3, engine=pool).pvalue == plain.pvalue


@pytest.mark.parametrize("p", [np.full(30, 0.5), np.tile([0.0, 1.0], 15)])
def test_constant_and_certain_predictions(p, rng):
    y = (rng.random(30) < p).astype(int)
    assert AggregatedTest(n_resamples=19)(y, p).pvalue >= 0.05
    if p.min() == 0:
        assert AggregatedTest(n_resamples=19)(1 - y, p).pvalue == 0.05


@pytest.mark.filterwarnings("ignore:class .* never occurs")
@pytest.mark.parametrize(
    ("y", "predictions"),
    [
        ([1], Categorical([0.3])),
        ([0], Categorical([0.0])),
        ([0], Categorical([[0.2, 0.3, 0.5]])),
        ([[1, 0]], Bernoulli([[0.2, 0.9]])),
        ([0.3], Normal([0.0], 1.0)),
        ([1], Poisson([0.5])),
    ],
    ids=repr,
)
def test_one_row(y, predictions):
    result = AggregatedTest(n_resamples=19)(y, predictions)
    assert 0.05 <= result.pvalue <= 1
    assert np.isfinite(result.statistic)


def test_one_row_is_exact_too(bounds):
    """One claim of 2 %: it comes true in 2 % of cases, and then the test rejects at 5 %."""
    rng = np.random.default_rng(0)
    pvalues = [AggregatedTest(n_resamples=99)([y], [0.02], rng=rng).pvalue for y in (rng.random(100) < 0.02) * 1]
    assert sum(p <= 0.05 for p in pvalues) <= bounds(100)[1]
    assert AggregatedTest(n_resamples=99)([1], [0.001]).pvalue <= 0.02
    assert AggregatedTest(n_resamples=99)([1], [0.0]).pvalue == 0.01


def test_what_needs_pairs_refuses_one_row():
    with pytest.raises(InputError, match="the unbiased SKCE needs at least two rows; unbiased=False takes one"):
        AggregatedTest((ECE(), SKCE()), n_resamples=19)([1], [0.3])


def test_bad_settings():
    with pytest.raises(InputError, match="estimators must be estimators"):
        AggregatedTest(())
    with pytest.raises(InputError, match="n_resamples must be a whole number of at least 1; got 0"):
        AggregatedTest(n_resamples=0)


@pytest.mark.study
@pytest.mark.parametrize("world", [Smooth(0.35), Sharp(1.0), Localised(0.6)], ids=repr)
def test_power_is_near_that_of_the_best_length_scale(world):
    """Never below 0.8 of the best of many scales, whichever that is; one of them is the median distance."""
    rng, factors = np.random.default_rng(6), (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
    rejected = np.zeros(len(factors) + 1)
    for _ in range(200):
        y, predictions = world.draw(500, rng)
        unit = SKCE()(y, predictions).estimator.on_predictions.unit
        tests = [*(ExactTest(SKCE(Exponential(f * unit)), 199) for f in factors), AggregatedTest(n_resamples=199)]
        rejected += [test(y, predictions, rng=rng).pvalue <= 0.05 for test in tests]
    print(world, (rejected / 200).tolist())
    assert rejected[-1] >= 0.8 * rejected[:-1].max()
    assert 100 < rejected[:-1].max() < 200  # neither hopeless nor easy


@pytest.mark.study
def test_power_in_the_tail_of_a_rare_event():
    """At least 0.8 at 10,000 rows; and a calibrated world alike is rejected as seldom as promised."""
    rng, sets = np.random.default_rng(9), 300
    rates = []
    for world in (RareTop(1.0), RareTop(0.0)):
        drawn = (world.draw(10_000, rng) for _ in range(sets))
        rates.append(np.mean([AggregatedTest(n_resamples=199)(*problem, rng=rng).pvalue <= 0.05 for problem in drawn]))
    print("rejected, wrong and calibrated", rates)
    assert rates[0] >= 0.8
    assert rates[1] <= binom.ppf(0.9995, sets, 0.05) / sets


@pytest.mark.study
@pytest.mark.parametrize(
    "world", [Smooth(0.35), Sharp(1.0), Localised(0.6), Sigmoid(1.0, -0.25), Tempered(3, 1.3)], ids=repr
)
def test_tails_cost_at_most_five_points_of_power(world):
    """The statistics of today against kernel errors at three scales alone, on the same resamples."""
    rng, sets, rejected = np.random.default_rng(6), 300, np.zeros(2)
    for _ in range(sets):
        y, predictions = world.draw(500, rng)
        on_predictions, on_targets, _ = resolve_kernels(Exponential(), None, predictions)
        kernels = scales_around(on_predictions, on_targets)
        grid = dict.fromkeys([*kernels, *default_grid(predictions)])
        pool = Pool.draw({repr(e): e.given(predictions, None) for e in grid}, y, predictions, 199, rng=rng)
        pvalues = [pool.together([repr(e) for e in part]) for part in (kernels, default_grid(predictions))]
        rejected += np.array(pvalues) <= 0.05
    print(world, "without tails, with", (rejected / sets).tolist())
    assert rejected[1] >= rejected[0] - 0.05 * sets


def test_the_statistic_that_stands_out_most_has_no_band_of_its_own():
    """It was chosen because it stands out: 359 of 400 calibrated data sets of 20 normal forecasts lay within its band."""
    result = AggregatedTest(n_resamples=19)([1, 0, 1, 0], [0.6, 0.3, 0.7, 0.2])
    assert result.null_distribution is None
    with pytest.raises(ValueError, match="ExactTest has one"):
        result.null_band()
