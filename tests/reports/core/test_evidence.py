"""Worlds with a known defect, and the sentence they must get."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from calibrant import ECE, Bernoulli, Brier, Categorical, ClassWise, EqualMass, ExactTest
from calibrant.inference.exact_tests.aggregated import Pool
from calibrant.reports import KeyNumber, judge
from calibrant.reports.core.evidence import (
    EACH,
    Evidence,
    LabelEvidence,
    gather,
    include_null,
    largest_left,
    would_show,
)
from calibrant.reports.core.problem import slicings_of
from calibrant.results import Interval, TestResult


def test_errors_of_single_classes_come_with_their_mean(rng, problem_of):
    p = rng.dirichlet([1, 1, 1], 200)
    y = Categorical(p).sample(rng, 1)[0]
    each = ECE(EqualMass(15), lens=ClassWise())
    evidence = gather(problem_of(y, Categorical(p)), {"class-wise": each, "score": Brier()}, (), {"class-wise": EACH})
    pool = evidence.pool
    assert pool.values[EACH].mean(axis=1) == pytest.approx(pool.values["class-wise"][:, 0])
    assert pool.observed("class-wise") == pytest.approx(float(each(y, p)))
    assert evidence.classes == (EACH,)
    assert pool.two_sided == {"score"}
    assert evidence.n_statistics == len(evidence.single) + 1
    assert "aggregated exact test of" in evidence.in_words(200)


def test_slices_are_a_family(rng, problem_of):
    p = rng.random(200)
    problem = problem_of((rng.random(200) < p) * 1, Categorical(p))
    evidence = gather(problem, {"error": problem.error}, slicings_of(problem, {"half": ["a", "b"] * 100}))
    assert evidence.pool.values["slices 0"].shape == (100, 2)
    names = list(evidence.single)
    assert evidence.pvalue == evidence.pool.together(names, [["slices 0"]])
    assert evidence.pvalue_of_all_rows == evidence.pool.together(names)


def test_labels_are_put_together_whatever_their_dependence(rng):
    """Labels that are copies of one another, or independent: at most 5 % of p-values are at most 5 %."""
    pool = Pool({"x": np.zeros((100, 1))})

    def pvalue(labels):
        return LabelEvidence(pool, (), labels=tuple(labels)).pvalue

    assert pvalue([0.001, 0.5, 0.6, 0.9]) == pytest.approx(0.008)
    assert pvalue([0.01] * 4) == pytest.approx(0.04)
    copies = [pvalue([u] * 5) <= 0.05 for u in rng.random(2000)]
    single = [pvalue(rng.random(5)) <= 0.05 for _ in range(2000)]
    assert max(np.mean(copies), np.mean(single)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_evidence_without_families():
    pool = Pool({"x": np.array([[0.0], [1.0], [2.0], [3.0]])})
    assert Evidence(pool, ("x",)).pvalue == 0.25


def binary(rng, truth, n=2000):
    p = rng.beta(0.7, 0.7, n)
    return (rng.random(n) < truth(p)).astype(int), p


WORLDS = {
    "over": (lambda p: expit(0.4 * logit(p)), "bad", "the model is over-confident"),
    "under": (lambda p: expit(3 * logit(p)), "bad", "the model is under-confident"),
    "too high": (lambda p: 0.8 * p, "bad", "they are too high"),
    "too low": (lambda p: np.minimum(1, p + 0.08), "bad", "they are too low"),
    "both ways": (
        lambda p: p + 0.12 * np.sin(4 * np.pi * p) * (4 * p * (1 - p)),
        "bad",
        "too high in places and too low",
    ),
    "calibrated": (lambda p: p, "good", "These probabilities agree with what happened."),
}


@pytest.mark.parametrize("world", WORLDS)
def test_the_defect_is_named(world, rng):
    truth, tone, words = WORLDS[world]
    verdict = judge(*binary(rng, truth), n_resamples=399)
    assert verdict.tone == tone
    assert words in verdict.headline


def test_several_classes(rng, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e9)  # for speed
    z = 2 * rng.normal(size=(1500, 4))
    honest = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random((1500, 1)) >= np.cumsum(honest, axis=1)[:, :-1]).sum(axis=1)
    sharp, flat = (np.exp(s * z) / np.exp(s * z).sum(axis=1, keepdims=True) for s in (2, 0.5))
    assert "over-confident" in judge(y, sharp, n_resamples=399).headline
    assert "under-confident" in judge(y, flat, n_resamples=399).headline
    assert judge(y, honest, n_resamples=399).tone == "good"


def test_several_labels(rng):
    p = rng.random((1000, 3))
    y = (rng.random((1000, 3)) < 0.7 * p).astype(int)
    verdict = judge(y, Bernoulli(p), n_resamples=399)
    assert "they are too high" in verdict.headline


def test_classes_that_are_swapped_behind_an_honest_confidence_are_found(rng, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e9)  # for speed
    p = rng.dirichlet([8, 3, 1], 2000)
    y = (rng.random((2000, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    swapped = np.where(p.argmax(axis=1)[:, None] == 0, p[:, [0, 2, 1]], p)
    verdict = judge(y, swapped, n_resamples=399)
    assert verdict.tone == "bad"
    assert "class 1 is claimed too seldom" in verdict.headline


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rate_that_is_off_is_called_so_on_either_side_of_a_half(dtype, rng):
    p = (0.5 * rng.beta(1, 5, 4000)).astype(dtype)
    for claims, truth, word in ((p, 1.5 * p, "too low"), (1 - p, 1 - 1.5 * p, "too high")):
        y = (rng.random(4000) < truth).astype(int)
        assert word in judge(y, claims, n_resamples=399).headline


def test_rare_events_are_readable(rng, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 0)  # for speed
    p = rng.beta(1, 2000, 50_000)
    y = (rng.random(50_000) < 3 * p).astype(int)
    verdict = judge(y, p, n_resamples=199)
    assert verdict.evidence[2].startswith("They average 0.0")
    assert "too low" in verdict.headline


def test_false_alarms_are_rare(rng):
    """A hundred calibrated data sets of 40 rows: at most 5 % should alarm; 99.9 % bound of the binomial."""
    alarms = sum(judge(*binary(rng, lambda p: p, 40), n_resamples=99, rng=i).is_alarm for i in range(100))
    assert alarms <= 13


def test_evidence_comes_in_order(rng):
    verdict = judge(*binary(rng, WORLDS["over"][0]), n_resamples=399)
    assert verdict.evidence[0] == (
        "All tests together: p = 0.0025 (aggregated exact test of 10 statistics with 399 resamples, n = 2,000)."
    )
    assert "Calibration error: " in verdict.evidence[1]
    assert "95 % interval" in verdict.evidence[1]
    assert "a calibrated model with these very predictions would show" in verdict.evidence[1]
    assert verdict.evidence[2].startswith("The model claims ")
    assert verdict.evidence[3].startswith("The gap is widest where the claim is about ")
    assert (verdict.pvalue, verdict.finding, verdict.is_alarm) == (0.0025, "over-confident", True)


def test_the_good_verdict_says_what_is_ruled_out(rng):
    verdict = judge(*binary(rng, lambda p: p, 200), n_resamples=399)
    assert verdict.evidence[2].startswith("An error above ")
    assert verdict.evidence[2].endswith("% is ruled out (95 %); a smaller one is not.")
    assert (verdict.finding, verdict.is_alarm) == ("none", False)


def test_few_rows_cannot_tell(rng):
    verdict = judge(*binary(rng, lambda p: p, 20), n_resamples=99)
    assert verdict.headline == "20 rows are too few to tell."
    assert "would go unnoticed" in verdict.evidence[2]
    assert not verdict.is_alarm


def test_what_is_certain_but_small_is_not_shouted(rng, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 0)  # for speed
    p = rng.uniform(0.2, 0.8, 100_000)
    y = (rng.random(100_000) < p - 0.0065) * 1
    verdict = judge(y, p, n_resamples=199)
    assert verdict.is_alarm
    assert verdict.tone == "good"
    assert verdict.headline.startswith("These probabilities are nearly right: they are too high, but by little (0.")


def test_what_limits_the_error_adds_up():
    number = KeyNumber("x", "", 0.1, "fraction", None, Interval(0.01, 0.05, 0.95, ""), 0.5, "", "", "error")
    assert largest_left(number) == pytest.approx(0.15)
    assert largest_left(replace(number, interval=Interval(0.0, 0.12, 0.95, ""))) == 0.12


def test_a_slice_alone_may_be_wrong(rng):
    p = rng.uniform(0.2, 0.8, 3000)
    site = np.where(rng.random(3000) < 0.1, "west", "east")
    y = (rng.random(3000) < p + np.where(site == "west", -0.18, 0.02)) * 1
    verdict = judge(y, p, by={"site": site}, n_resamples=199)
    assert verdict.finding == "slice"
    assert "too high where site = west" in verdict.headline


def test_include_null_reaches_zero_only_when_the_test_allows():
    interval = Interval(0.02, 0.08, 0.95, "normal noise")
    weak, strong = (TestResult(0.05, p, 10, None, None, np.zeros(1)) for p in (0.3, 0.01))
    assert tuple(include_null(interval, weak)) == (0.0, 0.08)
    assert include_null(interval, strong) is interval


@pytest.mark.study
@pytest.mark.parametrize(("slope", "shift"), [(1, 0), (0.8, 0), (0.4, 0.3)])
def test_the_interval_of_the_report_covers_the_error_of_its_bins(slope, shift):
    rng, covered, estimator = np.random.default_rng(5), 0, ECE(EqualMass(15))
    for seed in range(400):
        p = rng.beta(0.5, 0.5, 1000)
        truth = expit(slope * logit(p) + shift)
        y = (rng.random(1000) < truth).astype(int)
        interval = estimator(y, p).confidence_interval()
        joined = include_null(interval, ExactTest(estimator, n_resamples=99)(y, p, rng=seed))
        cell = estimator.bins.bins(p).of_rows(p, slice(None))
        covered += np.abs(np.bincount(cell, weights=p - truth)).sum() / 1000 in joined
    print(f"slope {slope}, shift {shift}: {covered / 400:.3f}")
    assert covered >= binom.ppf(0.0005, 400, 0.95)


def test_what_a_calibrated_model_would_show_in_words():
    """Where resamples took too long, where signs of clusters took their place, and else."""
    number = KeyNumber("Error", "meaning", 0.1, "fraction", None, None, None, "ECE()", "ECE", "error")
    assert would_show(number) == "what a calibrated model would show was not computed"
    assert would_show(replace(number, pvalue=0.5)) == "p = 0.5 by random signs of clusters"
    band = Interval(0.01, 0.05, 0.95, "calibrated resamples")
    assert would_show(replace(number, pvalue=0.5, null_band=band)).endswith("would show 1 % to 5 % (p = 0.5)")
