"""Rows that belong together are found by their errors, and independent rows hardly ever."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom

from calibrant import Bernoulli, Categorical, Ensemble, Normal
from calibrant.inference import suspicion
from calibrant.inference.dependence import Memory
from calibrant.inference.suspicion import Errors, Sign, Suspicion, equal_predictions, is_label, suspicions

TEXT = np.repeat(np.arange(60), 5)


def signs(y, p, **columns):
    return [found.sign for found in suspicions(y, p, columns)]


def alike(rng, correlation, p, labels=TEXT):
    """Calibrated outcomes whose latent variables are correlated within labels."""
    common, own = rng.normal(size=labels.max() + 1)[labels], rng.normal(size=len(labels))
    return (ndtr(correlation**0.5 * common + (1 - correlation) ** 0.5 * own) < p) * 1


def independent(family, rng, n):
    p = np.sort(rng.beta(*{"rare": (1, 99), "even": (1, 1), "wrong": (1, 1)}.get(family, (1, 1)), n))
    if family == "labels":
        probs = rng.beta(1, 4, (n, 3))
        return (rng.random((n, 3)) < probs) * 1, Bernoulli(probs)
    if family == "numbers":
        loc = np.sort(rng.normal(size=n))
        return 0.5 * loc + 2 * rng.normal(size=n), Normal(loc, 1.0)
    if family == "members":
        members = np.sort(rng.normal(size=(n, 9)), axis=1)
        return members[np.arange(n), rng.integers(0, 9, n)], Ensemble(members)
    return (rng.random(n) < (expit(3 * np.log(p / (1 - p))) if family == "wrong" else p)) * 1, Categorical(p)


@pytest.mark.parametrize("family", ["even", "rare", "wrong", "labels", "numbers", "members"])
def test_independent_rows_are_hardly_ever_accused(family):
    """Rows in the order of their predictions, calibrated or not: each of three looks accuses one of a thousand."""
    accused = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y, p = independent(family, rng, 300)
        found = signs(y, p, user=np.arange(300) // 5, text_id=rng.integers(0, 40, 300))
        accused += any(sign is not Sign.LABELS for sign in found)
    assert accused <= binom.ppf(0.9999, 100, 0.004)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_column_whose_rows_err_alike(rng, is_sorted):
    p = rng.random(300)
    y = alike(rng, 0.9, p)
    order = np.arange(300) if is_sorted else rng.permutation(300)
    (found,) = suspicions(y[order], Categorical(p[order]), {"text": TEXT[order], "user": rng.integers(0, 50, 300)})
    assert (found.sign, found.column, found.count) == (Sign.COLUMN, "text", 60)
    assert "--clusters text, in Python clusters=." in found.in_words()


def test_rows_with_equal_predictions_that_err_alike(rng):
    p = rng.random(60)[TEXT]
    found = suspicions(alike(rng, 0.9, p), Categorical(p), {})
    assert [s.sign for s in found] == [Sign.PREDICTIONS]
    assert "Rows with the same prediction err alike (correlation +0." in found[0].in_words()


def test_memory_in_the_order_of_the_rows_or_of_time(rng):
    z = np.repeat(rng.normal(size=100), 4)
    loc = rng.normal(size=400)
    assert signs(loc + z, Normal(loc, 1.0)) == [Sign.ORDER]
    order = rng.permutation(400)
    days = np.datetime64("2024-01-01") + order
    found = suspicions((loc + z)[order], Normal(loc, 1.0)[order], {"day": days})
    assert [s.sign for s in found] == [Sign.TIME]
    assert "--time day, in Python time=." in found[0].in_words()
    assert signs((loc + z)[order], Normal(loc, 1.0)[order], day=np.full(400, "soon")) == []


def test_the_correlation_is_that_of_residuals(rng):
    z = rng.normal(size=(200, 4)) * 0.6 + rng.normal(size=(200, 1)) * 0.8
    errors = Errors(z.ravel(), np.ones(800), np.zeros(800))
    ((memory, count),) = errors.within(np.arange(800) // 4)
    products = [z[:, i] @ z[:, j] for i in range(4) for j in range(i)]
    assert count == 200
    assert memory.correlation == pytest.approx(sum(products) / (6 * 200))


def test_moments_of_the_sum_of_products(rng):
    """Of skewed independent errors, by simulation: the threshold is exceeded as seldom as it says."""
    labels, p = np.repeat(np.arange(30), 4), np.repeat([0.1, 0.3], 60)
    draws = (rng.random((4000, 120)) < p) - p
    variance, third = p * (1 - p), p * (1 - p) * (1 - 2 * p)
    accused = sum(bool(Errors(values, variance, third).within(labels)) for values in draws)
    assert accused <= binom.ppf(0.9999, 4000, 0.002)


def test_a_name_alone_is_told_as_such(rng):
    p = rng.random(300)
    found = suspicions((rng.random(300) < p) * 1, Categorical(p), {"patient_id": rng.integers(0, 100, 300)})
    assert [s.sign for s in found] == [Sign.LABELS]
    assert found[0].in_words().startswith("patient_id looks like a label of rows that belong together")


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("questionId", np.arange(60) // 2, True),
        ("question", np.array([f"Who was {i // 2}?" for i in range(60)]), True),
        ("note", np.array([f"n{i // 2}" for i in range(60)], dtype=object), True),
        ("note", np.array([f"n{i % 2}" for i in range(600)]), False),
        ("user", np.arange(60), False),
        ("user", np.arange(60) % 3, False),
        ("age", np.arange(60) // 2, False),
        ("patient_score", np.linspace(0, 1, 30).repeat(2), False),
        ("visit_day", np.arange(60) // 2, False),
    ],
)
def test_what_looks_like_a_label(name, values, expected):
    assert is_label(name, values) == expected


def test_rounded_predictions_are_no_clusters():
    assert len(np.unique(equal_predictions(Categorical(np.tile([0.2, 0.4], 60))))) == 120
    assert len(np.unique(equal_predictions(Normal(np.tile(np.arange(60.0), 2), 1.0)))) == 60


def test_few_rows_accuse_nothing(rng):
    assert suspicions(np.zeros(20, dtype=int), Categorical(rng.random(20)), {"id": np.arange(20) // 2}) == []


def test_every_sign_has_its_words():
    said = {Suspicion(sign, Memory(0.5, 100), "a", 50).in_words() for sign in Sign}
    assert len(said) == len(Sign)


def test_slices_and_large_groups_are_not_accused_for_their_names(rng):
    p = Categorical(rng.random(900))
    y, subject, site = (rng.random(900) < p.probs) * 1, rng.integers(0, 57, 900), rng.integers(0, 15, 900)
    assert signs(y, p, subject=subject) == [Sign.LABELS]
    assert suspicions(y, p, {}, {"subject": subject}) == []
    assert signs(y, p, site=site) == []


def test_of_clusters_in_clusters_the_larger_are_named(rng):
    hospital = np.repeat(np.arange(30), 10)
    p = rng.random(300)
    found = suspicions(
        alike(rng, 0.8, p, hospital), Categorical(p), {"visit_id": np.arange(300) // 2, "site": hospital}
    )
    assert [s.column for s in found] == ["site"]


def test_durations_are_no_times(rng):
    z = np.repeat(rng.normal(size=100), 4)
    order, loc = rng.permutation(400), rng.normal(size=400)
    y, predictions = (loc + z)[order], Normal(loc, 1.0)[order]
    assert signs(y, predictions, time=order) == []
    assert signs(y, predictions, time=np.datetime64("2024-01-01") + order) == [Sign.TIME]


@pytest.mark.parametrize("steps", [30, 31])
def test_few_steps_in_time_say_nothing(steps):
    """However alike their errors are."""
    errors = np.repeat(np.where(np.arange(steps) < steps / 2, 1.0, -1.0), 2)
    seen = Errors.of(errors, Normal(np.zeros(2 * steps), np.ones(2 * steps)))
    assert bool(seen.along(np.repeat(np.arange(steps), 2))) == (steps == 31)


def test_no_correlation_is_beyond_one():
    """Errors three times as large as forecasts say are not three times as much alike."""
    wave = 3 * np.sin(np.arange(200) / 8)
    (memory,) = Errors(wave, np.ones(200), np.zeros(200)).along(np.arange(200))
    assert memory.correlation == pytest.approx(np.cos(1 / 8), abs=0.01)
    ((memory, _),) = Errors(np.repeat(wave, 3), np.ones(600), np.zeros(600)).within(np.repeat(np.arange(200), 3))
    assert memory.correlation == 1


def test_second_and_third_moments_from_all_outcomes(monkeypatch):
    """Of the sum of products of rows that share a label: twelve clusters of three rows with eight outcomes each."""
    asked = []
    monkeypatch.setattr(suspicion, "_is_beyond", lambda *moments: asked.append(moments))
    p, labels = np.random.default_rng(0).uniform(0.05, 0.5, (12, 3)), np.repeat(np.arange(12), 3)
    variance, third = p * (1 - p), p * (1 - p) * (1 - 2 * p)
    moments = np.zeros(2)
    for row in p:
        for outcome in product([0, 1], repeat=3):
            chance, e = np.prod(np.where(outcome, row, 1 - row)), np.array(outcome) - row
            total = e[0] * e[1] + e[0] * e[2] + e[1] * e[2]
            moments += chance * total**2, chance * total**3
    Errors(np.zeros(36), variance.ravel(), third.ravel()).within(labels)
    assert asked == [(0.0, pytest.approx(moments[0], rel=1e-9), pytest.approx(moments[1], rel=1e-9))]


def test_the_correlation_along_time_is_that_of_neighbours(rng):
    values = np.r_[5.0, np.repeat(rng.normal(size=20), 3), 7.0]
    (memory,) = Errors(values, np.full(62, 0.1), np.zeros(62)).along(np.arange(62))
    product = sum(values[i] * values[i + 1] for i in range(61))
    assert memory.correlation == pytest.approx(product / (sum(values[1:] ** 2) * sum(values[:-1] ** 2)) ** 0.5)


@pytest.mark.parametrize(("labels", "is_looked_at"), [(95, True), (96, False)])
def test_a_twentieth_of_the_rows_must_repeat(labels, is_looked_at):
    """However alike they are; of a column as of errors."""
    values = np.r_[np.arange(labels), np.arange(100 - labels)]
    assert is_label("id", values) == is_looked_at
    errors = Errors(np.where(values < 100 - labels, 9.0, 0.1), np.full(100, 0.1), np.zeros(100))
    assert bool(errors.within(values)) == is_looked_at


@pytest.mark.parametrize(("rows", "expected"), [(600, True), (612, False)])
def test_labels_are_shared_by_fifty_rows_at_most(rows, expected):
    assert is_label("note", np.array([f"n{i % 12}" for i in range(rows)])) == expected


def test_the_column_is_named_that_costs_most(monkeypatch):
    """Pairs with a correlation of .9 make variances 1.9 times as large, triples with .5 twice."""
    of = {150: 0.9, 100: 0.5}

    def within(self, labels):
        count = len(np.unique(labels))
        return [(Memory(of[count], 300), count)]

    monkeypatch.setattr(Errors, "within", within)
    columns = {"pair_id": np.arange(300) // 2, "triple_id": np.arange(300) // 3}
    found = suspicions(np.arange(300) % 2, Categorical(np.full(300, 0.5)), columns)
    assert [s.column for s in found] == ["triple_id"]
