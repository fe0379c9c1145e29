"""Calibrated worlds to measure levels in."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Categorical, MultivariateNormal


def binary(rng, n):
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), Categorical(p)


def classes(rng, n):
    predictions = Categorical(rng.dirichlet(np.ones(3), n))
    return predictions.sample(rng, 1)[0], predictions


def normal(dimensions):
    """Widmann, Lindsten & Zachariah (2021), appendix A.2: one random mean in all dimensions, standard deviation 0.1."""

    def world(rng, n):
        loc = np.repeat(rng.random((n, 1)), dimensions, axis=1)
        return loc + 0.1 * rng.standard_normal(loc.shape), MultivariateNormal(loc, scale=0.1)

    return world


WORLDS = {"binary": binary, "classes": classes, "normal-1": normal(1), "normal-10": normal(10)}


@pytest.fixture
def world():
    """Targets and predictions of a calibrated model, by name."""
    return WORLDS


@pytest.fixture
def rejections():
    """How many of so many calibrated data sets a test rejects at 5 %."""

    def count(test, name, n, data_sets, seed=1):
        rng = np.random.default_rng(seed)
        problems = (WORLDS[name](rng, n) for _ in range(data_sets))
        return sum(test(y, predictions, rng=i).pvalue <= 0.05 for i, (y, predictions) in enumerate(problems))

    return count


@pytest.fixture
def bounds():
    """The range that holds a binomial count with 99.9 %."""
    return lambda data_sets, chance=0.05: binom.interval(0.999, data_sets, chance)


@pytest.fixture
def published():
    """Whether a count agrees with a share published from 500 data sets, at 99.9 %."""

    def agrees(count, data_sets, share):
        together = (count + 500 * share) / (data_sets + 500)
        spread = np.sqrt(together * (1 - together) * (1 / data_sets + 1 / 500))
        return abs(count / data_sets - share) <= 3.3 * spread

    return agrees


@pytest.fixture(params=["two rows", "constant", "certain and right", "certain and wrong"])
def degenerate(request):
    """Problems at the edge: targets and probabilities."""
    rng = np.random.default_rng(5)
    certain = rng.integers(0, 2, 40).astype(float)
    return {
        "two rows": ([0, 1], [0.3, 0.4]),
        "constant": (rng.integers(0, 2, 40), np.full(40, 0.5)),
        "certain and right": (certain.astype(int), certain),
        "certain and wrong": (1 - certain.astype(int), certain),
    }[request.param]
