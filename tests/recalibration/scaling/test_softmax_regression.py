import numpy as np
import pytest

from calibrant.recalibration.scaling.softmax_regression import (
    TOLERANCE,
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
