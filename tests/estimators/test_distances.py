from dataclasses import dataclass

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.estimators import ConvexDistance, Lp


@dataclass(frozen=True)
class Squared(ConvexDistance):
    """Half the squared distance of two columns, which is the squared distance of one."""

    def between(self, q, f):
        return 0.5 * ((q - f) ** 2).sum(axis=1)

    def gradient(self, q, f):
        return q - f


@dataclass(frozen=True)
class KullbackLeibler(ConvexDistance):
    def between(self, q, f):
        return (q * np.log(q / f)).sum(axis=1)

    def gradient(self, q, f):
        return np.log(q / f) + 1


def test_gradients_of_norms():
    """Against finite differences; 0 where the norm has none."""
    gap = np.array([[0.3, -0.1, -0.2], [1e-200, -2e-200, 1e-200]])
    for p in (1, 1.5, 2, 4):
        found = Lp(p).gradient(gap, 0 * gap)
        step = 1e-7 * np.eye(3)
        slope = [(np.linalg.norm(gap[0] + s, p) - np.linalg.norm(gap[0] - s, p)) / 2e-7 for s in step]
        assert found[0] == pytest.approx(slope, rel=1e-6)
        assert found[1] == pytest.approx(Lp(p).gradient(1e200 * gap[1:], 0 * gap[1:])[0], rel=1e-12)
        assert Lp(p).gradient(np.ones((1, 3)), np.ones((1, 3))).tolist() == [[0, 0, 0]]
    assert Lp(np.inf).gradient(gap[:1], 0 * gap[:1]).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("distance", [Lp(1), Lp(2), Lp(3), Squared(), KullbackLeibler()], ids=repr)
def test_what_is_removed_is_at_most_the_distance_of_the_truth(distance, rng):
    """On average over outcomes drawn from q; and all of it at g = q."""
    f, g, q = rng.dirichlet(np.ones(3), (3, 200))
    outcomes = np.eye(3)
    mean = sum(q[:, c] * distance.removed(np.tile(outcomes[c], (200, 1)), f, g) for c in range(3))
    best = sum(q[:, c] * distance.removed(np.tile(outcomes[c], (200, 1)), f, q) for c in range(3))
    truth = distance.between(q, f)
    assert (mean <= truth + 1e-12).all()
    assert best == pytest.approx(truth, abs=1e-12)


def test_norms_take_the_short_way(rng):
    y, f, g = np.eye(3)[rng.integers(3, size=50)], *rng.dirichlet(np.ones(3), (2, 50))
    for p in (1, 2, np.inf):
        assert Lp(p).removed(y, f, g) == pytest.approx(ConvexDistance.removed(Lp(p), y, f, g), abs=1e-12)


def test_names():
    assert (Lp(2).name, Lp(np.inf).name, Squared().name) == ("L2", "Linf", "Squared")


def test_bad_input():
    with pytest.raises(InputError, match="p must be a number of at least 1, or inf; got 0.5"):
        Lp(0.5)
