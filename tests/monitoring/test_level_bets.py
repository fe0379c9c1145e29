import itertools

import numpy as np
import pytest
from scipy.special import roots_legendre

from calibrant import Ensemble, MultivariateNormal, Normal, Poisson
from calibrant.distributions import Uniform
from calibrant.monitoring.pit_bets import PARTS, PITBets


def test_bets_win_nothing_on_average_from_uniform_levels():
    nodes, weights = roots_legendre(400)
    ends = np.linspace(0, 1, PARTS + 1)
    ends = np.sort(np.concatenate([ends, [1e-12, 1e-8, 1e-4, 1 - 1e-4, 1 - 1e-8, 1 - 1e-12]]))
    total = 0
    for a, b in itertools.pairwise(ends):
        u = a + (b - a) * (nodes + 1) / 2
        ratios = PITBets().log_ratios(u, Uniform(np.zeros(400), np.ones(400)), 0)
        total = total + (b - a) / 2 * weights @ np.exp(ratios)
    assert np.all(total <= 1 + 1e-9)
    np.testing.assert_allclose(total, 1, atol=6.4e-5)  # of twice the spread, 2 Phi(-4) lies where scores are cut


def test_what_shift_and_spread_mean():
    words = [PITBets().words(bet.defect) for bet in PITBets().bets()]
    high = PITBets().log_ratios(np.array([2.5]), Normal([0.0], 1.0), 0)[0]
    found = dict(zip(words, high, strict=True))
    assert found["forecasts are too low"] > 0  # the outcome is above
    assert found["forecasts are too narrow"] > 0
    assert found["forecasts are too wide"] < 0
    assert found["outcomes fall between the 90 % and 100 % quantiles of forecasts too often"] > 0


def test_outcomes_out_of_all_bounds_are_finite_evidence():
    ratios = PITBets().log_ratios(np.array([1e9, -1e9]), Normal([0.0, 0.0], 1.0), 0)
    assert np.isfinite(ratios).all()
    assert ratios.max() > 20


@pytest.mark.parametrize(
    ("y", "predictions"),
    [
        (np.arange(12) % 5, Poisson(np.full(12, 2.0))),
        (np.zeros(12), Ensemble(np.random.default_rng(0).normal(size=(12, 5)))),
    ],
)
def test_random_levels_belong_to_the_row(y, predictions):
    bets = PITBets(seed=3)
    whole = bets.log_ratios(y, predictions, 100)
    parts = [bets.log_ratios(y[i : i + 4], predictions[i : i + 4], 100 + i) for i in (0, 4, 8)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(PITBets(seed=4).log_ratios(y, predictions, 100), whole)


def test_coordinates_of_vectors_have_bets_of_their_own():
    predictions = MultivariateNormal(np.zeros((2, 2)), np.ones((2, 2)))
    bets = PITBets(d=2)
    ratios = bets.log_ratios(np.array([[0.0, 3.0], [0.0, 3.0]]), predictions, 0)
    assert ratios.shape == (2, len(bets.bets()))
    found = dict(zip((bets.words(bet.defect) for bet in bets.bets()), ratios[0], strict=True))
    assert found["forecasts of coordinate 1 are too low"] > 0 > found["forecasts of coordinate 0 are too low"]
