from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, Categorical, LogLoss, Normal
from calibrant._validate import InputError
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.inference import Jackknife
from calibrant.inference.intervals import MAX_SINGLE_ROWS, N_GROUPS
from calibrant.kernels import Exponential, Gaussian

UNIT = SKCE(Exponential(1.0), Gaussian(1.0))


def binary(rng, n):
    p = rng.random(n)
    return (rng.random(n) < p**2).astype(int), p


def shifted(rng, n):
    """Normal predictions far from calibration."""
    loc = rng.random(n)
    return loc + 0.7 + 0.5 * rng.standard_normal(n), Normal(loc, 0.5)


@pytest.mark.parametrize("score", [Brier(), LogLoss()])
def test_leaving_out_one_row_gives_the_error_of_a_mean(score, rng):
    y, p = binary(rng, 60)
    plain, result = score(y, p), Jackknife(score)(y, p)
    assert result.value == plain.value
    assert result.standard_error == pytest.approx(plain.standard_error, rel=1e-10)
    losses = score.losses(y, Categorical(p))
    assert tuple(result.interval) == pytest.approx(tuple(MeanLimits.of(losses)(0.95)), rel=1e-10)
    assert result.interval.method == "jackknife"
    assert result.interval.level == 0.95


def test_leaving_out_groups_of_a_mean_by_hand():
    """Groups of two rows: the spread of their three means, whatever rows are dealt together."""
    y, p = np.array([1, 1, 0, 0, 1, 0]), np.array([0.9, 0.8, 0.3, 0.6, 0.2, 0.5])
    losses = (p - y) ** 2
    result = Jackknife(Brier(), groups=3)(y, p, rng=5)
    errors = []
    for first in range(1, 6):
        rest = [i for i in range(1, 6) if i != first]
        for second in rest[1:]:
            groups = [[0, first], [rest[0], second], [i for i in rest[1:] if i != second]]
            errors.append(np.std([losses[g].mean() for g in groups], ddof=1) / 3**0.5)
    assert len(errors) == 15
    assert np.min(np.abs(np.array(errors) - result.standard_error)) < 1e-14


def test_groups_of_a_mean_agree_with_its_error(rng):
    """With 100 groups the standard error is known to 7 %: within four times that."""
    y, p = binary(rng, 5000)
    assert Jackknife(Brier())(y, p).standard_error == pytest.approx(Brier()(y, p).standard_error, rel=0.28)


def test_weights_count(rng):
    """The linearised error of a weighted mean, but for terms of order 1/n; rows without weight do not matter."""
    y, p = binary(rng, 300)
    w = np.r_[rng.uniform(0.5, 2, 250), np.zeros(50)]
    plain, result = (f(y, p, sample_weight=w) for f in (Brier(), Jackknife(Brier())))
    assert result.standard_error == pytest.approx(plain.standard_error, rel=0.01)
    unweighted = Jackknife(Brier())(y[:250], p[:250]).standard_error
    assert result.standard_error != pytest.approx(unweighted, rel=0.02)
    part = Jackknife(Brier())(y[:250], p[:250], sample_weight=w[:250])
    assert result.standard_error == pytest.approx(part.standard_error, rel=1e-12)


def test_kernel_error_far_from_calibration(rng):
    """Leaving out rows finds what the estimator knows of itself."""
    y, predictions = shifted(rng, 150)
    plain = UNIT(y, predictions)
    assert Jackknife(UNIT)(y, predictions).standard_error == pytest.approx(plain.standard_error, rel=0.05)


def test_variance_and_coverage_against_simulation():
    """Over data sets of 30 rows: the mean variance is the true one. Near calibration it is not, so there is no interval."""
    rng = np.random.default_rng(1)
    results = [Jackknife(UNIT)(*shifted(rng, 30)) for _ in range(200)]
    variance = np.var([r.value for r in results], ddof=1)
    assert np.mean([r.standard_error**2 for r in results]) == pytest.approx(
        variance, rel=0.4
    )  # four times sqrt(2 / 200)
    assert all(r.interval is None and "resampled rows repeat" in r.withheld for r in results)


@pytest.mark.study
def test_variance_study():
    rng = np.random.default_rng(2)
    for n, groups, count in [(30, None, 2000), (100, None, 400), (1000, 20, 400)]:
        data = [shifted(rng, n) for _ in range(count)]
        results = [Jackknife(UNIT, groups)(*d) for d in data]
        own = np.mean([UNIT(*d).standard_error ** 2 for d in data])
        variance = np.var([r.value for r in results], ddof=1)
        found = np.mean([r.standard_error**2 for r in results])
        print(f"n {n}, groups {groups}: jackknife {found / variance:.3f}, own {own / variance:.3f}")
        assert found == pytest.approx(variance, rel=5 * (2 / count) ** 0.5)


def test_length_scales_are_those_of_all_rows(rng):
    y, predictions = shifted(rng, 40)
    result = Jackknife(SKCE())(y, predictions)
    fixed = SKCE()(y, predictions).estimator
    assert result.estimator == fixed
    assert result.standard_error == Jackknife(fixed)(y, predictions).standard_error


def test_many_rows_are_dealt_into_groups(rng):
    y, p = binary(rng, MAX_SINGLE_ROWS + 1)
    calls = []

    def count(targets, predictions):
        calls.append(len(targets))
        return float(np.mean(targets))

    Jackknife(count)(y[:MAX_SINGLE_ROWS], p[:MAX_SINGLE_ROWS])
    assert calls == [MAX_SINGLE_ROWS] + [MAX_SINGLE_ROWS - 1] * MAX_SINGLE_ROWS
    calls.clear()
    Jackknife(count)(y, p)
    assert len(calls) == N_GROUPS + 1
    assert sorted(set(calls)) == [MAX_SINGLE_ROWS + 1 - 6, MAX_SINGLE_ROWS + 1 - 5, MAX_SINGLE_ROWS + 1]


def test_groups_are_random_but_repeat(rng):
    """Sorted rows must not end in the same group."""
    losses = np.sort(rng.random(2000))
    y, p = np.zeros(2000, int), losses**0.5
    plain = Brier()(y, p).standard_error
    first, second, other = (Jackknife(Brier(), 50)(y, p, rng=seed).standard_error for seed in (1, 1, 2))
    assert first == second != other
    assert first == pytest.approx(plain, rel=0.4)


def test_same_digits_on_every_engine(rng):
    y, p = binary(rng, 200)
    alone = Jackknife(ECE(), 30)(y, p, rng=3)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for engine in (threads, processes):
            assert Jackknife(ECE(), 30)(y, p, rng=3, engine=engine) == alone


def test_the_interval_stays_above_the_least_value():
    result = Jackknife(Brier())([1, 0, 1], [0.99, 0.02, 0.6])
    assert result.interval.low == 0
    assert Jackknife(LogLoss(), confidence_level=0.5)([1, 0, 1], [0.9, 0.2, 0.6]).interval.level == 0.5


def test_named_classes(rng):
    p = Categorical(rng.dirichlet(np.ones(3), 20), labels=["cat", "dog", "owl"])
    y = np.array(["cat", "dog", "owl"])[rng.integers(0, 3, 20)]
    plain = Brier()(y, p)
    assert Jackknife(Brier())(y, p).standard_error == pytest.approx(plain.standard_error, rel=1e-10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "Brier"}, r"estimator must be an estimator such as Brier\(\); got 'Brier'"),
        ({"groups": 1}, "groups must be a whole number of at least 2; got 1"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Jackknife(**{"estimator": Brier(), **settings})


def test_there_must_be_rows_for_all_groups():
    with pytest.raises(InputError, match="groups must be at least 2 and at most the number of rows, 3; got 5"):
        Jackknife(Brier(), groups=5)([1, 0, 1], [0.9, 0.2, 0.6])
    with pytest.raises(InputError, match="at most the number of rows, 1; got 1"):
        Jackknife(Brier())([1], [0.9])
