import numpy as np
from scipy.stats import norm

from calibrant import Categorical, Normal, Poisson
from calibrant.plots.comparisons.witness_plot import ERRORS, Outcomes, Smoother, ranks_of


def test_errors_have_the_chances_of_their_forecast(rng):
    forecast = Normal(rng.normal(size=40), rng.uniform(0.5, 2, 40))
    y = rng.normal(size=40)
    outcomes = Outcomes.of(y, forecast)
    edges = np.array([-np.inf, *ERRORS, np.inf])
    np.testing.assert_allclose(outcomes.chances.matrix, np.tile(np.diff(norm.cdf(edges)), (40, 1)), atol=1e-12)
    z = (y - forecast.mean) / forecast.std
    np.testing.assert_array_equal(outcomes.targets, np.searchsorted(edges, z) - 1)


def test_counts_fall_where_their_chances_do(rng):
    """Targets drawn from the forecast hit each outcome as often as its chance says."""
    forecast = Poisson(rng.uniform(1, 6, 4000))
    outcomes = Outcomes.of(forecast.sample(rng, 1)[0], forecast)
    seen = np.bincount(outcomes.targets, minlength=len(outcomes.names)) / 4000
    chances = outcomes.chances.matrix.mean(axis=0)
    assert (np.abs(seen - chances) < 4 * np.sqrt(chances * (1 - chances) / 4000) + 1e-9).all()


def test_equal_spreads_share_a_rank():
    np.testing.assert_allclose(ranks_of(np.array([2.0, 1.0, 2.0, 5.0])), [0.5, 0.125, 0.5, 0.875])


def test_the_favoured_class_is_right_or_not():
    outcomes = Outcomes.of(np.array([0, 2]), Categorical([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]))
    np.testing.assert_array_equal(outcomes.targets, [0, 3])
    np.testing.assert_allclose(outcomes.chances.matrix, [[0.7, 0, 0, 0.3], [0, 0.6, 0, 0.4]])
    np.testing.assert_array_equal(outcomes.asked, [[True, False, False], [False, True, False]])


def test_few_positions_are_their_own_places():
    smoother = Smoother.of(np.array([0.1, 0.1, 0.9]))
    np.testing.assert_array_equal(smoother.kernel, np.eye(2))
    np.testing.assert_array_equal(smoother.total(np.array([1.0, 2.0, 5.0])), [3.0, 5.0])
