import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from calibrant.recalibration.nonparametric.spline import Counted, averaged, derivatives, minima

PENALTIES = np.array([0.1, 10.0])[:, None, None] * np.eye(3)


def problem(rng, n=60):
    x = rng.normal(size=(n, 3))
    offset = rng.normal(size=n)
    y = rng.binomial(1, expit(offset + x @ [1.0, -0.5, 0.0])).astype(float)
    return Counted(x, offset, np.ones(n), y, np.ones(n))


def test_the_gradient_is_gone_at_the_minimum(rng):
    data = problem(rng)
    fits = minima(data, PENALTIES)
    slope, _ = derivatives(data, PENALTIES, fits.coefficients)
    assert fits.is_converged
    assert np.abs(slope).max() < 1e-4
    assert (np.linalg.norm(fits.coefficients, axis=1)[0]) > np.linalg.norm(fits.coefficients, axis=1)[1]


def test_the_minimum_is_that_of_a_general_search(rng):
    data = problem(rng)

    def objective(c):
        return data.loss(data.offset + data.features @ c) + 0.5 * c @ PENALTIES[0] @ c

    expected = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    assert minima(data, PENALTIES).coefficients[0] == pytest.approx(expected, abs=1e-5)


def test_groups_of_rows_count_as_their_rows(rng):
    data = problem(rng, 20)
    many = Counted(
        *(np.repeat(part, 3, axis=0) for part in (data.features, data.offset, data.rows, data.ones)), np.ones(60)
    )
    some = Counted(data.features, data.offset, 3 * data.rows, 3 * data.ones, data.one_row)
    expected = minima(many, PENALTIES)
    found = minima(some, PENALTIES)
    assert found.coefficients == pytest.approx(expected.coefficients, abs=1e-8)
    assert found.left_out(some) == pytest.approx(expected.left_out(many), abs=1e-8)


def test_leaving_rows_out_agrees_with_fitting_without_them(rng):
    """One Newton step against sixty fits: the difference is of the order of a leverage, squared, a row."""
    data = problem(rng)
    fits = minima(data, PENALTIES)
    expected = np.zeros(2)
    for i in range(60):
        rest = np.arange(60) != i
        fit = minima(Counted(*(part[rest] for part in vars(data).values())), PENALTIES)
        predictor = data.offset[i] + fit.coefficients @ data.features[i]
        expected += log_expit(predictor if data.ones[i] else -predictor)
    inside = -data.loss(data.offset + fits.coefficients @ data.features.T)
    assert fits.left_out(data) == pytest.approx(expected, abs=0.1)
    assert (inside - expected > 0.5).all()


def test_rows_told_apart_without_error_have_a_minimum(rng):
    x = np.column_stack([np.ones(50), np.linspace(-1, 1, 50)])
    data = Counted(x, np.zeros(50), np.ones(50), (x[:, 1] > 0).astype(float), np.ones(50))
    fits = minima(data, 1e-2 * np.eye(2)[None])
    assert fits.is_converged
    assert np.isfinite(fits.coefficients).all()
    assert fits.coefficients[0, 1] > 10


def test_far_offsets_do_not_lead_astray():
    """Newton's full step from here jumps beyond the minimum, and away."""
    data = Counted(np.ones((2, 1)), np.array([12.0, 12.0]), np.array([50.0, 50.0]), np.array([5.0, 5.0]), np.ones(2))
    fits = minima(data, np.full((1, 1, 1), 1e-9))
    assert 12 + fits.coefficients[0, 0] == pytest.approx(np.log(1 / 9), abs=1e-6)


def test_an_average_counts_the_spread_between_fits():
    """Shares 1/2, 1/4 and, of no change, 1/4: mean 2.5, variance (1.5^2 + 1.5^2 ...) by hand."""
    c = np.array([[3.0], [4.0]])
    mean, covariance = averaged(c, np.array([[[1.0]], [[2.0]]]), np.log([2.0, 1.0]), 0.0)
    assert mean == pytest.approx([2.5])
    assert covariance[0, 0] == pytest.approx(1.0 * 0.5 + 2.0 * 0.25 + (0.5 * 9 + 0.25 * 16 - 2.5**2))
