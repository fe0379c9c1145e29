from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from calibrant import Categorical, Ensemble, Laplace, Mixture, MultivariateNormal, Normal, Quantiles
from calibrant.distributions import Distribution
from calibrant.distributions.quadrature import (
    _Cells,
    cf_by_cells,
    crps_by_cells,
    edges_of,
    has_levels,
    is_whole,
    moments_by_cells,
)


def by_pairs(members, y):
    far = np.abs(members - y[..., None]).mean(axis=-1)
    return far - np.abs(members[:, :, None] - members[:, None]).mean(axis=(1, 2)) / 2


@pytest.mark.parametrize(("family", "digits"), [(Normal, 1e-10), (Laplace, 1e-9), (Mixture, 1e-9)])
def test_smooth_families_come_out_to_nine_digits(family, digits, rng):
    batch = family.example(rng, 300)
    y = np.concatenate([batch.sample(rng, 3), batch.mean + batch.std * np.array([[-50.0], [0.0], [50.0]])])
    assert np.abs(crps_by_cells(batch, y) - batch.crps(y)).max() < digits * batch.std.max()
    mean, std = moments_by_cells(batch)
    assert mean == pytest.approx(batch.mean, abs=digits)
    assert std == pytest.approx(batch.std, rel=digits)


@pytest.mark.parametrize("members", [1, 2, 7, 400])
def test_members_are_exact_however_many(members, rng):
    batch = Ensemble(rng.normal(size=(20, members)).round(1))  # with ties
    y = np.stack([batch.sample(rng, 1)[0], rng.normal(size=20), np.full(20, -9.0), np.full(20, 9.0)])
    assert crps_by_cells(batch, y) == pytest.approx(by_pairs(batch.members, y), abs=1e-12)
    mean, std = moments_by_cells(batch)
    assert mean == pytest.approx(batch.mean, abs=1e-12)
    assert std == pytest.approx(batch.std, abs=1e-7)  # the root of a rounding error


def test_modes_that_lie_far_apart(rng):
    batch = Mixture([Normal(np.zeros(50), 1.0), Normal(np.full(50, 1e4), 0.1)], rng.dirichlet([1, 1], 50))
    y = batch.sample(rng, 3)
    assert crps_by_cells(batch, y) == pytest.approx(batch.crps(y), abs=1e-6)
    assert moments_by_cells(batch)[1] == pytest.approx(batch.std, abs=1e-6)


def test_rows_in_chunks_are_the_same_rows(rng, monkeypatch):
    batch = Laplace.example(rng, 40)
    y = batch.sample(rng, 2)
    whole, moments, waves = crps_by_cells(batch, y), moments_by_cells(batch), cf_by_cells(batch, np.ones(1))
    monkeypatch.setattr("calibrant.distributions.quadrature.CHUNK", 50 * 8 * 3)
    assert np.array_equal(cf_by_cells(batch, np.ones(1)), waves)
    assert np.array_equal(crps_by_cells(batch, y), whole)
    assert np.array_equal(moments_by_cells(batch), moments)


def test_edges_rise_and_are_found(rng):
    batch = Normal.example(rng, 9)
    cells = _Cells.of(batch)
    assert np.all(np.diff(edges_of(batch), axis=1) > 0)
    y = np.stack([cells.edges[:, 0] - 1, cells.edges[:, 0], cells.edges[:, 20] + 1e-9, cells.edges[:, -1]])
    wanted = [np.sum(cells.edges <= line[:, None], axis=1) for line in y]
    assert np.array_equal(cells._edges_upto(y), wanted)


def test_families_without_levels():
    for batch in (Categorical([0.2, 0.4]), MultivariateNormal([[0.0, 1.0]], 1.0), Ensemble(np.zeros((2, 3, 2)))):
        assert not has_levels(batch)
        assert moments_by_cells(batch) is NotImplemented
        assert crps_by_cells(batch, np.zeros(len(batch))) is NotImplemented
        assert cf_by_cells(batch, np.ones(1)) is NotImplemented


class Rain(Normal):
    """Normal numbers, of which those below zero are zero: a jump, then a density."""

    def cdf(self, y):
        return np.where(np.asarray(y) < 0, 0.0, super().cdf(y))

    def below(self, y):
        return np.where(np.asarray(y) <= 0, 0.0, super().cdf(y))

    def quantile(self, u):
        return np.maximum(super().quantile(u), 0)


def test_a_jump_and_a_density():
    """Scores of crps_cnormal with lower=0, scoringrules 0.10.0; moments by the usual formulas."""
    batch = Rain([0.1, 0.4, -0.2, 2.0], [0.5, 1.5, 2.0, 0.6])
    theirs = [0.087610442236098, 0.279464386982004, 1.447424018206545, 1.661620728477575]
    assert crps_by_cells(batch, np.array([0.0, 0.7, 2.5, 0.0])) == pytest.approx(theirs, abs=1e-6)
    m, s = batch.loc, batch.scale
    density, share = np.exp(-0.5 * (m / s) ** 2) / np.sqrt(2 * np.pi), ndtr(m / s)
    mean = m * share + s * density
    second = (m**2 + s**2) * share + m * s * density
    assert moments_by_cells(batch)[0] == pytest.approx(mean, abs=1e-6)
    assert moments_by_cells(batch)[1] == pytest.approx(np.sqrt(second - mean**2), abs=1e-6)


class Bars(Normal):
    """Uniform within bars, for all rows the same: a distribution function with kinks."""

    edges, heights = np.array([0.0, 1.0, 1.5, 4.0, 4.2, 7.0]), np.array([0.0, 0.1, 0.4, 0.45, 0.85, 1.0])

    def cdf(self, y):
        return np.interp(y, self.edges, self.heights)

    def quantile(self, u):
        return np.tile(np.interp(u, self.heights, self.edges), (len(self), 1))


def test_kinks_cost_some_digits():
    y = np.linspace(-1, 8, 30)
    x = np.linspace(-2, 9, 220_001)
    steps = Bars(y, 1.0).cdf(x) - (x >= y[:, None])
    wanted = ((steps[:, 1:] ** 2 + steps[:, :-1] ** 2) / 2).sum(axis=1) * (x[1] - x[0])
    assert np.abs(crps_by_cells(Bars(y, 1.0), y) - wanted).max() < 2e-4 * 1.8  # their standard deviation


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
    mean, std = moments_by_cells(One(law))
    assert (mean[0], std[0]) == pytest.approx((law.mean(), law.std()), rel=1e-7, abs=1e-10)


@pytest.mark.parametrize(("df", "rel"), [(2.2, 1e-3), (3.0, 1e-6), (4.5, 1e-7)])
def test_moments_of_heavy_tails_go_on_as_powers(df, rel):
    mean, std = moments_by_cells(One(stats.t(df, 1.0)))
    assert mean[0] == pytest.approx(1.0, abs=1e-6)
    assert std[0] == pytest.approx(stats.t(df).std(), rel=rel)


def test_moments_that_do_not_exist():
    assert moments_by_cells(One(stats.t(1.5)))[1] == np.inf
    assert moments_by_cells(One(stats.pareto(0.9)))[0] == np.inf
    assert not np.isfinite(moments_by_cells(One(stats.cauchy()))[0])


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
def test_characteristic_functions(law, exact, error):
    real, imaginary = cf_by_cells(One(law), W)
    assert np.abs(real + 1j * imaginary - exact).max() < error


@pytest.mark.parametrize("y", [-3.0, 0.0, 0.4, 2.0, 11.0])
def test_scores_where_the_density_has_corners_and_jumps(y):
    fan = Quantiles([[0.0, 0.0, 1.0, 3.0]], [0.1, 0.3, 0.5, 0.8])
    assert crps_by_cells(fan, np.array([y])) == pytest.approx(fan.crps(np.array([y])), rel=1e-9)
    assert cf_by_cells(fan, W)[1] == pytest.approx(fan.cf(W)[1], abs=1e-5)


def test_characteristic_functions_of_members_are_exact(rng):
    batch = Ensemble(rng.normal(size=(3, 7)))
    for found, exact in zip(cf_by_cells(batch, 10 * W), batch.cf(10 * W), strict=True):
        assert found == pytest.approx(exact, abs=1e-10)


def test_characteristic_functions_that_turn_often_within_a_cell_keep_single_values():
    """Half of the probability sits at the upper end of a wide cell."""
    fan = Quantiles([[0.0, 1.0, 1.0]], [0.01, 0.02, 0.9], tails=(0.0, 1.0))
    assert cf_by_cells(fan, np.array([300.0]))[0] == pytest.approx(fan.cf(np.array([300.0]))[0], abs=0.02)


def test_counts_are_known_by_their_draws():
    assert is_whole(One(stats.poisson(3)))
    assert not is_whole(One(stats.norm(3)))
    # too many whole numbers to take each: quantiles are enough
    assert moments_by_cells(One(stats.poisson(1e8)))[0] == pytest.approx(1e8, rel=1e-6)
