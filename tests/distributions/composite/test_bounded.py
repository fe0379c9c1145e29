"""What truncated and censored predictions share."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from calibrant import SKCE, Categorical, Ensemble, ExactTest, LogLoss, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import Censored, Distribution, Truncated
from calibrant.residuals import Route

INF = np.inf


@dataclass(frozen=True, eq=False)
class Counts(Distribution):
    """Poisson counts, by scipy."""

    rate: np.ndarray

    def __len__(self):
        return len(self.rate)

    def __getitem__(self, rows):
        return type(self)(self.rate[rows])

    def as_targets(self, y_true):
        return np.asarray(y_true)

    def sample(self, rng, size):
        return rng.poisson(self.rate, (size, len(self)))

    @classmethod
    def example(cls, rng, n):
        return cls(rng.uniform(1, 10, n))

    def log_prob(self, targets):
        return stats.poisson.logpmf(targets, self.rate)

    def cdf(self, y):
        return stats.poisson.cdf(y, self.rate)

    def below(self, y):
        return stats.poisson.cdf(np.ceil(y) - 1, self.rate)

    def quantile(self, u):
        return stats.poisson.ppf(u, self.rate[:, None])


@pytest.mark.parametrize("kind", [Truncated, Censored])
def test_counts_stay_counts(kind, rng):
    family = type("OfCounts", (kind,), {"example": classmethod(lambda cls, rng, n: cls(Counts.example(rng, n), 1, 8))})
    batch = family.example(rng, 4)
    draws = batch.sample(rng, 2000)
    assert draws.dtype.kind == "i"
    assert (draws.min(), draws.max()) == (1, 8)
    check_distribution(family, rng)
    masses = np.exp(np.stack([batch.log_prob(np.full(4, k)) for k in range(-1, 10)]))
    assert masses.sum(axis=0) == pytest.approx(np.ones(4), rel=1e-12)
    k = np.arange(-1, 10)[:, None]
    mean = (masses * k).sum(axis=0)
    assert batch.mean == pytest.approx(mean, rel=1e-9)
    assert batch.std == pytest.approx(np.sqrt((masses * (k - mean) ** 2).sum(axis=0)), rel=1e-9)
    assert batch.cdf(np.full(4, 3)) == pytest.approx(masses[:5].sum(axis=0), rel=1e-12)
    assert batch.below(np.full(4, 3)) == pytest.approx(masses[:4].sum(axis=0), rel=1e-12)
    pairs = np.abs(k - k.T)
    exact = [p @ np.abs(k[:, 0] - 5) - p @ pairs @ p / 2 for p in masses.T]
    assert batch.crps(np.full(4, 5)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", [Truncated, Censored])
@pytest.mark.parametrize(
    ("base", "ends", "message"),
    [
        ([0.1, 0.2], (0, 1), r"base must be a distribution such as Normal\(loc, scale\); got a list"),
        (Categorical([0.1, 0.2]), (0, 1), "takes predictions of numbers with .* such as Normal; got Categorical"),
        (MultivariateNormal([[0.0, 1.0]], 1.0), (0, 1), "takes predictions of numbers with .* got MultivariateNormal"),
        (Normal([0.0, 1.0], 1.0), (), "needs an end of the range: give low, high or both"),
        (Normal([0.0, 1.0], 1.0), (1, [2.0, 1.0]), "low must be below high; got 1 and 1 in row 1"),
        (Normal([0.0, 1.0], 1.0), (np.nan,), "low must be a number, or infinite where there is no end; got nan"),
        (Normal([0.0, 1.0], 1.0), (INF,), "low must be a number, or infinite where there is no end; got inf"),
        (Normal([0.0, 1.0], 1.0), (0, -INF), "high must be a number, or infinite where there is no end; got -inf"),
        (Normal([0.0, 1.0], 1.0), ([0, 1, 2],), r"low must be one number, or one per row \(2\); got \[0, 1, 2\]"),
        (Normal([0.0, 1.0], 1.0), ("a",), r"low must be one number, or one per row \(2\); got 'a'"),
        (Counts(np.array([1.0, 2.0])), (0.5,), "low must be whole where targets are counts; got 0.5"),
    ],
)
def test_parameters_are_checked(kind, base, ends, message):
    with pytest.raises(InputError, match=message):
        kind(base, *ends)


@pytest.mark.parametrize("kind", [Truncated, Censored])
class TestBoth:
    def test_targets_are_checked(self, kind):
        batch = kind(Normal([0.0, 1.0], 1.0), 0.0, [2.0, 3.0])
        assert batch.as_targets([2.0, 3.0]).tolist() == [2.0, 3.0]
        with pytest.raises(InputError, match="row 1 has 3.1, and its range is 0 to 3"):
            batch.as_targets([1.0, 3.1])
        with pytest.raises(InputError, match="row 0 has -1, and its range is 0 to 2"):
            batch.as_targets([-1.0, 3.0])
        with pytest.raises(InputError, match="y_true must be one number per row"):
            batch.as_targets(np.zeros((2, 2)))

    def test_rows_words_and_travel(self, kind, rng):
        batch = kind(Normal.example(rng, 1500), np.arange(-1500.0, 0), INF)
        part = batch[np.array([3, 1])]
        assert part.low.tolist() == [-1497.0, -1499.0]
        assert repr(batch) == f"<{kind.__name__}: 1,500 predictions from Normal>"
        again = pickle.loads(pickle.dumps(batch))
        assert np.array_equal(again.cdf(np.zeros(1500)), batch.cdf(np.zeros(1500)))

    def test_tests_work_out_of_the_box(self, kind, rng):
        batch = kind(Normal.example(rng, 60), 0.0)
        honest = batch.sample(rng, 1)[0]
        result = SKCE()(honest, batch)
        assert result.route == "spectral; plain"
        by_quantiles = SKCE(route=Route.QUANTILE)(honest, batch)
        assert by_quantiles.value == pytest.approx(result.value, abs=3e-4)
        assert ExactTest(SKCE(), n_resamples=99)(honest, batch).pvalue > 0.05
        assert ExactTest(SKCE(), n_resamples=99)(honest + 1, batch).pvalue == 0.01
        assert np.isfinite(LogLoss()(honest, batch).value)

    def test_coordinates_are_nearly_the_wasserstein_distance(self, kind, rng):
        batch = kind(Normal([0.0, 1.0], [1.0, 2.0]), -0.5, 4.0)
        fine = batch.quantile((np.arange(100_000) + 0.5) / 100_000)
        exact = np.sqrt(np.mean(np.diff(fine, axis=0) ** 2))
        assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(exact, rel=2e-3)

    def test_members_within_bounds(self, kind):
        batch = kind(Ensemble([[-1.0, 0.5, 2.0, 7.0]]), 0.0, 5.0)
        expected = [0.5, 2.0] if kind is Truncated else [0.0, 0.5, 2.0, 5.0]
        assert np.unique(batch.sample(np.random.default_rng(0), 100)).tolist() == expected
        assert batch.mean == pytest.approx([np.mean(expected)], rel=1e-9)

    def test_every_library_gives_the_same_numbers(self, kind, xp):
        ours = kind(Normal([0.0, 1.0], [1.0, 2.0]), -0.5)
        other = kind(Normal(xp.asarray([0.0, 1.0]), xp.asarray([1.0, 2.0])), -0.5)
        y, w = np.array([0.3, 1.0]), np.array([0.5, 2.0])
        assert isinstance(other.coords, type(other.base.loc))
        for found, exact in ((other.coords, ours.coords), (other.cf(w)[0], ours.cf(w)[0])):
            assert np.asarray(found) == pytest.approx(exact, rel=1e-12)
        assert other.crps(xp.asarray(y)) == pytest.approx(ours.crps(y), rel=1e-12)
