import numpy as np
import pytest

from calibrant import Poisson


def test_characteristic_function():
    w = np.array([0.0, 0.5, -7.0, 2 * np.pi])
    rate = np.array([0.3, 40.0])
    found = Poisson(rate).cf(w)
    assert found[0] + 1j * found[1] == pytest.approx(np.exp(rate[:, None] * (np.exp(1j * w) - 1)), abs=1e-14)


def test_the_score_of_one_rate_by_hand():
    """Rate log 2: zero has probability one half."""
    k = np.arange(60)
    masses = np.exp(Poisson([np.log(2)]).log_prob(k[:, None]))[:, 0]
    assert masses[0] == pytest.approx(0.5)
    wanted = masses @ k - masses @ np.abs(k[:, None] - k) @ masses / 2
    assert Poisson([np.log(2)]).crps(np.zeros(1)) == pytest.approx([wanted], rel=1e-13)


def test_scores_between_counts(rng):
    """A target need not be a count to have a score: distances are linear between counts."""
    batch = Poisson([2.0])
    ends = batch.crps(np.array([1.0])), batch.crps(np.array([2.0]))
    assert batch.crps(np.array([1.25])) == pytest.approx(0.75 * ends[0] + 0.25 * ends[1])
