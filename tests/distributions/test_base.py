"""Conformance of every family, so that a new one inherits its tests by joining the list."""

import importlib
import inspect
import pickle
import pkgutil

import numpy as np
import pytest

from calibrant import (
    Bernoulli,
    Categorical,
    Ensemble,
    Gamma,
    Laplace,
    LogLoss,
    LogNormal,
    Mixture,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Quantiles,
    StudentT,
    distributions,
)
from calibrant._array import matched
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import (
    Beta,
    Censored,
    Dirichlet,
    Distribution,
    Foreign,
    Histogram,
    Logistic,
    PowerExponential,
    Truncated,
    Uniform,
)
from calibrant.distributions.base import as_numbers
from calibrant.distributions.empirical.quantiles import JoinedQuantiles


class Diagonal(MultivariateNormal):
    """Given by standard deviations."""

    @classmethod
    def example(cls, rng, n):
        return cls(rng.normal(size=(n, 2)), rng.uniform(0.5, 2, (n, 2)))


class Vectors(Ensemble):
    """Members in two dimensions."""

    @classmethod
    def example(cls, rng, n):
        return cls(rng.normal(size=(n, 5, 2)))


class Weighted(Ensemble):
    """Members that are not equally likely."""

    @classmethod
    def example(cls, rng, n):
        return cls(rng.normal(size=(n, 5)), rng.dirichlet(np.ones(5), n))


class OfEnsembles(Mixture):
    @classmethod
    def example(cls, rng, n):
        return cls([Ensemble.example(rng, n) for _ in range(2)])


class OfVectors(Mixture):
    @classmethod
    def example(cls, rng, n):
        return cls([MultivariateNormal.example(rng, n) for _ in range(2)])


class OfCounts(Mixture):
    @classmethod
    def example(cls, rng, n):
        return cls([Poisson.example(rng, n) for _ in range(2)], rng.dirichlet([1, 1], n))


class Dry(Quantiles):
    """With a chance of exactly zero, and a range that ends above."""

    @classmethod
    def example(cls, rng, n):
        rain = np.concatenate([np.zeros((n, 2)), np.cumsum(rng.uniform(0.3, 1, (n, 3)), axis=1)], axis=1)
        return cls(rain, [0.2, 0.4, 0.5, 0.7, 0.9], tails=(-np.inf, 5.0))


class Clipped(Quantiles):
    """What is beyond the outer quantiles lies there."""

    @classmethod
    def example(cls, rng, n):
        return cls(Quantiles.example(rng, n).values, [0.1, 0.3, 0.5, 0.6, 0.9], tails="flat")


FAMILIES = [
    *(Bernoulli, Beta, Categorical, Censored, Dirichlet, Ensemble, Foreign, Gamma, Histogram, Laplace, Logistic),
    *(
        LogNormal,
        Mixture,
        MultivariateNormal,
        NegativeBinomial,
        Normal,
        Poisson,
        PowerExponential,
        Quantiles,
        JoinedQuantiles,
        StudentT,
        Truncated,
        Uniform,
    ),
]
VARIANTS = [Diagonal, Vectors, Weighted, OfEnsembles, OfVectors, OfCounts, Dry, Clipped]


def test_every_family_is_in_the_list():
    found = set()
    for module in pkgutil.walk_packages(distributions.__path__, f"{distributions.__name__}."):
        kinds = [kind for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)]
        found |= {kind for kind in kinds if issubclass(kind, Distribution) and not inspect.isabstract(kind)}
    assert found == set(FAMILIES)


@pytest.mark.parametrize("family", [*FAMILIES, *VARIANTS])
class TestFamily:
    def test_it_conforms(self, family, rng):
        check_distribution(family, rng)

    def test_samples_are_valid_targets(self, family, rng):
        batch = family.example(rng, 6)
        for targets in batch.sample(rng, 4):
            assert np.array_equal(batch.as_targets(targets), targets)

    def test_equal_seeds_give_equal_draws(self, family, rng):
        batch = family.example(rng, 3)
        first, second = (batch.sample(np.random.default_rng(1), 5) for _ in range(2))
        assert np.array_equal(first, second)

    def test_checked_predictions_are_the_same(self, family, rng):
        batch = family.example(rng, 3)
        first, second = (b.sample(np.random.default_rng(1), 5) for b in (batch, batch.checked()))
        assert np.array_equal(first, second)

    def test_it_travels_to_other_processes(self, family, rng):
        batch = family.example(rng, 6)
        again = pickle.loads(pickle.dumps(batch))
        assert type(again) is family
        assert np.array_equal(*(b.sample(np.random.default_rng(1), 5) for b in (batch, again)))

    def test_it_says_what_it_is(self, family, rng):
        name = next(kind.__name__ for kind in family.__mro__ if kind in FAMILIES)
        assert repr(family.example(rng, 1234)).startswith(f"<{name}: 1,234 predictions")


def entropy(batch):
    p = batch.probs
    if isinstance(batch, Bernoulli):
        return -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(axis=1)
    return -(p * np.log(p)).sum(axis=1)


@pytest.mark.parametrize("family", [Bernoulli, Categorical])
def test_samples_follow_the_log_probabilities(family, rng):
    """The mean of -log p over many draws is the entropy, found by summing over all outcomes."""
    batch = family.example(rng, 3)
    values = -batch.log_prob(batch.sample(rng, 40_000))
    error = values.mean(axis=0) - entropy(batch)
    assert np.all(np.abs(error) < 5 * values.std(axis=0) / 200)


class Points(Distribution):
    """Only what is abstract."""

    def __len__(self):
        return 2

    def __getitem__(self, rows):
        return self

    def as_targets(self, y_true):
        return np.asarray(y_true)

    def sample(self, rng, size):
        return np.zeros((size, 2))

    @classmethod
    def example(cls, rng, n):
        return cls()


def test_a_family_without_density_is_refused_by_the_log_loss():
    with pytest.raises(InputError, match="Points has no log_prob"):
        LogLoss()([0.0, 1.0], Points())


def test_what_is_optional_is_not_implemented():
    batch, numbers = Points(), np.zeros(2)
    answers = [batch.coords, batch.point(numbers), batch.cdf(numbers), batch.quantile(numbers), batch.cf(numbers)]
    answers += [batch.temper(2.0), batch.below(numbers), batch.mean, batch.std, batch.crps(numbers)]
    assert batch.log_reference(numbers) == 0
    assert all(answer is NotImplemented for answer in answers)
    assert batch.checked() is batch


def test_numbers_are_real_finite_and_at_least_one():
    assert as_numbers([1, 2], "x").dtype == np.float64
    assert as_numbers(np.zeros(2, dtype=np.float16), "x").dtype == np.float32
    for empty in ([], np.zeros((2, 0)), np.zeros((0, 2))):
        with pytest.raises(InputError, match="x is empty: got shape"):
            as_numbers(empty, "x")


def test_numbers_of_the_host_join_another_library(xp):
    to = xp.asarray([1.0, 2.0])
    assert isinstance(matched(np.zeros(3), to), type(to))
    assert matched(to, to) is to
    assert isinstance(matched(to, np.zeros(1)), np.ndarray)
