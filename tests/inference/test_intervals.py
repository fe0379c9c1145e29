import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import ECE, Bernoulli, Bootstrap, Brier, EqualMass, ExactTest
from calibrant._validate import InputError
from calibrant.inference.intervals import include_null
from calibrant.results import Estimate, Interval, TestResult


def test_bootstrap_of_a_mean_agrees_with_its_standard_error(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    plain, resampled = Brier()(y, p), Bootstrap(Brier(), n_resamples=2000)(y, p)
    assert resampled.value == plain.value
    assert resampled.standard_error == pytest.approx(plain.standard_error, rel=0.1)
    assert tuple(resampled.interval) == pytest.approx(
        tuple(plain.confidence_interval()), abs=0.15 * 4 * plain.standard_error
    )


def coverage(slope, shift, n, data_sets, seed):
    """How often the interval of the report, with and without the exact test, covers the true error."""
    rng = np.random.default_rng(seed)
    many = rng.beta(0.5, 0.5, 200_000)
    truth = np.mean(np.abs(many - expit(slope * logit(many) + shift)))
    covered = np.zeros(2)
    for repetition in range(data_sets):
        p = rng.beta(0.5, 0.5, n)
        y = (rng.random(n) < expit(slope * logit(p) + shift)).astype(int)
        interval = Bootstrap(ECE(EqualMass(15)), n_resamples=99)(y, p, rng=repetition).interval
        joined = include_null(interval, ExactTest(ECE(EqualMass(15)), n_resamples=99)(y, p, rng=repetition))
        covered += [truth in interval, truth in joined]
    return covered / data_sets


def test_coverage_far_from_calibration():
    assert coverage(0.4, 0.3, 500, 60, seed=3).min() > 0.75


def test_only_the_exact_test_makes_the_interval_cover_zero():
    alone, joined = coverage(1, 0, 200, 60, seed=4)
    assert alone < 0.8
    assert joined >= 0.88  # 95 % nominal; 60 data sets


@pytest.mark.study
@pytest.mark.parametrize(("slope", "shift"), [(1, 0), (0.8, 0), (0.4, 0.3)])
def test_coverage_study(slope, shift):
    alone, joined = coverage(slope, shift, 1000, 400, seed=5)
    print(f"slope {slope}, shift {shift}: reflected bootstrap {alone:.3f}, joined with the exact test {joined:.3f}")
    assert joined > 0.85


@pytest.mark.study
def test_averaged_errors_are_not_covered():
    """The bias of every label adds up: why reports give averages no interval."""
    rng, n, covered = np.random.default_rng(6), 300, {}
    many = rng.beta(0.5, 0.5, 200_000)
    truth = np.mean(np.abs(many - expit(0.8 * logit(many))))
    for labels in (1, 20):
        inside = 0
        for repetition in range(100):
            p = rng.beta(0.5, 0.5, (n, labels))
            y = (rng.random((n, labels)) < expit(0.8 * logit(p))).astype(int)
            inside += truth in Bootstrap(ECE(EqualMass(15)), n_resamples=99)(y, Bernoulli(p), rng=repetition).interval
        covered[labels] = inside / 100
    print(f"coverage of the average over labels: {covered}")
    assert covered[20] < 0.5 < covered[1]


def test_the_interval_holds_the_estimate_and_stays_above_the_least_value(rng):
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    result = Bootstrap(ECE(), n_resamples=99)(y, p)
    assert result.value in result.interval
    assert result.interval.low >= 0


def test_levels_nest(rng):
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    narrow, wide = (Bootstrap(ECE(), 199, level)(y, p).interval for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_same_seed_same_interval(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    first, second, other = (Bootstrap(ECE(), 99)(y, p, rng=seed).interval for seed in (1, 1, 2))
    assert first == second != other


def test_weights_and_foreign_estimators(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)

    def doubled(targets, predictions, sample_weight):
        value = 2 * np.average((targets - predictions.probs) ** 2, weights=sample_weight)
        return Estimate("doubled", value, len(targets), doubled)

    w = rng.random(50)
    ours = Bootstrap(Brier(), 99)(y, p, sample_weight=w).interval
    theirs = Bootstrap(doubled, 99)(y, p, sample_weight=w).interval
    assert tuple(theirs) == pytest.approx([2 * x for x in ours], rel=1e-10)


def test_include_null_reaches_zero_only_when_the_test_allows():
    interval = Interval(0.02, 0.08, 0.95, "reflected bootstrap")
    weak, strong = (TestResult(0.05, p, 10, None, None, np.zeros(1)) for p in (0.3, 0.01))
    assert tuple(include_null(interval, weak)) == (0.0, 0.08)
    assert include_null(interval, strong) is interval


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": 3}, "estimator must be an estimator"),
        ({"n_resamples": 1}, "n_resamples must be a whole number of at least 2"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Bootstrap(**{"estimator": ECE(), **settings})
