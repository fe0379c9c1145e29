from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant.recalibration.scaling import softmax_regression
from calibrant.recalibration.scaling.softmax_regression import (
    TOLERANCE,
    Blocks,
    DiagonalForm,
    FullForm,
    Point,
    SoftmaxLoss,
    minimised,
)


class Quartic:
    """``sum (x - centre)^4 / 4 + (x - centre)^2 scale / 2``."""

    def __init__(self, centre, scale):
        self.centre, self.scale = centre, scale

    def at(self, x):
        gap = x - self.centre
        hessian = 3 * gap**2 + self.scale
        loss = (gap**4 / 4 + self.scale * gap**2 / 2).sum()
        return Point(loss, gap**3 + self.scale * gap, lambda d: hessian * d, lambda rest: rest)


class Exponential:
    """``exp(-x_0) + x_1^2 / 2 + floor``, whose infimum is not attained."""

    def at(self, x):
        fall = np.exp(-x[0])
        hessian = np.array([fall, 1.0])
        return Point(
            fall + x[1] ** 2 / 2 + 3.0, np.array([-fall, x[1]]), lambda d: hessian * d, lambda rest: rest / hessian
        )

    def loss(self, x):
        return self.at(x).loss


class Kinked:
    """``|x|``, with a gradient that never vanishes."""

    def at(self, x):
        return Point(float(np.abs(x).sum()) + 1.0, np.sign(x) + (x == 0), lambda d: d, lambda rest: rest)


def test_minimum_of_a_convex_function(rng):
    centre, scale = rng.normal(size=(3, 4)), rng.gamma(1, 1, (3, 4)) + 0.01
    found = minimised(Quartic(centre, scale), np.zeros((3, 4)), 1.0)
    assert found.is_converged
    assert not found.is_infinite
    assert found.notes == ()
    assert found.gradient <= TOLERANCE
    np.testing.assert_allclose(found.x, centre, atol=1e-7)


def test_a_start_at_the_minimum_stays():
    found = minimised(Quartic(np.ones(2), np.ones(2)), np.ones(2), 1.0)
    assert found.is_converged
    assert found.x.tolist() == [1, 1]


@pytest.mark.parametrize("rows", [10.0, 1e4])
def test_an_optimum_at_infinity_is_left_half_a_nat_short(rows):
    found = minimised(Exponential(), np.array([0.0, 2.0]), rows)
    assert found.is_converged
    assert found.is_infinite
    left = rows * (found.loss - 3.0)
    assert left == pytest.approx(0.5, rel=0.01)
    assert "half a nat" in found.notes[0]


def test_a_search_that_does_not_arrive_says_so():
    found = minimised(Kinked(), np.array([0.3]), 1e6)
    assert not found.is_converged
    assert not found.is_infinite
    assert found.gradient == 1.0


@pytest.mark.parametrize("is_full", [False, True])
def test_the_loss_alone_has_the_digits_of_the_point(is_full, rng):
    n, k = 3_000, 30  # several slices of rows
    z, w = rng.normal(size=(n, k)), rng.random(n) / n
    size = (k, k + 1) if is_full else (k, 2)
    form = FullForm(z, w) if is_full else DiagonalForm(z)
    objective = SoftmaxLoss(form, z, rng.integers(0, k, n), w, rng.random(size))
    x = rng.normal(size=size)
    assert objective.loss(x) == objective.at(x).loss


class Remembering(Quartic):
    """Remembers where it was asked."""

    def __init__(self, centre, scale):
        super().__init__(centre, scale)
        self.asked = []

    def at(self, x):
        self.asked.append(x.copy())
        return super().at(x)


def test_after_a_fast_step_nothing_is_asked_again():
    objective = Remembering(np.array([0.3, 1.0]), np.array([0.5, 1.0]))
    found = minimised(objective, np.zeros(2), 1.0)
    assert found.is_converged
    assert TOLERANCE / 10 < found.gradient <= TOLERANCE  # of less than rounding leaves the search stops in any case
    assert (objective.asked[-1] == found.x).all()


def drawn(rng, n, k):
    """Logarithms of probabilities and outcomes of sharper ones, with classes mixed up a little."""
    x = log_softmax(3 * rng.normal(size=(n, k)), axis=1)
    chances = softmax(0.8 * x + 0.2 * x[:, ::-1], axis=1)
    return x, (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def test_division_by_the_hessians_of_single_classes(rng):
    """At coefficients of 0, where rows are sampled: the Hessian by differences of gradients, one class at a time."""
    k, n = 4, 1_500
    x, y = drawn(rng, n, k)
    w, ridge = rng.random(n), rng.random((k, k + 1)) + 0.1
    w /= w.sum()
    form = FullForm(x, w)
    p = np.exp(x)
    level = (w[:, None] * p * (1 - p)).sum(axis=0)
    objective = SoftmaxLoss(form, x, y, w, ridge / 2)
    bent = np.stack(
        [objective.at(np.zeros((k, k + 1))).curvature(e) for e in np.eye(k * (k + 1)).reshape(-1, k, k + 1)]
    )
    own = np.stack([bent.reshape(k, k + 1, k, k + 1)[c, :, c] for c in range(k)])
    common = np.column_stack([x, np.ones(n)])
    common = (common.T * w) @ common
    little = softmax_regression.SHARE_OF_ALL * level.mean()
    mixed = (own - [np.diag(r) for r in ridge] + little * common) * (level / (level + little))[:, None, None]
    mixed += [np.diag(r) for r in ridge]
    rest = rng.normal(size=(k, k + 1))
    expected = np.linalg.solve(mixed, rest[:, :, None])[:, :, 0]
    assert Blocks(form._shapes, level, ridge)(rest) == pytest.approx(expected, rel=1e-4, abs=1e-6)


@dataclass(frozen=True, eq=False)
class Counting(SoftmaxLoss):
    """Counts products with its Hessian."""

    products: list = field(default_factory=lambda: [0])

    def at(self, x):
        here = super().at(x)

        def counted(direction):
            self.products[0] += 1
            return here.curvature(direction)

        return here._replace(curvature=counted)


def test_a_matrix_per_class_takes_fewer_steps_to_the_same_end(rng, monkeypatch):
    k = 40
    n = softmax_regression.MIN_NUMBERS // k + 1
    x, y = drawn(rng, n, k)
    w, penalty = np.full(n, 1 / n), np.full((k, k + 1), k * (k - 1) / n)  # as of StructuredMatrix
    penalty[:, k] = penalty[range(k), range(k)] = k / n
    ends, products = [], []
    for most in (0, softmax_regression.MAX_BLOCKS):
        monkeypatch.setattr(softmax_regression, "MAX_BLOCKS", most)
        objective = Counting(FullForm(x, w), x, y, w, penalty)
        end = minimised(objective, np.zeros((k, k + 1)), n)
        assert end.is_converged
        ends.append(end.x)
        products.append(objective.products[0])
    assert products[1] < 0.7 * products[0]
    assert ends[1] == pytest.approx(ends[0], abs=1e-8)
