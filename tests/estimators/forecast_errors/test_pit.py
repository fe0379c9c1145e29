import numpy as np
import pytest
from scipy import stats

from calibrant import Ensemble, Laplace, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.estimators import PIT
from calibrant.estimators.forecast_errors.pit import pit_of, randomised, share_upto, usual_prerank


def is_uniform(u):
    """Kolmogorov's test would err once in ten thousand."""
    return stats.kstest(u, "uniform").pvalue > 1e-4


def test_levels_are_those_of_the_distribution_function(rng):
    batch = Laplace.example(rng, 100)
    y = batch.sample(rng, 1)[0]
    assert np.array_equal(PIT()(y, batch), batch.cdf(y))


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture])
def test_calibrated_numbers_are_uniform(family, rng):
    batch = family.example(rng, 5_000)
    assert is_uniform(PIT()(batch.sample(rng, 1)[0], batch))


def test_calibrated_counts_are_uniform_between_their_steps(counts, rng):
    batch = counts.example(rng, 5_000)
    y = batch.sample(rng, 1)[0]
    assert is_uniform(PIT()(y, batch))
    assert not is_uniform(batch.cdf(y))
    assert np.array_equal(PIT(seed=3)(y, batch), PIT(seed=3)(y, batch))
    assert not np.array_equal(PIT(seed=3)(y, batch), PIT(seed=4)(y, batch))


def test_ensembles_that_could_be_exchanged_are_uniform(rng):
    pool = rng.normal(size=(5_000, 4)).round(1)
    assert is_uniform(PIT()(pool[:, 0], Ensemble(pool[:, 1:])))


def test_vectors_one_coordinate_at_a_time(rng):
    batch = MultivariateNormal.example(rng, 5_000)
    y = batch.sample(rng, 1)[0]
    u = PIT()(y, batch)
    assert u.shape == (5_000, 3)
    assert all(is_uniform(column) for column in u.T)
    assert u[:, 1] == pytest.approx(Normal(batch.mean[:, 1], batch.std[:, 1]).cdf(y[:, 1]))


@pytest.mark.parametrize("prerank", ["average", "band"])
def test_vectors_in_all(prerank, rng):
    batch = MultivariateNormal.example(rng, 3_000)
    y = batch.sample(rng, 1)[0]
    assert is_uniform(PIT(prerank)(y, batch))
    members = Ensemble(np.moveaxis(batch.sample(rng, 9), 0, 1))
    assert is_uniform(PIT(prerank)(y, members))


def test_average_ranks_see_correlations_that_coordinates_cannot(rng):
    together = MultivariateNormal(np.zeros((2_000, 2)), covariance=np.tile([[1.0, 0.8], [0.8, 1.0]], (2_000, 1, 1)))
    y = rng.normal(size=(2_000, 2))
    assert all(is_uniform(column) for column in PIT()(y, together).T)
    assert not is_uniform(PIT("average")(y, together))


def test_shares_are_what_randomising_gives_on_average(counts, rng):
    batch = counts.example(rng, 30)
    levels = pit_of(batch, PIT())(batch.sample(rng, 1)[0])
    drawn = np.stack([randomised(levels, seed) for seed in range(4_000)])
    for u in (0.1, 0.5, 0.93):
        seen = (drawn <= u).mean(axis=0)
        assert np.all(np.abs(share_upto(levels, u) - seen) < 5 * np.sqrt(0.25 / 4_000))


def test_a_level_counts_itself():
    point = np.array([0.5])
    assert share_upto((point, point.copy()), 0.5).tolist() == share_upto((point, point), 0.5).tolist() == [1]


def test_the_mean_of_shares_is_the_level_for_calibrated_counts(counts, rng):
    batch = counts.example(rng, 40)
    low, high = pit_of(batch, PIT())(batch.sample(rng, 20_000))
    for u in (0.2, 0.7):
        assert np.abs(share_upto((low, high), u).mean(axis=0) - u).max() < 5 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: PIT()([0, 1], [0.2, 0.4]),
            "PIT needs a distribution function, which Categorical predictions do not have",
        ),
        (
            lambda: PIT("band")([0.0], Normal([0.0], 1.0)),
            "prerank='band' orders vectors, and these predictions are of numbers",
        ),
        (lambda: PIT("mean"), "prerank must be 'average', 'band' or 'centre'; got 'mean'"),
        (lambda: PIT(seed=0.5), "seed must be a whole number"),
        (lambda: PIT()([0.0, 1.0], Normal([0.0], 1.0)), "y_true has 2 rows and y_pred has 1"),
        (lambda: pit_of(MultivariateNormal([[0.0, 1.0]], 1.0), PIT()), "say how to order them, prerank='average'"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_vectors_are_ordered_by_average_ranks():
    assert usual_prerank(Normal(np.zeros(3), 1.0)) is None
    assert usual_prerank(MultivariateNormal(np.zeros((3, 2)), 1.0)) == "average"
