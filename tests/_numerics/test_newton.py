"""Newton's method against minima that are known, and against SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant._numerics.newton import Derivatives, newton


def logistic(rng, n=200, m=3):
    """A logistic regression: its loss, and its derivatives."""
    x, y = rng.normal(size=(n, m)), rng.random(n) < 0.4

    def loss(b):
        return np.logaddexp(0, np.where(y, -1, 1) * (b @ x.T)).sum(axis=-1) + 0.05 * (b**2).sum(axis=-1)

    def derivatives(b):
        p = expit(b @ x.T)
        return Derivatives((p - y) @ x + 0.1 * b, (x.T * (p * (1 - p))[..., None, :]) @ x + 0.1 * np.eye(m))

    return loss, derivatives


def test_a_quadratic_takes_one_step():
    matrix, calls = np.array([[2.0, 0.5], [0.5, 1.0]]), []
    found = newton(
        lambda x: 0.5 * x @ matrix @ x - x.sum(),
        lambda x: (calls.append(x), Derivatives(matrix @ x - 1, matrix))[1],
        np.array([50.0, -20.0]),
    )
    assert found.x == pytest.approx(np.linalg.solve(matrix, np.ones(2)), rel=1e-13)
    assert found.here.hessian is matrix
    assert len(calls) == 2


@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_minima_are_those_of_scipy(rng, shape):
    """Of one function, and of a stack from different starts."""
    loss, derivatives = logistic(rng)
    found = newton(loss, derivatives, rng.normal(size=(*shape, 3)), tolerance=1e-10)
    right = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    assert found.x == pytest.approx(np.broadcast_to(right, (*shape, 3)), abs=1e-5)
    assert found.value == pytest.approx(np.full(shape, loss(right)), rel=1e-12)
    assert (found.decrement < 1e-10).all()


def test_steps_that_overshoot_are_halved():
    """``sqrt(1 + x^2)``: plain steps from 3 go to -27, and on."""
    found = newton(
        lambda x: np.sqrt(1 + x[0] ** 2),
        lambda x: Derivatives(x / np.sqrt(1 + x**2), (1 + x[:, None] ** 2) ** -1.5),
        np.array([3.0]),
    )
    assert found.x == pytest.approx([0.0], abs=1e-9)


def test_beyond_a_border_functions_are_infinite():
    """``x - log x`` from 1e-3 near the border: the first step is fine, a plain one from 10 would leave."""
    found = newton(
        lambda x: x[0] - np.log(x[0]) if x[0] > 0 else np.inf,
        lambda x: Derivatives(1 - 1 / x, x[:, None] ** -2),
        np.array([10.0]),
    )
    assert found.x == pytest.approx([1.0], rel=1e-12)


def test_another_solution_where_the_curvature_has_no_inverse():
    """Two columns that are the same: the shortest step."""

    def shortest(hessian, gradient):
        return np.linalg.lstsq(hessian, gradient, rcond=None)[0]

    ones = np.ones((2, 2))
    found = newton(
        lambda x: (x.sum() - 3) ** 2 / 2, lambda x: Derivatives(ones @ x - 3, ones), np.zeros(2), solve=shortest
    )
    assert found.x == pytest.approx([1.5, 1.5])


def test_it_stops_at_the_number_of_steps(rng):
    loss, derivatives = logistic(rng)
    assert (newton(loss, derivatives, np.full(3, 5.0), max_steps=1).decrement > 1e-3).all()


def test_what_derivatives_carry_comes_back():
    class Carrying(Derivatives):
        note = "kept"

    found = newton(lambda x: (x**2).sum(), lambda x: Carrying(2 * x, 2 * np.eye(1)), np.ones(1))
    assert found.here.note == "kept"


def test_where_no_step_leads_down_it_stays():
    def uphill(x):
        return Derivatives(-2 * x, 2 * np.ones((*x.shape, 1)))

    found = newton(lambda x: (x**2).sum(axis=-1), uphill, np.array([[1.0], [3.0]]), max_steps=2)
    assert found.x.tolist() == [[1.0], [3.0]]
