"""Thirty simulated worlds with known truth, and the words that a report must find for each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant import Bernoulli, Categorical, Ensemble, NegativeBinomial, Normal, Poisson
from calibrant.lab.problems import Localised, Sharp, Sigmoid, Tempered, World

Data = tuple[Any, Any, dict[str, np.ndarray]]
"""Targets, predictions, and columns to slice by."""


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
    return *world.draw(n, rng), {}


def _drawn(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return Categorical(q).sample(rng, 1)[0]


def _normalised(p: np.ndarray) -> np.ndarray:
    return p / p.sum(axis=1, keepdims=True)


def one_class(rng: np.random.Generator, n: int) -> Data:
    """Class b gets twice the odds it should have."""
    q = rng.dirichlet([2.0, 2.0, 2.0, 2.0], n)
    p = _normalised(q * [1, 2, 1, 1])
    return _drawn(q, rng), Categorical(p, labels=("a", "b", "c", "d")), {}


def swapped(rng: np.random.Generator, n: int) -> Data:
    """Classes b and c change places wherever a is favoured: the confidence stays honest."""
    q = rng.dirichlet([8, 3, 1], n)
    p = np.where(q.argmax(axis=1)[:, None] == 0, q[:, [0, 2, 1]], q)
    return _drawn(q, rng), Categorical(p, labels=("a", "b", "c")), {}


def one_favourite(rng: np.random.Generator, n: int) -> Data:
    """Too sure only where class b is favoured."""
    p = rng.dirichlet([0.7, 0.7, 0.7], n)
    soft = _normalised(p**0.35)
    return _drawn(np.where(p.argmax(axis=1)[:, None] == 1, soft, p), rng), Categorical(p, labels=("a", "b", "c")), {}


def one_slice(rng: np.random.Generator, n: int) -> Data:
    """A tenth of the rows, from one site, is too high; all others too low by as little as makes up for it."""
    p = rng.uniform(0.2, 0.8, n)
    site = np.where(rng.random(n) < 0.1, "west", rng.choice(["north", "south"], n))
    y = rng.random(n) < p + np.where(site == "west", -0.18, 0.02)
    return y * 1, p, {"site": site}


def slices(rng: np.random.Generator, n: int) -> Data:
    """Calibrated, and looked at by three columns."""
    p = rng.random(n)
    by = {"site": rng.choice(list("abcdef"), n), "age": rng.normal(size=n), "day": rng.integers(0, 30, n)}
    return (rng.random(n) < p) * 1, p, by


def rare(factor: float, rng: np.random.Generator, n: int) -> Data:
    """Events of one in a hundred."""
    p = rng.beta(1, 100, n)
    return (rng.random(n) < np.minimum(1, factor * p)) * 1, p, {}


def labels(k: int, spoiled: float, rng: np.random.Generator, n: int) -> Data:
    """Labels that depend on each other: one uniform number decides all; the last one may be too high."""
    p = rng.random((n, k))
    shared = 0.7 * rng.normal(size=(n, 1)) + np.sqrt(1 - 0.49) * rng.normal(size=(n, k))
    level = np.argsort(np.argsort(shared, axis=0), axis=0) / n  # nearly uniform, and dependent within a row
    q = p.copy()
    q[:, -1] = np.maximum(0, q[:, -1] - spoiled)
    return (level < q) * 1, Bernoulli(p, labels=[f"label {i}" for i in range(k)]), {}


def all_labels(rng: np.random.Generator, n: int) -> Data:
    """Every label over-confident."""
    p = rng.random((n, 5))
    return (rng.random((n, 5)) < expit(0.4 * logit(p))) * 1, Bernoulli(p), {}


def normal(shift: float, scale: float, rng: np.random.Generator, n: int) -> Data:
    """Normal forecasts; outcomes lie higher by so many standard deviations, and are spread as many times as far."""
    loc, spread = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc + spread * (shift + scale * rng.normal(size=n)), Normal(loc, spread), {}


def one_width(rng: np.random.Generator, n: int) -> Data:
    """Predicted spreads that say nothing: too narrow where small, too wide where large."""
    loc, spread = rng.normal(size=n), rng.uniform(0.4, 2.5, n)
    return loc + 1.3 * rng.normal(size=n), Normal(loc, spread), {}


def counts(dispersion: float, rng: np.random.Generator, n: int) -> Data:
    """Poisson forecasts of counts whose variance is larger; with dispersion 0 as large as it should be."""
    rate = rng.uniform(1, 8, n)
    if dispersion == 0:
        return rng.poisson(rate), Poisson(rate), {}
    return rng.poisson(rate * rng.gamma(1 / dispersion, dispersion, n)), Poisson(rate), {}


def dispersed(rng: np.random.Generator, n: int) -> Data:
    """Negative binomial forecasts of such counts."""
    predictions = NegativeBinomial(rng.uniform(1, 8, n), 0.5)
    return predictions.sample(rng, 1)[0], predictions, {}


def ensemble(scale: float, shift: float, rng: np.random.Generator, n: int) -> Data:
    """Seven members and an outcome of the same law, but for shift and scale."""
    centre, spread = rng.normal(size=(n, 1)), rng.uniform(0.5, 2, (n, 1))
    values = centre + spread * rng.normal(size=(n, 8))
    return centre[:, 0] + spread[:, 0] * (shift + scale * rng.normal(size=n)), Ensemble(values[:, 1:]), {}


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
)
