"""Integrals of distribution functions against what is known of families."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibrant import Ensemble, Laplace, Normal, Quantiles
from calibrant.distributions import cdf_integrals
from calibrant.distributions.base import Distribution
from calibrant.distributions.cdf_integrals import Panels, cf, crps, in_parts, is_whole, moments


@dataclass(frozen=True, eq=False)
class One(Distribution):
    """A single row, by scipy."""

    law: Any

    def __len__(self):
        return 1

    def __getitem__(self, rows):
        return self

    def as_targets(self, y_true):
        return np.asarray(y_true)

    def sample(self, rng, size):
        return self.law.rvs(size=(size, 1), random_state=rng)

    @classmethod
    def example(cls, rng, n):
        return cls(stats.norm())

    def cdf(self, y):
        return self.law.cdf(y)

    def quantile(self, u):
        return self.law.ppf(u)[None]


LAWS = [stats.norm(1, 2), stats.laplace(0, 1), stats.gamma(0.5), stats.gamma(7), stats.lognorm(1), stats.beta(2, 3)]
LAWS += [stats.uniform(-1, 3), stats.expon(), stats.gumbel_r(), stats.poisson(3.3), stats.poisson(100)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.dist.name)
def test_moments(law):
    mean, std = moments(One(law))
    assert (mean[0], std[0]) == pytest.approx((law.mean(), law.std()), rel=1e-7, abs=1e-10)


@pytest.mark.parametrize(("df", "rel"), [(2.2, 1e-3), (3.0, 1e-6), (4.5, 1e-7)])
def test_moments_of_heavy_tails_go_on_as_powers(df, rel):
    mean, std = moments(One(stats.t(df, 1.0)))
    assert mean[0] == pytest.approx(1.0, abs=1e-6)
    assert std[0] == pytest.approx(stats.t(df).std(), rel=rel)


def test_moments_that_do_not_exist():
    assert moments(One(stats.t(1.5)))[1] == np.inf
    assert moments(One(stats.pareto(0.9)))[0] == np.inf
    assert not np.isfinite(moments(One(stats.cauchy()))[0])


W = np.array([0.1, 1.0, 3.0])
WAVES = [
    (stats.norm(1, 2), np.exp(1j * W - 2 * W**2), 1e-12),
    (stats.expon(), 1 / (1 - 1j * W), 1e-5),
    (stats.gamma(0.5), (1 - 1j * W) ** -0.5, 1e-5),
    (stats.uniform(), (np.exp(1j * W) - 1) / (1j * W), 1e-14),
    (stats.poisson(3.3), np.exp(3.3 * (np.exp(1j * W) - 1)), 1e-12),
    (stats.poisson(100), np.exp(100 * (np.exp(1j * W) - 1)), 1e-12),
    (stats.cauchy(), np.exp(-W), 3e-3),
]


@pytest.mark.parametrize(("law", "exact", "error"), WAVES, ids=lambda x: getattr(getattr(x, "dist", None), "name", ""))
def test_waves(law, exact, error):
    real, imaginary = cf(One(law), W)
    assert np.abs(real + 1j * imaginary - exact).max() < error


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.4, 2.0, 11.0])
def test_scores_of_normal_predictions(y):
    batch = Normal([0.0, 1.0], [1.0, 2.0])
    z = (y - batch.loc) / batch.scale
    exact = batch.scale * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
    assert crps(batch, np.full(2, y)) == pytest.approx(exact, rel=1e-9)
    assert crps(batch, np.full((3, 1, 2), y)) == pytest.approx(np.broadcast_to(exact, (3, 1, 2)), rel=1e-9)


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.4, 2.0, 11.0])
def test_scores_where_the_density_has_corners_and_jumps(y):
    laplace = Laplace([0.0], 2.0)
    z = abs(y) / 2
    assert crps(laplace, np.array([y])) == pytest.approx([2 * (z + np.exp(-z) - 0.75)], rel=1e-9)
    fan = Quantiles([[0.0, 0.0, 1.0, 3.0]], [0.1, 0.3, 0.5, 0.8])
    assert crps(fan, np.array([y])) == pytest.approx(fan.crps(np.array([y])), rel=1e-9)


def test_steps_are_exact_where_they_are_known(rng):
    """Members as kinks: the mean over members and over pairs of them."""
    members = rng.normal(size=(3, 7))
    batch = Ensemble(members)
    mean, std = moments(batch)
    assert mean == pytest.approx(members.mean(axis=1), rel=1e-10)
    assert std == pytest.approx(members.std(axis=1), rel=1e-10)
    real, imaginary = cf(batch, W)
    assert real == pytest.approx(batch.cf(W)[0], abs=1e-10)
    assert imaginary == pytest.approx(batch.cf(W)[1], abs=1e-10)


def test_panels_hold_all_probability(rng):
    panels = Panels.of(Laplace.example(rng, 4))
    assert panels.x.shape == panels.levels.shape == panels.weights.shape
    assert np.all(np.diff(panels.knots, axis=1) >= 0)
    assert np.all(np.diff(panels.parts, axis=1) >= 0)
    assert panels.total(np.ones_like(panels.x)) == pytest.approx(np.ptp(panels.knots, axis=1))


def test_many_rows_are_taken_in_parts(monkeypatch, rng):
    batch, y = Normal.example(rng, 7), rng.normal(size=(2, 7))
    whole = [*moments(batch), *cf(batch, W), crps(batch, y)]
    monkeypatch.setattr(cdf_integrals, "ROOM", 1000)
    assert [len(part) for part in in_parts(batch)] == [2, 2, 2, 1]
    for part, exact in zip([*moments(batch), *cf(batch, W), crps(batch, y)], whole, strict=True):
        assert np.array_equal(part, exact)


def test_counts_are_known_by_their_draws():
    assert is_whole(One(stats.poisson(3)))
    assert not is_whole(One(stats.norm(3)))
    # too many whole numbers to take each: quantiles are enough
    assert moments(One(stats.poisson(1e8)))[0] == pytest.approx(1e8, rel=1e-6)
