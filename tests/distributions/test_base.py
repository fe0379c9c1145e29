"""Conformance of every family, so that a new one inherits its tests by joining the list."""

import pickle

import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, LogLoss
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution

FAMILIES = [Bernoulli, Categorical]


@pytest.mark.parametrize("family", FAMILIES)
class TestFamily:
    def test_rows_can_be_taken(self, family, rng):
        batch = family.example(rng, 10)
        assert len(batch) == 10
        assert len(batch[2:5]) == 3
        assert np.array_equal(batch[np.array([7, 1])].probs, batch.probs[[7, 1]])

    def test_samples_are_valid_targets(self, family, rng):
        batch = family.example(rng, 6)
        drawn = batch.sample(rng, 4)
        assert drawn.shape[:2] == (4, 6)
        for targets in drawn:
            assert np.array_equal(batch.as_targets(targets), targets)

    def test_samples_follow_the_log_probabilities(self, family, rng):
        """The mean of -log p over many draws is the entropy, found by summing over all outcomes."""
        batch = family.example(rng, 3)
        values = -batch.log_prob(batch.sample(rng, 40_000))
        error = values.mean(axis=0) - entropy(batch)
        assert np.all(np.abs(error) < 5 * values.std(axis=0) / 200)

    def test_log_probabilities_of_a_stack_are_those_of_its_members(self, family, rng):
        batch = family.example(rng, 6)
        drawn = batch.sample(rng, 4)
        assert np.array_equal(batch.log_prob(drawn), np.stack([batch.log_prob(y) for y in drawn]))

    def test_it_travels_to_other_processes(self, family, rng):
        batch = family.example(rng, 6)
        assert np.array_equal(pickle.loads(pickle.dumps(batch)).probs, batch.probs)

    def test_it_says_what_it_is(self, family, rng):
        assert repr(family.example(rng, 1234)).startswith(f"<{family.__name__}: 1,234 predictions of 3")


def entropy(batch):
    p = batch.probs
    if isinstance(batch, Bernoulli):
        return -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(axis=1)
    return -(p * np.log(p)).sum(axis=1)


def test_a_family_without_density_is_refused_by_the_log_loss():
    class Points(Distribution):
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

    with pytest.raises(InputError, match="Points has no log_prob"):
        LogLoss()([0.0, 1.0], Points())
