"""Simulated worlds with known truth, and the words that a report must find for each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import gamma

from calibrant import Bernoulli, Categorical, Ensemble, NegativeBinomial, Normal, Poisson, Quantiles
from calibrant.lab import Localised, Sharp, Sigmoid, Tempered, World


@dataclass(frozen=True, eq=False)
class Data:
    """Targets, predictions, columns to slice by, and weights where there are any."""

    y_true: Any
    y_pred: Any
    by: dict[str, np.ndarray] = field(default_factory=dict)
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A world: its name, how many rows, how they are drawn, what is true, and words that the sentence must have.

    Without words the world is calibrated, and any alarm is false.
    """

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], Data]
    truth: str
    words: tuple[str, ...] = ()


def lab(world: World) -> Callable[[np.random.Generator, int], Data]:
    """A world of the laboratory."""
    return partial(_lab, world)


def _lab(world: World, rng: np.random.Generator, n: int) -> Data:
    return Data(*world.draw(n, rng))


def _drawn(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return Categorical(q).sample(rng, 1)[0]


def _normalised(p: np.ndarray) -> np.ndarray:
    return p / p.sum(axis=1, keepdims=True)


def one_class(rng: np.random.Generator, n: int) -> Data:
    """Class b gets twice the odds it should have."""
    q = rng.dirichlet([2.0, 2.0, 2.0, 2.0], n)
    p = _normalised(q * [1, 2, 1, 1])
    return Data(_drawn(q, rng), Categorical(p, labels=("a", "b", "c", "d")))


def swapped(rng: np.random.Generator, n: int) -> Data:
    """Classes b and c change places wherever a is favoured: the confidence stays honest."""
    q = rng.dirichlet([8, 3, 1], n)
    p = np.where(q.argmax(axis=1)[:, None] == 0, q[:, [0, 2, 1]], q)
    return Data(_drawn(q, rng), Categorical(p, labels=("a", "b", "c")))


def one_favourite(rng: np.random.Generator, n: int) -> Data:
    """Too sure only where class b is favoured."""
    p = rng.dirichlet([0.7, 0.7, 0.7], n)
    soft = _normalised(p**0.35)
    return Data(_drawn(np.where(p.argmax(axis=1)[:, None] == 1, soft, p), rng), Categorical(p, labels=("a", "b", "c")))


def one_slice(rng: np.random.Generator, n: int) -> Data:
    """A tenth of the rows, from one site, is too high; all others too low by as little as makes up for it."""
    p = rng.uniform(0.2, 0.8, n)
    site = np.where(rng.random(n) < 0.1, "west", rng.choice(["north", "south"], n))
    y = rng.random(n) < p + np.where(site == "west", -0.18, 0.02)
    return Data(y * 1, p, {"site": site})


def slices(rng: np.random.Generator, n: int) -> Data:
    """Calibrated, and looked at by three columns."""
    p = rng.random(n)
    by = {"site": rng.choice(list("abcdef"), n), "age": rng.normal(size=n), "day": rng.integers(0, 30, n)}
    return Data((rng.random(n) < p) * 1, p, by)


def rare(factor: float, rng: np.random.Generator, n: int) -> Data:
    """Events of one in a hundred."""
    p = rng.beta(1, 100, n)
    return Data((rng.random(n) < np.minimum(1, factor * p)) * 1, p)


def labels(k: int, spoiled: float, rng: np.random.Generator, n: int) -> Data:
    """Labels that depend on each other: one uniform number decides all; the last one may be too high."""
    p = rng.random((n, k))
    shared = 0.7 * rng.normal(size=(n, 1)) + np.sqrt(1 - 0.49) * rng.normal(size=(n, k))
    level = np.argsort(np.argsort(shared, axis=0), axis=0) / n  # nearly uniform, and dependent within a row
    q = p.copy()
    q[:, -1] = np.maximum(0, q[:, -1] - spoiled)
    return Data((level < q) * 1, Bernoulli(p, labels=tuple(f"label {i}" for i in range(k))))


def all_labels(rng: np.random.Generator, n: int) -> Data:
    """Every label over-confident."""
    p = rng.random((n, 5))
    return Data((rng.random((n, 5)) < expit(0.4 * logit(p))) * 1, Bernoulli(p))


def normal(shift: float, scale: float, rng: np.random.Generator, n: int) -> Data:
    """Normal forecasts; outcomes lie higher by so many standard deviations, and are spread as many times as far."""
    loc, spread = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return Data(loc + spread * (shift + scale * rng.normal(size=n)), Normal(loc, spread))


def one_width(rng: np.random.Generator, n: int) -> Data:
    """Predicted spreads that say nothing: too narrow where small, too wide where large."""
    loc, spread = rng.normal(size=n), rng.uniform(0.4, 2.5, n)
    return Data(loc + 1.3 * rng.normal(size=n), Normal(loc, spread))


def counts(dispersion: float, rng: np.random.Generator, n: int) -> Data:
    """Poisson forecasts of counts whose variance is larger; with dispersion 0 as large as it should be."""
    rate = rng.uniform(1, 8, n)
    if dispersion == 0:
        return Data(rng.poisson(rate), Poisson(rate))
    return Data(rng.poisson(rate * rng.gamma(1 / dispersion, dispersion, n)), Poisson(rate))


def dispersed(rng: np.random.Generator, n: int) -> Data:
    """Negative binomial forecasts of such counts."""
    predictions = NegativeBinomial(rng.uniform(1, 8, n), 0.5)
    return Data(predictions.sample(rng, 1)[0], predictions)


def ensemble(scale: float, shift: float, rng: np.random.Generator, n: int) -> Data:
    """Seven members and an outcome of the same law, but for shift and scale."""
    centre, spread = rng.normal(size=(n, 1)), rng.uniform(0.5, 2, (n, 1))
    values = centre + spread * rng.normal(size=(n, 8))
    return Data(centre[:, 0] + spread[:, 0] * (shift + scale * rng.normal(size=n)), Ensemble(values[:, 1:]))


P10_P50_P90 = np.array([0.1, 0.5, 0.9])
NINETEEN = np.arange(1, 20) / 20


def fan(levels: np.ndarray, width: float, rng: np.random.Generator, n: int) -> Data:
    """Quantiles of normal targets, as many times as far from the median as they should be."""
    loc, spread = rng.normal(size=n), rng.uniform(0.5, 2, n)
    values = loc[:, None] + width * spread[:, None] * ndtri(levels)
    return Data(loc + spread * rng.normal(size=n), Quantiles(values, levels))


def skewed_fan(levels: np.ndarray, rng: np.random.Generator, n: int) -> Data:
    """Right quantiles of skewed targets: what joins them, and what lies beyond, is not known."""
    scale = rng.uniform(0.5, 2, n)
    return Data(scale * rng.gamma(0.7, 1, n), Quantiles(scale[:, None] * gamma(0.7).ppf(levels), levels))


def forest(sharpness: float, rng: np.random.Generator, n: int) -> Data:
    """Shares of a hundred trees, many of them 0 and 1; the truth lies ``sharpness`` times as far from 1/2."""
    scores = rng.binomial(100, rng.beta(0.3, 0.3, n)) / 100
    return Data((rng.random(n) < 0.5 + sharpness * (scores - 0.5)) * 1, scores)


def forest_of_three(rng: np.random.Generator, n: int) -> Data:
    """Votes of 25 trees for three classes, calibrated as they are."""
    votes = rng.multinomial(25, rng.dirichlet([0.5, 0.5, 0.5], n)) / 25
    return Data(_drawn(votes, rng), Categorical(votes))


def certain(surprises: float, rng: np.random.Generator, n: int) -> Data:
    """A third of the rows is called impossible or certain; a share of these comes out the other way."""
    p = rng.random(n)
    p = np.where(rng.random(n) < 1 / 3, np.round(p), p)
    q = np.where(p == 0, surprises, np.where(p == 1, 1 - surprises, p))
    return Data((rng.random(n) < q) * 1, p)


def seldom(share: float, rng: np.random.Generator, n: int) -> Data:
    """Calibrated, of an event with this share of rows."""
    p = rng.beta(0.5, 0.5 / share - 0.5, n)
    return Data((rng.random(n) < p) * 1, p)


TAIL_ROWS, TOP_ROWS = 37, 14
"""Of 10,000, with scores of 0.5 to 0.9 and of 0.9 to 0.986."""


def failing_tail(rng: np.random.Generator, n: int) -> Data:
    """Two in a hundred are positive, and scores up to 1/2 are right. Of 10,000 rows, above 1/2 39 events are expected and 29
    happen, above 0.9 13.2 are expected and 6 happen.
    """
    kind = rng.choice(3, n, p=[1 - (TAIL_ROWS + TOP_ROWS) / 10_000, TAIL_ROWS / 10_000, TOP_ROWS / 10_000])
    bulk, middle, top = rng.beta(0.5, 30.4, n), rng.uniform(0.5, 0.9, n), rng.uniform(0.9, 0.986, n)
    p = np.choose(kind, [bulk, middle, top])
    return Data((rng.random(n) < p * np.array([1, 23 / 25.9, 6 / 13.2])[kind]) * 1, p)


def cohort(shift: float, rng: np.random.Generator, n: int) -> Data:
    """External validation: a tenth of the patients is expected to have the event; log odds are higher by the shift."""
    odds = rng.normal(-2.5, 0.9, n)
    return Data((rng.random(n) < expit(odds + shift)) * 1, expit(odds))


def dominant(temperature: float, rng: np.random.Generator, n: int) -> Data:
    """Ten classes, of which one has 95 of a hundred rows."""
    p = rng.dirichlet([19, *[1 / 9] * 9], n)
    p = _normalised(np.maximum(p, 1e-6))
    return Data(_drawn(_normalised(p ** (1 / temperature)), rng), Categorical(p))


def weighted(shift: float, rng: np.random.Generator, n: int) -> Data:
    """Rows count unevenly, the most for a hundred of the least; log odds are higher by the shift."""
    p = rng.random(n)
    y = (rng.random(n) < expit(logit(p) + shift)) * 1
    return Data(y, p, {}, np.exp(rng.uniform(np.log(0.1), np.log(10), n)))


CASES = (
    Case("two classes", 300, lab(Sigmoid()), "calibrated"),
    Case("two classes, 20 rows", 20, lab(Sigmoid()), "calibrated"),
    Case("two classes, 50 rows", 50, lab(Sigmoid()), "calibrated"),
    Case("rare event", 2000, partial(rare, 1.0), "calibrated"),
    Case("two classes by three columns", 400, slices, "calibrated"),
    Case("three classes", 300, lab(Tempered(3)), "calibrated"),
    Case("ten classes", 300, lab(Tempered(10, concentration=0.3)), "calibrated"),
    Case("a hundred classes", 300, lab(Tempered(100, concentration=0.1)), "calibrated"),
    Case("five labels that depend", 300, partial(labels, 5, 0.0), "calibrated"),
    Case("normal forecasts", 200, partial(normal, 0.0, 1.0), "calibrated"),
    Case("counts", 200, partial(counts, 0.0), "calibrated"),
    Case("seven members", 300, partial(ensemble, 1.0, 0.0), "calibrated"),
    Case("two classes, too sure", 1000, lab(Sigmoid(0.4)), "over-confident", ("over-confident",)),
    Case(
        "two classes, 50 rows, too sure", 50, lab(Sigmoid(0.0)), "over-confident: p means nothing", ("over-confident",)
    ),
    Case("two classes, too timid", 1000, lab(Sigmoid(3.0)), "under-confident", ("under-confident",)),
    Case("two classes, shifted up", 1000, lab(Sigmoid(1.0, -0.8)), "claims too high", ("too high",)),
    Case("two classes, shifted down", 1000, lab(Sigmoid(1.0, 0.8)), "claims too low", ("too low",)),
    Case("rare event, tripled", 3000, partial(rare, 3.0), "claims too low", ("too low",)),
    Case("wrong at the top only", 3000, lab(Localised(0.4, corner=0.85)), "too high above 85 %", ("too high where",)),
    Case("wrong in waves", 3000, lab(Sharp(0.9, frequency=3)), "too high and too low in turn", ("too high in places",)),
    Case("one slice wrong", 3000, one_slice, "too high at one site", ("site = west",)),
    Case("three classes, too sure", 1000, lab(Tempered(3, 2.0)), "over-confident", ("over-confident",)),
    Case("ten classes, too timid", 1000, lab(Tempered(10, 0.5)), "under-confident", ("under-confident",)),
    Case("one class claimed too often", 1000, one_class, "class b too often", ("class b is claimed too often",)),
    Case(
        "two classes swapped",
        2000,
        swapped,
        "c for b",
        ("class b is claimed too seldom", "class c is claimed too often"),
    ),
    Case("too sure of one class", 2000, one_favourite, "over-confident in b", ("favours class b", "class b")),
    Case("one of five labels", 1000, partial(labels, 5, 0.2), "last label too high", ("label label 4 is too high",)),
    Case("five labels, too sure", 500, all_labels, "over-confident", ("over-confident",)),
    Case("normal, too narrow", 400, partial(normal, 0.0, 1.6), "too narrow", ("too narrow",)),
    Case("normal, too wide", 400, partial(normal, 0.0, 0.6), "too wide", ("too wide",)),
    Case("normal, too low", 400, partial(normal, 0.4, 1.0), "too low", ("too low",)),
    Case("normal, spreads that say nothing", 600, one_width, "narrow, then wide", ("where the predicted spread",)),
    Case("counts, over-dispersed", 400, partial(counts, 0.5), "too narrow", ("too narrow",)),
    Case("negative binomial", 200, dispersed, "calibrated"),
    Case("seven members, too narrow", 400, partial(ensemble, 1.8, 0.0), "too narrow", ("too narrow",)),
    Case("seven members, too high", 400, partial(ensemble, 1.0, -0.5), "too high", ("too high",)),
    Case("P10, P50, P90", 300, partial(fan, P10_P50_P90, 1.0), "calibrated"),
    Case("P10, P50, P90, 20 rows", 20, partial(fan, P10_P50_P90, 1.0), "calibrated"),
    Case("P10, P50, P90, skewed", 300, partial(skewed_fan, P10_P50_P90), "calibrated"),
    Case("19 quantiles", 300, partial(fan, NINETEEN, 1.0), "calibrated"),
    Case("19 quantiles, skewed", 300, partial(skewed_fan, NINETEEN), "calibrated"),
    Case("forest", 1000, partial(forest, 1.0), "calibrated"),
    Case("forest, 20 rows", 20, partial(forest, 1.0), "calibrated"),
    Case("forest of three classes", 500, forest_of_three, "calibrated"),
    Case("exact 0 and 1", 300, partial(certain, 0.0), "calibrated"),
    Case("0.5 % events", 2000, partial(seldom, 0.005), "calibrated"),
    Case("2 % events", 10_000, partial(seldom, 0.02), "calibrated"),
    Case("2 % events, 20 rows", 20, partial(seldom, 0.02), "calibrated"),
    Case("external validation", 700, partial(cohort, 0.0), "calibrated"),
    Case("one dominant class of ten", 500, partial(dominant, 1.0), "calibrated"),
    Case("uneven weights", 500, partial(weighted, 0.0), "calibrated"),
    Case("three classes, 20 rows", 20, lab(Tempered(3)), "calibrated"),
    Case("normal forecasts, 20 rows", 20, partial(normal, 0.0, 1.0), "calibrated"),
    Case("P10, P50, P90, too narrow", 400, partial(fan, P10_P50_P90, 0.6), "too narrow", ("too narrow",)),
    Case("P10, P50, P90, too wide", 400, partial(fan, P10_P50_P90, 1.6), "too wide", ("too wide",)),
    Case("19 quantiles, too narrow", 400, partial(fan, NINETEEN, 0.6), "too narrow", ("too narrow",)),
    Case("19 quantiles, too wide", 400, partial(fan, NINETEEN, 1.6), "too wide", ("too wide",)),
    Case("forest, too sure", 1000, partial(forest, 0.7), "over-confident", ("over-confident", "too high in places")),
    Case(
        "0 and 1 that fail",
        1000,
        partial(certain, 0.05),
        "over-confident at 0 and 1",
        ("over-confident", "too high in places"),
    ),
    Case("failing tail", 10_000, failing_tail, "too high above 50 %", ("too high",)),
    Case("external validation, too low", 700, partial(cohort, 0.41), "claims too low", ("too low",)),
    Case(
        "one dominant class, too sure", 2000, partial(dominant, 2.0), "over-confident", ("over-confident", "too often")
    ),
    Case("uneven weights, too low", 1000, partial(weighted, 0.8), "claims too low", ("too low",)),
)
