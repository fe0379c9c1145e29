import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.lab.fits import Likelihood

LINKS = ["logit", "log", "logflip"]


def data(link, b0, b1, n=3000, seed=0):
    """Outcomes whose probability follows the model, and transformed scores below zero."""
    rng = np.random.default_rng(seed)
    t = np.log(rng.beta(2, 1, n))
    eta = b0 + b1 * t if link == "logit" else np.minimum(b0 + b1 * t, 0)
    p = {"logit": expit, "log": np.exp, "logflip": lambda eta: 1 - np.exp(eta)}[link](eta)
    return Likelihood(link, rng.random(n) < p, t)


def plain(model, b):
    """The log-likelihood without any care for rounding."""
    eta = b[0] + b[1] * model.t
    p = {"logit": lambda: 1 / (1 + np.exp(-eta)), "log": lambda: np.exp(eta), "logflip": lambda: 1 - np.exp(eta)}
    p = p[model.link]()
    return np.sum(np.log(np.where(model.observed, p, 1 - p)))


@pytest.mark.parametrize("link", LINKS)
def test_the_likelihood_and_its_derivatives_by_differences(link):
    model, b, h = data(link, -0.3, 0.8), np.array([-0.4, 0.7]), 1e-4
    assert model.value(b) == pytest.approx(plain(model, b), rel=1e-12)
    gradient, hessian = model._derivatives(b)
    steps = h * np.eye(2)
    differences = [(plain(model, b + s) - plain(model, b - s)) / (2 * h) for s in steps]
    assert gradient == pytest.approx(differences, rel=1e-5)
    second = [(model._derivatives(b + s)[0] - model._derivatives(b - s)[0]) / (2 * h) for s in steps]
    assert hessian == pytest.approx(np.array(second), rel=1e-5)


@pytest.mark.parametrize("link", LINKS)
def test_the_maximum_is_that_of_another_optimiser(link):
    model = data(link, -0.3, 0.8)
    options = {"xatol": 1e-9, "fatol": 1e-12}
    expected = minimize(lambda b: -model.value(b), [-0.5, 0.5], method="Nelder-Mead", options=options)
    b, value = model.both()
    assert b == pytest.approx(expected.x, abs=1e-6)
    assert value == pytest.approx(-expected.fun, rel=1e-12)
    expected = minimize(lambda b: -model.value(np.r_[0.0, b]), [0.5], method="Nelder-Mead", options=options)
    assert model.slope()[0] == pytest.approx([0, expected.x[0]], abs=1e-6)
    rate = model.observed.mean()
    constant, value = model.constant()
    assert constant[0] == pytest.approx(
        {"logit": np.log(rate / (1 - rate)), "log": np.log(rate)}.get(link, np.log(1 - rate))
    )
    assert value == pytest.approx(model.value(constant), rel=1e-12)


@pytest.mark.parametrize("link", ["log", "logflip"])
def test_ends_of_the_allowed_range(link):
    """Data that ask for a constant above zero get none; data that ask for a falling curve get a constant."""
    model = data(link, 0.3, 1.2, seed=2)
    assert model._derivatives(model.slope()[0])[0][0] > 0  # the likelihood would grow beyond
    assert model.both()[0].tolist() == model.slope()[0].tolist()
    rng = np.random.default_rng(3)
    t = np.log(rng.random(2000))
    falling = Likelihood(link, (rng.random(2000) < np.exp(t) * 0.8) ^ (link == "log"), t)
    assert falling.both()[0].tolist() == falling.constant()[0].tolist()
    assert falling.both()[0][1] == 0


def test_log_and_logflip_are_mirror_images():
    model = data("log", -0.2, 1.3)
    b, value = model.both()
    mirrored, same = Likelihood("logflip", ~model.observed, model.t).both()
    assert mirrored.tolist() == b.tolist()
    assert same == value


def test_scores_next_to_certainty_do_not_break_the_fit():
    """Of rows at 1 - 2e-16 one did not happen: finite, and found by the other optimiser, too."""
    t = np.r_[np.full(200, -2.2e-16), np.log(np.linspace(0.1, 0.9, 100))]
    observed = np.r_[False, np.ones(199, dtype=bool), np.linspace(0.1, 0.9, 100) > 0.45]
    for fit in (Likelihood("log", observed, t).slope, Likelihood("log", observed, t).both):
        b, value = fit()
        assert np.all(np.isfinite(b))
        assert np.isfinite(value)
    model = Likelihood("log", observed, t)
    grid = max(model.value(np.array([0.0, b1])) for b1 in np.geomspace(0.1, 100, 3000))
    assert model.slope()[1] >= grid
    assert model.slope()[1] == pytest.approx(grid, abs=1e-4)


def test_outcomes_that_scores_tell_apart_end_with_a_steep_curve():
    t = np.log(np.linspace(0.1, 0.9, 50))
    b, value = Likelihood("logit", t > np.log(0.5), t).both()
    assert b[1] > 20
    assert -1e-3 < value <= 0


def test_equal_scores_leave_the_likelihood_of_a_constant():
    model = Likelihood("logit", np.array([True, False, True]), np.full(3, -0.5))
    assert model.both()[1] == pytest.approx(model.constant()[1], rel=1e-12)
