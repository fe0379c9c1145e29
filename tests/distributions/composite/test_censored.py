from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import ExactTest, LogLoss, Normal
from calibrant.distributions import Censored

INF = np.inf


@pytest.fixture
def batch():
    return Censored(Normal([0.0, 1.0], [1.0, 2.0]), [-0.5, -INF], [1.0, 2.0])


def test_ends_have_a_probability_of_their_own(batch):
    law = stats.norm([0.0, 1.0], [1.0, 2.0])
    y = np.array([[-0.6, -9.0], [-0.5, 0.0], [0.3, 1.0], [1.0, 2.0], [1.1, 2.1]])
    inside = law.cdf(y)
    assert batch.cdf(y) == pytest.approx(np.stack([[0.0, inside[0, 1]], inside[1], inside[2], [1, 1], [1, 1]]))
    below = np.stack([[0.0, inside[0, 1]], [0.0, inside[1, 1]], inside[2], inside[3], [1, 1]])
    assert batch.below(y) == pytest.approx(below)
    found = np.exp(batch.log_prob(y))
    assert found[0] == pytest.approx([0.0, law.pdf(-9.0)[1]])
    assert found[1] == pytest.approx([law.cdf(-0.5)[0], law.pdf(0.0)[1]])
    assert found[3] == pytest.approx([law.sf(1.0)[0], law.sf(2.0)[1]])
    assert found[4].tolist() == [0.0, 0.0]


def test_far_ends_keep_their_digits():
    batch = Censored(Normal([0.0], 1.0), -20.0, 20.0)
    assert batch.log_prob(np.array([20.0])) == pytest.approx(stats.norm.logsf(20.0), rel=1e-12)
    assert batch.log_prob(np.array([-20.0])) == pytest.approx(stats.norm.logcdf(-20.0), rel=1e-12)


def test_moments_are_those_of_what_is_recorded(batch):
    for i, (loc, scale, low, high) in enumerate(((0.0, 1.0, -0.5, 1.0), (1.0, 2.0, -INF, 2.0))):
        law = stats.norm(loc, scale)
        ends = max(low, loc - 12 * scale), high

        def moment(k, law=law, low=low, high=high, ends=ends):
            atoms = (low**k * law.cdf(low) if np.isfinite(low) else 0.0) + high**k * law.sf(high)
            return atoms + quad(lambda x: x**k * law.pdf(x), *ends, epsabs=1e-13)[0]

        assert batch.mean[i] == pytest.approx(moment(1), rel=1e-9)
        assert batch.std[i] == pytest.approx(np.sqrt(moment(2) - moment(1) ** 2), rel=1e-9)


@pytest.mark.parametrize("y", [-1.0, -0.5, 0.2, 1.0, 1.7])
def test_scores_are_integrals(batch, y):
    for i, row in enumerate((batch[:1], batch[1:])):
        ends = np.unique([-30.0, -0.5, y, 1.0, 2.0, 3.0])
        exact = sum(
            quad(lambda x: (row.cdf(np.array([x]))[0] - (y <= x)) ** 2, a, b, epsabs=1e-12)[0]  # noqa: B023
            for a, b in pairwise(ends)
        )
        assert batch.crps(np.full(2, y))[i] == pytest.approx(exact, rel=1e-8)


def test_the_tobit_likelihood_prefers_the_truth(rng):
    loc = rng.normal(size=400)
    y = np.clip(loc + rng.normal(size=400), -0.5, 1.0)
    losses = {shift: LogLoss()(y, Censored(Normal(loc + shift, 1.0), -0.5, 1.0)).value for shift in (-0.3, 0.0, 0.3)}
    assert min(losses, key=losses.get) == 0.0
    assert ExactTest(LogLoss(), alternative="two-sided")(y, Censored(Normal(loc, 1.0), -0.5, 1.0)).pvalue > 0.05
