from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    Brier,
    Categorical,
    DebiasedECE,
    EqualMass,
    Laplace,
    LogLoss,
    Normal,
    PairedDifference,
)
from calibrant._validate import InputError
from calibrant.estimators import BaseEstimator
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.inference import benjamini_hochberg, differences, holm, paired_difference
from calibrant.inference.paired_difference import pvalue_of_zero
from calibrant.kernels import Exponential, Gaussian
from calibrant.lab import Sigmoid


@pytest.fixture
def of_any_rows(monkeypatch):
    """Resamples are trusted however few rows are expected to surprise."""
    monkeypatch.setattr(paired_difference, "MIN_SURPRISES", 0.0)


def exchangeable(rng, n, slope=1.0):
    """Two models that see the true log-odds with independent noise; slopes beyond 1 make both over-confident."""
    z = rng.normal(0, 1.5, n)
    y = (rng.random(n) < expit(z)).astype(int)
    a, b = (expit(slope * (z + 0.5 * rng.standard_normal(n))) for _ in range(2))
    return y, a, b


def honest_and_bold(rng, n, slope=2):
    """The truth itself, and the same with larger log-odds."""
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p, expit(slope * logit(p))


@dataclass(frozen=True)
class Resampled(BaseEstimator):
    """A score that is not known to be a mean over rows: the second route."""

    resampling = None

    def estimate(self, targets, predictions, weights):
        return Brier().estimate(targets, predictions, weights)


SQUARED = DebiasedECE(EqualMass(10))


def rejections(estimator, n, data_sets, slope=1.0, seed=1):
    rng = np.random.default_rng(seed)
    paired = PairedDifference(estimator, n_resamples=99)
    return sum(paired(*exchangeable(rng, n, slope), rng=i).pvalue <= 0.05 for i in range(data_sets))


@pytest.mark.parametrize("score", [Brier(), LogLoss(), Resampled()])
def test_level_of_equal_models(score):
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= rejections(score, 100, 200) <= high


def test_level_of_equally_wrong_models():
    """Far from calibration errors spread as their resamples do."""
    low, high = binom.interval(0.999, 100, 0.05)
    assert low <= rejections(SQUARED, 400, 100, slope=5) <= high


def test_equal_models_near_calibration_are_not_rejected_too_often():
    assert rejections(SKCE(Exponential(0.5)), 40, 40) <= binom.ppf(0.999, 40, 0.05)
    assert rejections(SQUARED, 100, 60) <= binom.ppf(0.999, 60, 0.05)


@pytest.mark.study
@pytest.mark.parametrize(
    ("name", "estimator", "n", "slope"),
    [
        ("Brier", Brier(), 50, 1),
        ("Brier", Brier(), 200, 1),
        ("LogLoss", LogLoss(), 200, 1),
        ("squared", SQUARED, 200, 1),
        ("squared", SQUARED, 200, 3),
        ("SKCE", SKCE(Exponential(0.5)), 100, 1),
        ("SKCE", SKCE(Exponential(0.5)), 100, 3),
    ],
)
def test_level_study(name, estimator, n, slope):
    """Right for means and far from calibration; near it resamples spread more than the errors do: safe, and blind."""
    data_sets = 400 if name == "SKCE" else 1000
    count = rejections(estimator, n, data_sets, slope, seed=2)
    print(f"{name}, n = {n}, slope {slope}: {100 * count / data_sets:.2f} % rejected at 5 %")
    low, high = binom.interval(0.9999, data_sets, 0.05)
    assert count <= high
    if name in ("Brier", "LogLoss"):
        assert count >= low
    elif slope == 1:
        assert count < low


@pytest.mark.parametrize(("estimator", "n"), [(Brier(), 300), (SQUARED, 300), (SKCE(Exponential(0.5)), 150)])
def test_power(estimator, n):
    """Four in five or more are found: 88, 98 and 83 % of 60 data sets in a trial run."""
    rng, paired = np.random.default_rng(3), PairedDifference(estimator, n_resamples=99)
    results = [paired(*honest_and_bold(rng, n, slope=4), rng=i) for i in range(20)]
    assert np.mean([r.value for r in results]) < 0
    assert sum(r.pvalue <= 0.05 for r in results) >= binom.ppf(0.001, 20, 0.8)


def test_coverage_of_the_interval():
    """The difference of the Brier scores is ``-E (q - p)^2``, here by quadrature."""
    truth = Sigmoid().truth(Brier()) - _score_of_bold()
    rng, paired = np.random.default_rng(4), PairedDifference(Brier(), n_resamples=99)
    results = [paired(*honest_and_bold(rng, 200), rng=i) for i in range(200)]
    low, high = binom.interval(0.999, 200, 0.95)
    assert low <= sum(truth in r.interval for r in results) <= high
    error = np.std([r.value for r in results], ddof=1)
    assert np.mean([r.standard_error for r in results]) == pytest.approx(error, rel=0.2)  # four times 1 / sqrt(400)


def _score_of_bold():
    nodes, weights = np.polynomial.legendre.leggauss(200)
    q = (nodes + 1) / 2
    p = expit(2 * logit(q))
    return float((q * (1 - q) + (p - q) ** 2) @ weights / 2)


@pytest.mark.study
def test_coverage_of_the_kernel_error():
    """The honest model has none, so the difference is the error of the bold one."""
    rng, kernel = np.random.default_rng(5), SKCE(Exponential(0.5))
    y, _, bold = honest_and_bold(rng, 1_000_000)
    truth = -kernel(y, bold).value
    results = [PairedDifference(kernel, 199)(*honest_and_bold(rng, 300), rng=i) for i in range(200)]
    covered = np.mean([truth in r.interval for r in results])
    print(f"coverage of the difference of kernel errors, n = 300: {covered:.3f}")
    assert covered > binom.ppf(0.0001, 200, 0.95) / 200


def test_values_are_those_of_the_estimator(rng):
    y, a, b = exchangeable(rng, 80)
    result = PairedDifference(Brier(), 99)(y, a, b)
    assert result.a.value == Brier()(y, a).value
    assert float(result) == result.value == Brier()(y, a).value - Brier()(y, b).value
    assert result.n == 80


def test_the_error_of_a_mean_difference(rng):
    """Paired: the standard error of the mean of loss differences, not of each loss."""
    y, a, b = exchangeable(rng, 400)
    d = (a - y) ** 2 - (b - y) ** 2
    result = PairedDifference(Resampled(), 1999)(y, a, b)
    assert result.standard_error == pytest.approx(d.std(ddof=1) / 20, rel=0.07)  # four times 1 / sqrt(4000)


@pytest.mark.usefixtures("of_any_rows")
def test_pvalue_against_enumeration_of_all_resamples():
    """Of four rows there are 256 resamples. None is so near the edge that an error in the centre could move it over."""
    y, a, b = np.array([1, 0, 1, 0]), np.array([0.62, 0.18, 0.62, 0.37]), np.array([0.37, 0.79, 0.96, 0.13])
    d = (a - y) ** 2 - (b - y) ** 2
    every = np.array([d[list(rows)].mean() for rows in product(range(4), repeat=4)])
    away = np.abs(every - every.mean())
    assert np.min(np.abs(away - abs(d.mean()))) > 10 * every.std() / 9999**0.5
    exact = np.mean(away >= abs(d.mean()))
    result = PairedDifference(Resampled(), 9999)(y, a, b)
    assert abs(result.pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 9999) + 1e-4


@pytest.mark.usefixtures("of_any_rows")
@pytest.mark.parametrize("level", [0.9, 0.95, 0.8])
def test_interval_and_pvalue_say_the_same(level, rng):
    seen = set()
    for i in range(60):
        y, a, b = exchangeable(rng, 30)
        result = PairedDifference(Resampled(), 39, level)(y, a, expit(0.5 + logit(b)), rng=i)
        assert (0 in result.interval) == (result.pvalue > 1 - level + 1e-12)
        assert result.value - result.interval.low == pytest.approx(result.interval.high - result.value)
        seen.add(0 in result.interval)
    assert seen == {True, False}


@pytest.mark.parametrize("estimator", [Brier(), LogLoss(), SQUARED])
def test_swapping_the_models_turns_the_sign(estimator, rng):
    y, a, b = exchangeable(rng, 60)
    one, other = PairedDifference(estimator, 99)(y, a, b), PairedDifference(estimator, 99)(y, b, a)
    assert one.value == -other.value
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)
    assert tuple(one.interval) == pytest.approx((-other.interval.high, -other.interval.low))


def test_a_model_does_not_differ_from_itself(rng):
    """Also where the same probabilities are written in another way, and only rounding is left."""
    y, a, _ = exchangeable(rng, 50)
    other = np.stack([1 - a, a], axis=1)
    for b in (a, other, a.astype(np.float32).astype(np.float64) * 0 + a + 1e-16):
        result = PairedDifference(Brier(), 99)(y, a, b)
        assert result.pvalue == 1
        assert 0 in result.interval


def test_models_of_different_families(rng):
    loc = rng.normal(size=60)
    y = loc + rng.standard_normal(60)
    kernels = SKCE(Exponential(1.0), Gaussian(1.0))
    result = PairedDifference(kernels, 39)(y, Normal(loc, 1.0), Laplace(loc + 1.5, 1.0))
    assert result.value < 0
    assert result.pvalue <= 0.1


def test_one_yardstick_for_both(rng):
    """Length scales that are not given are those of the second model."""
    y, a, b = honest_and_bold(rng, 50)
    result = PairedDifference(SKCE(), 39)(y, a, b)
    fixed = SKCE()(y, b).estimator
    assert result.a.estimator == result.b.estimator == fixed
    assert result.a.value == fixed(y, a).value != SKCE()(y, a).value
    assert result.interval == PairedDifference(fixed, 39)(y, a, b).interval


def test_weights(rng):
    """Rows without weight do not matter; weights reach the resamples."""
    y, a, b = exchangeable(rng, 60)
    w = np.r_[rng.uniform(0.2, 3, 40), np.zeros(20)]
    full = PairedDifference(Brier(), 99)(y, a, b, sample_weight=w)
    part = PairedDifference(Brier(), 99)(y[:40], a[:40], b[:40], sample_weight=w[:40])
    assert full.interval == part.interval
    assert full.value == pytest.approx(np.average((a - y) ** 2 - (b - y) ** 2, weights=w))
    assert full.standard_error != PairedDifference(Brier(), 99)(y[:40], a[:40], b[:40]).standard_error


@pytest.mark.usefixtures("of_any_rows")
def test_same_digits_on_every_engine(rng):
    y, a, b = exchangeable(rng, 60)
    paired = PairedDifference(Resampled(), 199)
    alone = paired(y, a, b, rng=3)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for engine in (threads, processes):
            assert paired(y, a, b, rng=3, engine=engine) == alone
    assert paired(y, a, b, rng=4).interval != alone.interval


def test_work_is_cut_for_engines(rng):
    tasks = []

    class Counting:
        def map(self, fn, *lists):
            tasks.append(len(lists[0]))
            return map(fn, *lists)

    PairedDifference(Resampled(), 999)(*exchangeable(rng, 20), engine=Counting())
    assert tasks == [20]


@pytest.mark.usefixtures("of_any_rows")
def test_the_result_reads_and_writes(rng):
    y, a, b = exchangeable(rng, 60)
    result = PairedDifference(Brier(), 99)(y, a, b)
    assert repr(result).startswith("difference of Brier = ")
    assert "p-value" in repr(result)
    assert result.to_dict()["kind"] == "difference"
    assert result.to_dict()["a"]["value"] == result.a.value
    assert list(result.to_row()) == ["difference", "low", "high", "pvalue"]
    assert "<table" in result._repr_html_()
    assert result.to_json()


@pytest.mark.parametrize(("method", "adjust"), [("holm", holm), ("bh", benjamini_hochberg)])
def test_differences_are_every_pair_at_once(method, adjust, rng):
    y, a, b = honest_and_bold(rng, 100)
    models = {"a": a, "b": b, "half": 0.5 + 0 * a, "bolder": expit(2 * logit(b)), "shy": expit(logit(a) / 2)}
    table = differences(Brier(), y, models, reference="b", method=method, n_resamples=99, rng=2)
    others = ["a", "half", "bolder", "shy"]
    assert table["model"].tolist() == ["b", *others]
    assert table["value"].tolist() == [Brier()(y, models[name]).value for name in ("b", *others)]
    pairs = [PairedDifference(Brier(), 99)(y, models[name], b, rng=2) for name in others]
    assert table["difference"].tolist() == [0, *(p.value for p in pairs)]
    assert table["low"].tolist() == [0, *(p.interval.low for p in pairs)]
    assert table["high"].tolist() == [0, *(p.interval.high for p in pairs)]
    pvalues = [p.pvalue for p in pairs]
    assert table["pvalue"][1:].tolist() == pvalues
    assert table["adjusted"][1:].tolist() == adjust(pvalues).tolist()
    assert not np.array_equal(holm(pvalues), benjamini_hochberg(pvalues))  # else the method could not matter
    assert np.isnan(table["pvalue"][0])
    assert np.isnan(table["adjusted"][0])


def test_the_first_model_is_the_reference(rng):
    y, a, b = honest_and_bold(rng, 50)
    table = differences(SQUARED, y, {"a": a, "b": b}, n_resamples=39, confidence_level=0.9)
    pair = PairedDifference(SQUARED, 39, 0.9)(y, b, a)
    assert table["difference"].tolist() == [0, pair.value]
    assert table["low"][1] == pair.interval.low


def test_family_wise_error_of_several_equal_models():
    """Three equal models against one: Holm's p-values fall below 5 % for any of them in at most 5 % of data sets."""
    rng, count = np.random.default_rng(6), 0
    for i in range(100):
        z = rng.normal(0, 1.5, 100)
        y = (rng.random(100) < expit(z)).astype(int)
        models = {str(m): expit(z + 0.5 * rng.standard_normal(100)) for m in range(4)}
        table = differences(Brier(), y, models, n_resamples=99, rng=i)
        count += np.nanmin(table["adjusted"]) <= 0.05
    assert count <= binom.ppf(0.999, 100, 0.05)


def rare(rng, n=100):
    """Events of 0.5 %: the true model, and one whose odds are 4.5 times too low."""
    p = rng.gamma(1, 0.005, n).clip(1e-6, 0.9)
    return (rng.random(n) < p).astype(int), p, expit(logit(p) - 1.5)


def test_differences_of_rare_events():
    """Where nothing happened resamples agree that the lower model is better: 36 % of their intervals held the truth."""
    rng = np.random.default_rng(2)
    _, p, q = rare(rng, 100_000)
    truth = np.mean((p - p) ** 2 - (q - p) ** 2)
    sets = [rare(rng) for _ in range(60)]
    results = [PairedDifference(Brier())(*data) for data in sets]
    assert sum(truth in r.interval for r in results) >= binom.ppf(0.001, 60, 0.95)
    assert all(r.withheld is None for r in results)
    one = PairedDifference(Resampled(), 39)(*sets[0])
    assert (one.pvalue, tuple(one.interval)) == (1.0, (-np.inf, np.inf))
    assert "resamples of fewer than 20 show too little" in one.withheld
    assert "no interval" in repr(one)
    assert one.to_dict()["withheld"] == one.withheld
    assert PairedDifference(Resampled(), 39)(*exchangeable(rng, 100)).withheld is None


def test_errors_with_a_bias_of_sharpness_are_withheld(rng):
    """Of two calibrated models the less sharp was called worse by ECE in 38 % of data sets."""
    y, a, b = honest_and_bold(rng, 200)
    for estimator in (ECE(), SKCE(Exponential(0.5), unbiased=False)):
        found = PairedDifference(estimator, 39)(y, a, b)
        assert (found.pvalue, tuple(found.interval)) == (1.0, (-np.inf, np.inf))
        assert "compare models by a score such as Brier()" in found.withheld
    assert PairedDifference(SKCE(Exponential(0.5)), 39)(y, a, b).withheld is None
    with pytest.raises(InputError, match=r"estimator must tell models apart: ECE\(\) is biased upwards"):
        differences(ECE(), y, {"a": a, "b": b})


def test_scores_of_few_numbers_have_no_interval(rng):
    y = rng.normal(size=60)
    a, b = Normal(np.zeros(60), 1.0), Normal(np.full(60, 0.5), 1.0)
    assert PairedDifference(CRPS())(y, a, b).withheld is None
    few = PairedDifference(CRPS())(y[:40], a[:40], b[:40])
    assert few.withheld == "40 rows do not show how far losses go; 50 or more have an interval"


def test_scores_agree_with_resampled_rows(rng):
    """The second route: rows drawn with replacement."""
    y, a, b = exchangeable(rng, 400)
    one, other = PairedDifference(Brier())(y, a, b), PairedDifference(Resampled(), 999)(y, a, b, rng=0)
    assert one.value == other.value
    width = one.interval.high - one.interval.low
    assert tuple(one.interval) == pytest.approx(tuple(other.interval), abs=0.15 * width)
    assert one.standard_error == pytest.approx(other.standard_error, rel=0.1)


def test_infinite_differences_are_refused():
    with pytest.raises(InputError, match="the difference is not a finite number for some rows"):
        PairedDifference(LogLoss(), 19)([1, 0], Categorical([0.0, 0.5]), [0.5, 0.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": 3}, r"estimator must be an estimator such as Brier\(\); got 3"),
        ({"n_resamples": 18}, "n_resamples must be a whole number of at least 19; got 18"),
        ({"n_resamples": 98, "confidence_level": 0.99}, "n_resamples must be a whole number of at least 99; got 98"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1; got 95"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        PairedDifference(**{"estimator": ECE(), **settings})


def test_arguments_of_differences_are_checked():
    y, p = [1, 0], [0.5, 0.4]
    with pytest.raises(InputError, match="method must be 'holm' or 'bh'; got 'bonferroni'"):
        differences(Brier(), y, {"a": p, "b": p}, method="bonferroni")
    with pytest.raises(InputError, match=r"models must hold at least two to compare; got \['a'\]"):
        differences(Brier(), y, {"a": p})
    with pytest.raises(InputError, match=r"there is no model 'model' to refer to \(did you mean 'model1'\?\)"):
        differences(Brier(), y, {"model1": p, "b": p}, reference="model")


@pytest.mark.parametrize(("centre", "expected"), [(0.0, 1.0), (1e-9, 1.0), (1.0, 1e-12)])
def test_the_ends_of_the_pvalue(centre, expected):
    """At zero it is one; far from zero it is the smallest that is told, not what a bisection happens to end at."""
    around = np.concatenate([np.full(5_000, -0.1), np.full(5_000, 0.1)])
    assert pvalue_of_zero(MeanLimits.of(centre + around)) == pytest.approx(expected, rel=1e-5)


def test_the_level_of_the_pvalue_leaves_zero_just_out():
    limits = MeanLimits.of(np.random.default_rng(0).normal(0.3, 1, 100))
    p = pvalue_of_zero(limits)
    assert 1e-6 < p < 0.1
    assert 0 in limits(1 - p * (1 - 1e-6))
    assert 0 not in limits(1 - p * (1 + 1e-6))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_differences_have_the_unit_of_their_scores(unit, rng):
    """Losses in cents and in millions: the same p-value, and limits as many times as wide."""
    drawn = rng.normal(0.3, 1, 99)
    one, other = Brier()([0, 1], [0.1, 0.7]), Brier()([0, 1], [0.2, 0.6])
    plain, scaled = (
        PairedDifference(Brier(), n_resamples=99)._difference(
            replace(one, value=size * 1.4), replace(other, value=size), size * drawn
        )
        for size in (1.0, unit)
    )
    assert scaled.pvalue == plain.pvalue
    assert scaled.interval.high == pytest.approx(unit * plain.interval.high, rel=1e-9)
