"""Worlds with a known defect, and the sentence they must get."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import Bernoulli, evaluate
from calibrant.reports.verdict import Leaning


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
    verdict = evaluate(*binary(rng, truth), n_resamples=399).verdict
    assert verdict.tone == tone
    assert words in verdict.headline


def test_several_classes(rng):
    z = 2 * rng.normal(size=(1500, 4))
    honest = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random((1500, 1)) >= np.cumsum(honest, axis=1)[:, :-1]).sum(axis=1)
    sharp, flat = (np.exp(s * z) / np.exp(s * z).sum(axis=1, keepdims=True) for s in (2, 0.5))
    assert "over-confident" in evaluate(y, sharp, n_resamples=399).verdict.headline
    assert "under-confident" in evaluate(y, flat, n_resamples=399).verdict.headline
    assert evaluate(y, honest, n_resamples=399).verdict.tone == "good"


def test_several_labels(rng):
    p = rng.random((1000, 3))
    y = (rng.random((1000, 3)) < 0.7 * p).astype(int)
    verdict = evaluate(y, Bernoulli(p), n_resamples=399).verdict
    assert "they are too high" in verdict.headline


def test_classes_that_are_swapped_behind_an_honest_confidence_are_found(rng):
    p = rng.dirichlet([8, 3, 1], 2000)
    y = (rng.random((2000, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    swapped = np.where(p.argmax(axis=1)[:, None] == 0, p[:, [0, 2, 1]], p)
    verdict = evaluate(y, swapped, n_resamples=399).verdict
    assert verdict.tone == "bad"
    assert "single classes are not" in verdict.headline


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rate_that_is_off_is_called_so_on_either_side_of_a_half(dtype, rng):
    p = (0.5 * rng.beta(1, 5, 4000)).astype(dtype)
    for claims, truth, word in ((p, 1.5 * p, "too low"), (1 - p, 1 - 1.5 * p, "too high")):
        y = (rng.random(4000) < truth).astype(int)
        assert word in evaluate(y, claims, n_resamples=399).verdict.headline


def test_rare_events_are_readable(rng):
    p = rng.beta(1, 2000, 200_000)
    y = (rng.random(200_000) < 3 * p).astype(int)
    verdict = evaluate(y, p, n_resamples=399).verdict
    assert "They average 0.0" in verdict.evidence[0]
    assert "too low" in verdict.headline


def test_false_alarms_are_rare(rng):
    """One hundred calibrated data sets of 60 rows: at most 5 % should alarm; 99.9 % bound of the binomial."""
    alarms = sum(evaluate(*binary(rng, lambda p: p, 60), n_resamples=399).verdict.tone != "good" for _ in range(100))
    assert alarms <= 13


def test_the_good_verdict_says_what_is_not_ruled_out(rng):
    evidence = evaluate(*binary(rng, lambda p: p, 200), n_resamples=399).verdict.evidence
    assert "is not ruled out" in evidence[1]


def test_leaning_by_hand():
    leaning = Leaning.of(np.array([0.5, 0.5, 0.9, 0.9]), np.array([1, 0, 0, 1]), None)
    assert (leaning.claimed, leaning.happened) == pytest.approx((0.7, 0.5))
    assert leaning.z == pytest.approx(0.2 / np.sqrt((0.25 + 0.25 + 0.09 + 0.09) / 16))
    weighted = Leaning.of(np.array([0.5, 0.9]), np.array([1, 0]), np.array([3.0, 1.0]))
    assert (weighted.claimed, weighted.happened) == pytest.approx((0.6, 0.75))
    assert Leaning.of(np.array([1.0, 1.0]), np.array([1, 0]), None).z == np.inf
    assert Leaning.of(np.array([1.0, 1.0]), np.array([1, 1]), None).z == 0
