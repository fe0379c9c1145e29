import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import (
    ECE,
    SKCE,
    Bernoulli,
    Brier,
    Categorical,
    ClassWise,
    EqualMass,
    EqualWidth,
    ExactTest,
    LogLoss,
    Normal,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential, Gaussian

TESTS = {
    "ECE, equal width": ExactTest(ECE(), n_resamples=199),
    "ECE, equal mass, L2": ExactTest(ECE(EqualMass(15), norm=2), n_resamples=199),
    "Brier": ExactTest(Brier(), n_resamples=199),
    "log loss, two-sided": ExactTest(LogLoss(), n_resamples=199, alternative="two-sided"),
    "ECE, three classes": ExactTest(ECE(lens=TopLabel()), n_resamples=199),
}


def rejections(name, n, data_sets, seed, alpha=0.05):
    """How many of so many calibrated data sets the test rejects."""
    rng = np.random.default_rng(seed)
    count = 0
    for repetition in range(data_sets):
        if "classes" in name:
            p = rng.dirichlet(np.ones(3), n)
            y = (rng.random((n, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        else:
            p = rng.random(n)
            y = (rng.random(n) < p).astype(int)
        count += TESTS[name](y, p, rng=repetition).pvalue <= alpha
    return count


def bounds(data_sets, alpha=0.05, level=0.999):
    """The two-sided binomial range of the number of rejections."""
    return binom.interval(level, data_sets, alpha)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("n", [10, 50])
def test_level_is_exact_at_small_n(name, n):
    low, high = bounds(500)
    assert low <= rejections(name, n, 500, seed=1) <= high


@pytest.mark.study
@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("n", [10, 50, 250])
def test_level_over_2000_data_sets(name, n):
    low, high = bounds(2000)
    count = rejections(name, n, 2000, seed=2)
    print(f"{name}, n = {n}: {count / 20:.2f} % rejected at 5 % (99.9 % bound {low / 20:.2f} to {high / 20:.2f})")
    assert low <= count <= high


@pytest.mark.parametrize("estimator", [ECE(EqualWidth(3)), ECE(EqualMass(2), norm=2), Brier(), LogLoss()], ids=repr)
def test_pvalue_against_enumeration_of_all_outcomes(estimator):
    """For six rows, the chance of T* >= T can be added up over all 64 outcomes."""
    p = np.array([0.15, 0.3, 0.45, 0.6, 0.8, 0.9])
    y = np.array([1, 0, 1, 0, 1, 1])
    observed = estimator(y, p).value
    exact = 0.0
    for outcome in product([0, 1], repeat=6):
        chance = np.prod(np.where(outcome, p, 1 - p))
        exact += chance if estimator(np.array(outcome), p).value >= observed - 1e-12 else 0.0
    m = 20_000
    found = ExactTest(estimator, n_resamples=m)(y, p).pvalue
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / m) + 1 / m


def test_pvalue_of_several_classes_against_enumeration():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    y = np.array([0, 1, 1, 0])
    for estimator in (ECE(EqualWidth(4), lens=ClassWise()), ECE(EqualWidth(4), lens=TopLabel()), Brier()):
        observed = estimator(y, p).value
        outcomes = [np.array(o) for o in product(range(3), repeat=4)]
        chances = [np.prod(p[np.arange(4), o]) for o in outcomes]
        exact = sum(c for c, o in zip(chances, outcomes, strict=True) if estimator(o, p).value >= observed - 1e-12)
        found = ExactTest(estimator, n_resamples=20_000)(y, p).pvalue
        assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4


def test_miscalibration_is_found(rng):
    p = rng.random(500)
    y = (rng.random(500) < 0.25 + p / 2).astype(int)
    for estimator in (ECE(), ECE(EqualMass(10), norm=2), Brier(), LogLoss()):
        assert ExactTest(estimator)(y, p).pvalue == 0.001


def test_alternatives(rng):
    """Under-confident predictions have too small a Brier score: only the other tail sees it."""
    p = 0.25 + rng.random(500) / 2
    y = (rng.random(500) < np.where(p > 0.5, 0.95, 0.05)).astype(int)
    greater, less, both = (ExactTest(Brier(), alternative=a)(y, p).pvalue for a in ("greater", "less", "two-sided"))
    assert greater == 1
    assert less == 0.001
    assert both == 0.002


def test_ties_count_against_rejection():
    """A statistic that cannot vary proves nothing."""
    certain = ExactTest(ECE(), n_resamples=99)([0, 1, 1], [0.0, 1.0, 1.0])
    assert certain.pvalue == 1
    assert ExactTest(lambda y, p: 0.5, n_resamples=99)([0, 1], [0.5, 0.5]).pvalue == 1


def test_the_impossible_is_rejected():
    result = ExactTest(ECE(), n_resamples=99)([1, 0, 1], [0.0, 1.0, 1.0])
    assert result.pvalue == 0.01
    assert ExactTest(LogLoss(), n_resamples=99)([1, 0, 1], [0.0, 1.0, 1.0]).pvalue == 0.01


def test_a_statistic_that_is_not_a_number_is_an_error_never_a_rejection():
    with pytest.raises(InputError, match="the statistic is not a number for 10 of 10 sets of targets"):
        ExactTest(lambda y, p: float("nan"), n_resamples=9)([0, 1], [0.5, 0.5])


def test_two_sided_by_hand():
    """Ranks of the nearer tail: 1 for both ends of the pool, 2 for the next ones, and so on."""
    test = ExactTest(Brier(), n_resamples=9, alternative="two-sided")
    null = np.arange(1.0, 10.0)
    assert [test._pvalue(x, null) for x in (0.5, 9.5, 1.5, 5.5)] == [0.2, 0.2, 0.4, 1.0]
    assert test._pvalue(1.0, np.r_[np.ones(5), 2, 3, 4, 5]) == 1.0  # half of the pool lies at the lower end


def test_any_function_of_targets_and_predictions_is_a_statistic(rng):
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)

    def mean_gap(targets, predictions):
        return abs(np.mean(targets) - predictions.probs.mean())

    result = ExactTest(mean_gap, n_resamples=199)(y, p)
    assert 0.05 < result.pvalue <= 1
    assert result.estimate.name == "mean_gap"
    assert result.statistic == abs(y.mean() - p.mean())


def test_same_seed_same_digits_whatever_the_workers(rng):
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    test = ExactTest(ECE(EqualMass(15)), n_resamples=4000)  # several chunks
    alone = test(y, p, rng=5)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for engine in (threads, processes):
            other = test(y, p, rng=5, engine=engine)
            assert other.pvalue == alone.pvalue
            assert np.array_equal(other.null_distribution, alone.null_distribution)
    assert not np.array_equal(test(y, p, rng=6).null_distribution, alone.null_distribution)


def test_weights_and_multi_label(rng):
    p = rng.random((80, 2))
    y = (rng.random((80, 2)) < p).astype(int)
    w = rng.random(80)
    result = ExactTest(ECE(), n_resamples=199)(y, Bernoulli(p), sample_weight=w)
    assert result.statistic == ECE()(y, Bernoulli(p), sample_weight=w).value
    assert result.pvalue > 0.01


def test_weights_reach_the_resamples(rng):
    """Rows without weight must not matter."""
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    w = np.r_[np.ones(40), np.zeros(20)]
    full = ExactTest(ECE(), n_resamples=99)(y, p, sample_weight=w)
    assert full.statistic == pytest.approx(ECE()(y[:40], p[:40]).value, rel=1e-13)
    same = ExactTest(lambda t, q, sample_weight: ECE()(t[:40], q[:40]), n_resamples=99)(y, p, sample_weight=w)
    assert full.null_distribution == pytest.approx(same.null_distribution, rel=1e-12)


def test_the_null_band_holds_what_calibrated_models_show(rng):
    p = rng.random(200)
    band = ExactTest(ECE(), n_resamples=1999)(np.ones(200, int), p).null_band(0.9)
    inside = [ECE()((rng.random(200) < p).astype(int), p).value in band for _ in range(400)]
    assert 0.84 < np.mean(inside) < 0.95


def test_resamples_of_the_confidence_need_no_classes(rng):
    """Top-label resamples come from the confidence alone: as many classes as you like cost the same."""
    p = rng.dirichlet(np.ones(5), 50)
    _, _, predictions = ECE(lens=TopLabel()).reduce(rng.integers(0, 5, 50), Categorical(p))
    assert predictions.n_classes == 2
    assert np.array_equal(predictions.probs, p.max(axis=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "ECE"}, r"estimator must be an estimator such as ECE\(\); got 'ECE'"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1; got 0"),
        ({"alternative": "bigger"}, "alternative must be 'greater', 'less' or 'two-sided'; got 'bigger'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ExactTest(**{"estimator": ECE(), **settings})


class TestSequential:
    def test_it_stops_at_the_last_hit(self, rng):
        p = rng.random(100)
        y = (rng.random(100) < p).astype(int)
        result = ExactTest(ECE(), 999, stop_after=5)(y, p)
        null = result.null_distribution
        assert len(null) < 999
        assert null[-1] >= result.statistic
        assert (null >= result.statistic).sum() == 5
        assert result.pvalue == 5 / len(null)

    def test_without_enough_hits_it_is_the_plain_test(self, rng):
        p = rng.random(200)
        y = (rng.random(200) < 0.5).astype(int)
        result = ExactTest(ECE(), 99, stop_after=5)(y, p)
        assert result.pvalue == 0.01
        assert len(result.null_distribution) == 99

    def test_the_level_is_exact(self):
        rng, rejected, sets = np.random.default_rng(8), 0, 600
        for _ in range(sets):
            p = rng.random(15)
            y = (rng.random(15) < p).astype(int)
            rejected += ExactTest(Brier(), 199, stop_after=10)(y, p, rng=rng).pvalue <= 0.05
        low, high = binom.ppf([0.0005, 0.9995], sets, 0.05)
        assert low <= rejected <= high

    def test_engines_change_no_digit(self, rng):
        p = rng.random(50)
        y = (rng.random(50) < p).astype(int)
        test = ExactTest(Brier(), 499, "less", stop_after=20)
        plain = test(y, p, rng=1)
        with ThreadPoolExecutor(2) as pool:
            other = test(y, p, rng=1, engine=pool)
        assert (other.pvalue, len(other.null_distribution)) == (plain.pvalue, len(plain.null_distribution))

    def test_bad_settings(self):
        with pytest.raises(InputError, match="stop_after must be a whole number of at least 1; got 0"):
            ExactTest(ECE(), stop_after=0)
        with pytest.raises(InputError, match="stop_after goes with alternative="):
            ExactTest(ECE(), alternative="two-sided", stop_after=5)


def test_the_least_squares_example():
    """Fifty rows where the bootstrap of the literature gives p = .046: the exact test is surer (.019 with 9,999 resamples)."""
    case = json.loads((Path(__file__).parents[2] / "golden" / "ols.json").read_text())
    test = ExactTest(SKCE(Exponential(1.0), Gaussian(1.0)), 1999)
    assert 0.01 < test(case["y"], Normal(case["loc"], case["scale"])).pvalue < 0.03  # 0.019 and 3 standard errors


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_equal_values_are_hits_of_a_sequence(alternative):
    """But for rounding, on either side: the first five resamples of a statistic that cannot vary stop it."""
    result = ExactTest(lambda y, p: 0.3 + 1e-16 * y[0], 99, alternative, stop_after=5)([0, 1], [0.5, 0.5])
    assert (result.pvalue, len(result.null_distribution)) == (1, 5)


def test_beyond_the_budget_another_estimator_is_ranked_and_said(rng):
    p = rng.dirichlet(np.ones(3), 300)
    y = np.array([rng.choice(3, p=row) for row in p])
    assert ExactTest(SKCE(), 19)(y, p).notes == ()
    result = ExactTest(SKCE(), 19, budget=1e6)(y, p)
    assert isinstance(result.estimate.estimator, RandomFeatureSKCE)
    assert any(
        note.startswith("19 resamples of all pairs exceed the budget of 1e+06: RandomFeatureSKCE")
        for note in result.notes
    )


@pytest.mark.parametrize(
    ("statistic", "options", "words"),
    [
        (lambda y, p: None, {}, "estimator must give a number; .* gave a NoneType"),
        (lambda y, p: np.nan, {}, "the statistic is not a number for"),
        (lambda y, p: np.nan, {"stop_after": 3}, "the statistic is not a number for some sets of targets"),
    ],
)
def test_statistics_that_are_no_numbers_are_refused(statistic, options, words):
    with pytest.raises(InputError, match=words):
        ExactTest(statistic, 99, **options)([0, 1, 1], [0.2, 0.8, 0.5])
