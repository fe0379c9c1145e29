import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from calibrant import SKCE, ExactTest
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian
from calibrant.lab import LeastSquares, SyntheticNormal, WrongScale
from calibrant.lab.regression_worlds import TRUTH

BINS = 20


def levels(world, n, seed):
    """Where each target lies in its prediction, one column per coordinate."""
    y, predictions = world.draw(n, np.random.default_rng(seed))
    return ndtr((y - predictions.loc) / predictions.scale).reshape(n, -1)


def in_bounds(u, share=1 / BINS):
    """Whether all bins of the levels hold as many as chance allows, in 99.9 % of all cases."""
    counts = np.stack([np.histogram(column, np.linspace(0, 1, BINS + 1))[0] for column in u.T])
    low, high = binom.interval(1 - 0.001 / counts.size, len(u), share)
    return np.all((low <= counts) & (counts <= high))


@pytest.mark.parametrize("world", [SyntheticNormal(), SyntheticNormal(dimensions=10), WrongScale()])
def test_levels_of_calibrated_worlds_are_uniform(world):
    assert world.is_calibrated
    u = levels(world, 20_000, 1)
    assert in_bounds(u)
    y, predictions = world.draw(20_000, np.random.default_rng(2))
    order = np.argsort(np.asarray(predictions.loc).reshape(20_000, -1)[:, 0])
    pit = ndtr((y - predictions.loc) / predictions.scale).reshape(20_000, -1)[order]
    assert all(in_bounds(part) for part in np.split(pit, 4))  # also given the prediction


@pytest.mark.parametrize("world", [SyntheticNormal(False), WrongScale(0.8), WrongScale(1.25), LeastSquares()])
def test_levels_of_the_others_are_not(world):
    assert not world.is_calibrated
    assert not in_bounds(levels(world, 20_000, 1))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_scale_by_hand(factor):
    """``P(level <= u) = Phi(factor Phi^-1(u))``."""
    u = levels(WrongScale(factor), 20_000, 3)[:, 0]
    for level in (0.05, 0.3, 0.9):
        low, high = binom.interval(0.9999, 20_000, ndtr(factor * ndtri(level)))
        assert low <= np.sum(u <= level) <= high


@pytest.mark.parametrize("d", [1, 10])
def test_the_digits_of_the_truth_by_quadrature(d):
    world = SyntheticNormal(False, d)
    assert world.truth(SKCE(Exponential(1.0), Gaussian(1.0))) == pytest.approx(TRUTH["uncalibrated", d], rel=3e-6)


def test_the_fitted_line_tends_to_the_best_one():
    """In the limit: slope ``E x sin(pi x) / E x^2 = 3 / pi``; spread^2 ``1/2 - 3 / pi^2 + 0.15^2 E (1 + x)^2``."""
    slope, intercept, spread = LeastSquares(1_000_000).line
    error = 4 * spread / 1000
    assert abs(slope - 3 / np.pi) < error * 3**0.5
    assert abs(intercept) < error
    assert spread**2 == pytest.approx(0.5 - 3 / np.pi**2 + 0.15**2 * 4 / 3, rel=0.01)


def test_the_line_is_the_least_squares_fit():
    """Of all lines through the same training rows it has the smallest squares."""
    slope, intercept, spread = LeastSquares(10, training_seed=3).line
    rng = np.random.default_rng(3)
    x = 2 * rng.random(10) - 1
    y = np.sin(np.pi * x) + 0.15 * np.abs(1 + x) * rng.standard_normal(10)
    solution, squares, *_ = np.linalg.lstsq(np.stack([x, np.ones(10)], axis=1), y)
    assert [slope, intercept] == pytest.approx(solution, rel=1e-10)
    assert spread**2 == pytest.approx(squares[0] / 8, rel=1e-10)


def test_figure_1():
    """Quantiles are nearly right on average, yet 50 rows suffice to reject calibration."""
    world = LeastSquares()
    u = np.sort(levels(world, 100_000, 4)[:, 0])
    assert np.max(np.abs(u - (np.arange(100_000) + 0.5) / 100_000)) < 0.1
    test = ExactTest(SKCE(Exponential(1.0), Gaussian(1.0)), n_resamples=199)
    rejected = [test(*world.draw(50, np.random.default_rng(s)), rng=s).pvalue < 0.05 for s in range(20)]
    assert np.mean(rejected) > 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SyntheticNormal(dimensions=0), "dimensions must be a whole number of at least 1; got 0"),
        (lambda: LeastSquares(2), "training_rows must be a whole number of at least 3; got 2"),
        (lambda: WrongScale(-1.0), "factor must be a positive number; got -1.0"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()
