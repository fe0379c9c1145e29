import numpy as np
import pytest
from scipy.interpolate import BSpline

from calibrant.recalibration.nonparametric.spline import cubic_basis, roughness


@pytest.mark.parametrize("n_splines", [4, 12, 20])
def test_the_splines_are_those_of_scipy(n_splines):
    u = np.linspace(0, 1, 101)
    step = 1 / (n_splines - 3)
    knots = step * np.arange(-3, n_splines + 1)
    expected = BSpline.design_matrix(u[:-1], knots, 3).toarray()
    assert cubic_basis(u, n_splines)[:-1] == pytest.approx(expected, abs=1e-12)


def test_the_splines_sum_to_one_up_to_both_ends():
    assert cubic_basis(np.linspace(0, 1, 50), 7).sum(axis=1) == pytest.approx(np.ones(50), abs=1e-14)


def test_the_first_axes_are_those_of_the_points():
    u = np.linspace(0, 1, 6)
    assert (cubic_basis(u.reshape(2, 3), 5) == cubic_basis(u, 5).reshape(2, 3, 5)).all()


def test_a_straight_line_is_smooth():
    """Only a tenth of the squares is left of the penalty on 0, 1, ..., 9: 28.5."""
    line = np.arange(10.0)
    assert line @ roughness(10) @ line == pytest.approx(28.5)
    bent = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    assert bent @ roughness(5) @ bent == pytest.approx(1 + 4 + 1 + 0.1)
