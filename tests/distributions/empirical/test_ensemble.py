import itertools
import pickle

import numpy as np
import pytest

from calibrant import CRPS, SKCE, Ensemble, ExactTest, Normal, Poisson
from calibrant._validate import InputError
from calibrant.distributions.empirical.ensemble import _is_worth_sorting
from calibrant.estimators import EnergyScore
from calibrant.estimators.forecast_errors.pit import pit_of
from calibrant.inference import RankTest
from calibrant.kernels import Energy, Exponential, Gaussian, Matern, expectation
from calibrant.recalibration import Dressing
from calibrant.residuals import Route


def test_distribution_function_counts_members():
    batch = Ensemble([[1.0, 3.0, 2.0, 2.0], [0.0, 0.0, 5.0, -1.0]])
    assert batch.cdf(np.array([[2.0, 0.0], [1.5, 4.9], [9.0, -2.0]])).tolist() == [
        [0.75, 0.75],
        [0.25, 0.75],
        [1.0, 0.0],
    ]


@pytest.mark.parametrize("m", [1, 2, 5, 7, 100, 1000])
def test_quantiles_are_the_least_members_that_reach_the_level(m, rng):
    batch = Ensemble(rng.permutation(np.arange(1.0, m + 1))[None])
    k = np.arange(1, m + 1)
    assert np.array_equal(batch.quantile(k / m)[0], k)  # also where m (k / m) rounds up
    assert np.array_equal(batch.quantile((k - 0.5) / m)[0], k)
    assert batch.quantile(np.array([0.0, 1.0])).tolist() == [[1.0, float(m)]]
    u = rng.random(50)
    found = batch.quantile(u)[0]
    assert np.all(batch.cdf(found[:, None])[:, 0] >= u)
    assert np.all(batch.cdf(found[:, None] - 0.5)[:, 0] < u)


def test_characteristic_function_is_a_mean(rng):
    members, w = rng.normal(size=(3, 5)), np.array([0.3, 2.0])
    exact = np.exp(1j * members[:, :, None] * w).mean(axis=1)
    real, imaginary = Ensemble(members).cf(w)
    assert real == pytest.approx(exact.real, rel=1e-13)
    assert imaginary == pytest.approx(exact.imag, rel=1e-13)


def test_characteristic_function_of_vectors(rng):
    members, w = rng.normal(size=(3, 5, 2)), rng.normal(size=(4, 2))
    exact = np.exp(1j * np.einsum("nmd,wd->nmw", members, w)).mean(axis=1)
    real, imaginary = Ensemble(members).cf(w)
    assert real == pytest.approx(exact.real, rel=1e-12)
    assert imaginary == pytest.approx(exact.imag, rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2)])
def test_every_member_is_drawn_equally_often(shape, rng):
    members = np.arange(float(np.prod(shape))).reshape(shape)
    draws = Ensemble(members).sample(rng, 40_000)
    assert draws.shape == (40_000, 3, *shape[2:])
    for i, k in itertools.product(range(3), range(4)):
        hits = (draws[:, i].reshape(40_000, -1) == members[i, k].reshape(-1)).all(axis=1).sum()
        assert abs(hits - 10_000) < 5 * np.sqrt(40_000 * 3 / 16)


def test_coordinates_have_the_wasserstein_distance(rng):
    """The least root mean square over all ways to pair the members."""
    members = rng.normal(size=(2, 6)) * [[1.0], [3.0]]
    pairings = itertools.permutations(range(6))
    least = min(np.mean((members[0] - members[1][list(order)]) ** 2) for order in pairings)
    assert np.linalg.norm(np.diff(Ensemble(members).coords, axis=0)) == pytest.approx(np.sqrt(least), rel=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8), Matern(2.5, 0.8), Energy()], ids=repr)
@pytest.mark.parametrize("d", [None, 2])
def test_the_closed_form_is_a_double_sum(kernel, d, rng):
    p, q = (rng.normal(size=(2, m, *([] if d is None else [d]))) for m in (3, 4))
    p[0, 1] = p[0, 0]  # members may coincide
    q[0] *= 1e6
    exact = np.zeros((2, 2))
    for i, j, k, m in np.ndindex(2, 2, 3, 4):
        exact[i, j] += kernel(p[i, k].reshape(1, -1), q[j, m].reshape(1, -1))[0, 0] / 12
    assert expectation(kernel, Ensemble(p), Ensemble(q)) == pytest.approx(exact, rel=1e-12)


def test_points_are_single_members():
    batch = Ensemble([[0.0, 1.0], [2.0, 3.0]])
    points = batch.point(np.array([5.0, 6.0]))
    assert points.members.tolist() == [[5.0], [6.0]]
    assert points.coords.tolist() == [[5.0], [6.0]]
    vectors = Ensemble(np.zeros((2, 3, 2))).point(np.ones((2, 2)))
    assert vectors.members.shape == (2, 1, 2)


def test_every_library_gives_the_same_numbers(xp, rng):
    members, y = rng.normal(size=(3, 4)), rng.normal(size=3)
    ours, other = Ensemble(members), Ensemble(xp.asarray(members))
    found = expectation(Exponential(0.8), other, other.point(xp.asarray(y)))
    assert np.asarray(found) == pytest.approx(expectation(Exponential(0.8), ours, ours.point(y)), rel=1e-13)
    assert np.asarray(other.coords) == pytest.approx(ours.coords, rel=1e-15)
    assert np.asarray(other.cf(np.array([0.7]))[0]) == pytest.approx(ours.cf(np.array([0.7]))[0], rel=1e-13)
    assert isinstance(other.point(y).members, type(other.members))
    assert isinstance(other.as_targets(y.tolist()), type(other.members))


def test_single_precision_stays_and_is_close(rng):
    members = rng.normal(size=(3, 4)).astype(np.float32)
    single, double = Ensemble(members), Ensemble(members.astype(float))
    found = expectation(Gaussian(0.8), single, single)
    assert found.dtype == single.coords.dtype == single.cf(np.ones(1))[0].dtype == np.float32
    assert found == pytest.approx(expectation(Gaussian(0.8), double, double), rel=1e-6)


def test_rows_words_and_travel(rng):
    batch = Ensemble(rng.normal(size=(1500, 4)))
    assert np.array_equal(batch[np.array([3, 1])].members, batch.members[[3, 1]])
    assert np.array_equal(batch[2:4].members, batch.members[2:4])
    assert repr(batch) == "<Ensemble: 1,500 predictions of 4 members>"
    assert np.array_equal(pickle.loads(pickle.dumps(batch)).members, batch.members)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([1.0, 2.0], r"members must be \(n, m\) or \(n, m, d\); got shape \(2,\)"),
        (np.zeros((3, 0)), r"members is empty: got shape \(3, 0\)"),
        (np.zeros((0, 3)), r"members is empty: got shape \(0, 3\)"),
        ([[1.0, np.inf]], "members has NaN or infinite values in 1 place, first in row 0, member 1"),
        ([[1.0], [1.0, 2.0]], "members has rows of different lengths"),
    ],
)
def test_members_are_checked(members, message):
    with pytest.raises(InputError, match=message):
        Ensemble(members)


def test_targets_are_checked():
    with pytest.raises(InputError, match=r"y_true must be one number per row; got shape \(2, 2\)"):
        Ensemble([[1.0], [2.0]]).as_targets(np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"y_true must be \(n, 3\); got shape \(2,\)"):
        Ensemble(np.zeros((2, 4, 3))).as_targets(np.zeros(2))
    assert Ensemble([[1.0], [2.0]]).as_targets([[5], [6]]).tolist() == [5.0, 6.0]


def test_vectors_have_no_order_and_samples_no_density():
    vectors = Ensemble(np.zeros((2, 4, 3)))
    assert vectors.coords is NotImplemented
    assert vectors.cdf(np.zeros((2, 3))) is NotImplemented
    assert vectors.quantile(np.array([0.5])) is NotImplemented
    assert vectors.temper(2.0) is NotImplemented
    with pytest.raises(InputError, match="Ensemble has no log_prob"):
        Ensemble([[1.0]]).log_prob(np.zeros(1))


def test_what_lies_below_a_member():
    batch = Ensemble([[1.0, 3.0, 2.0, 2.0], [0.0, 0.0, 5.0, -1.0]])
    assert batch.below(np.array([[2.0, 0.0], [1.5, 4.9], [9.0, -2.0]])).tolist() == [
        [0.25, 0.25],
        [0.25, 0.75],
        [1.0, 0.0],
    ]


def test_moments_are_those_of_the_members(xp, rng):
    members = rng.normal(size=(4, 7, 2))
    batch = Ensemble(xp.asarray(members))
    assert np.asarray(batch.mean) == pytest.approx(members.mean(axis=1))
    assert np.asarray(batch.std) == pytest.approx(members.std(axis=1))
    assert batch.below(np.zeros((4, 2))) is NotImplemented


@pytest.mark.parametrize(
    "kernel", [Exponential(0.7), Matern(1.5, 0.7), Matern(2.5, 2.0), Energy(), 0.5 * Energy()], ids=repr
)
@pytest.mark.parametrize(("rows", "columns"), [((5, 40), (7, 64)), ((300, 1), (9, 50)), ((1, 500), (4, 3))])
def test_sorted_members_have_the_same_sums(kernel, rows, columns, rng, monkeypatch):
    p, q = Ensemble(rng.normal(size=rows)), Ensemble(rng.normal(size=columns).round(1))
    plain = expectation(kernel, p, q)
    monkeypatch.setattr("calibrant.distributions.empirical.ensemble.MIN_PAIRS_TO_COMPILE", 0)
    monkeypatch.setattr("calibrant.distributions.empirical.ensemble.STEP", 0)
    assert expectation(kernel, p, q) == pytest.approx(plain, rel=1e-12, abs=1e-13)


def test_sorting_is_for_many_members_on_a_line_and_kernels_that_can(rng):
    few, many = Ensemble(rng.normal(size=(4, 5))), Ensemble(rng.normal(size=(16, 128)))
    vectors = Ensemble(rng.normal(size=(16, 128, 2)))
    assert _is_worth_sorting(Energy(), many, many)
    assert not _is_worth_sorting(Energy(), few, few)
    assert not _is_worth_sorting(Gaussian(1.0), many, many)
    assert not _is_worth_sorting(Energy(), vectors, vectors)


class TestWeights:
    """Three rows: unequal, one without weight, all on one."""

    members = np.array([[3.0, 1.0, 2.0], [5.0, 0.0, 0.0], [7.0, 8.0, 9.0]])
    weights = np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])

    @pytest.fixture
    def batch(self):
        return Ensemble(self.members, self.weights)

    def test_levels_and_quantiles(self, batch):
        y = np.array([[2.0, 0.0, 7.0], [0.5, 4.0, 6.0]])
        assert batch.cdf(y).tolist() == [[0.5, 1.0, 1.0], [0.0, 1.0, 0.0]]
        assert batch.below(y).tolist() == [[0.25, 0.0, 0.0], [0.0, 1.0, 0.0]]
        u = np.array([0.0, 0.25, 0.3, 0.5, 0.6, 1.0])
        assert batch.quantile(u).tolist() == [[1, 1, 2, 2, 3, 3], [0] * 6, [7] * 6]
        assert (
            Ensemble([[-1.0, 2.0]], [[0.0, 1.0]]).quantile(np.array([0.0])) == 2.0
        )  # what has no weight is not the least

    def test_equal_weights_are_no_weights(self, rng):
        members = rng.normal(size=(4, 6))
        plain, weighted = Ensemble(members), Ensemble(members, np.full(6, 1 / 6))
        y, u, w = rng.normal(size=(3, 4)), rng.random(9), np.array([0.3, 2.0])
        for method, argument in (("cdf", y), ("below", y), ("crps", y), ("quantile", u)):
            assert getattr(weighted, method)(argument) == pytest.approx(getattr(plain, method)(argument), rel=1e-12)
        assert weighted.cf(w)[1] == pytest.approx(plain.cf(w)[1], rel=1e-12)
        assert (weighted.mean, weighted.std) == (pytest.approx(plain.mean), pytest.approx(plain.std))
        assert np.linalg.norm(np.diff(weighted.coords, axis=0)) == pytest.approx(
            np.linalg.norm(np.diff(plain.coords, axis=0)), rel=0.05
        )
        assert weighted.is_even
        assert plain.is_even

    def test_members_repeated_are_weights(self, rng):
        """Weights of quarters are members that are listed so often."""
        listed = Ensemble([[3.0, 3.0, 1.0, 2.0], [0.0] * 4, [7.0] * 4])
        batch = Ensemble(self.members, self.weights)
        y, w = rng.normal(size=(5, 3)), np.array([0.3, 2.0])
        assert batch.crps(y) == pytest.approx(listed.crps(y), rel=1e-12)
        assert batch.cf(w)[0] == pytest.approx(listed.cf(w)[0], rel=1e-12)
        assert batch.mean == pytest.approx(listed.mean)
        assert batch.std == pytest.approx(listed.std)
        for kernel in (Gaussian(0.8), Energy()):
            found = expectation(kernel, batch, listed)
            assert found == pytest.approx(expectation(kernel, listed, listed), rel=1e-12)
            assert expectation(kernel, listed, batch) == pytest.approx(found.T, rel=1e-12)
        normal, poisson = Normal([0.0, 1.0], 1.0), Poisson([1.0, 2.0])
        for other in (normal, poisson):
            exact = expectation(Gaussian(0.8), other, listed)
            assert expectation(Gaussian(0.8), other, batch) == pytest.approx(exact, rel=1e-12)

    @pytest.mark.parametrize("d", [None, 2])
    def test_draws_follow_the_weights(self, d, rng):
        members = np.arange(6.0).reshape(2, 3) if d is None else np.arange(12.0).reshape(2, 3, 2)
        weights = np.array([[0.5, 0.2, 0.3], [0.0, 0.1, 0.9]])
        draws = Ensemble(members, weights).sample(rng, 40_000).reshape(40_000, 2, -1)[..., 0]
        first = members.reshape(2, 3, -1)[..., 0]
        for i, k in itertools.product(range(2), range(3)):
            share = (draws[:, i] == first[i, k]).mean()
            assert abs(share - weights[i, k]) <= 5 * np.sqrt(weights[i, k] * (1 - weights[i, k]) / 40_000)

    def test_rows_of_different_lengths(self, rng):
        rows = [rng.normal(size=m) for m in (1, 4, 9)]
        batch, y = Ensemble.from_ragged(rows), rng.normal(size=3)
        for i, row in enumerate(rows):
            alone = Ensemble(row[None])
            assert batch.crps(y)[i] == pytest.approx(alone.crps(y[[i]])[0], rel=1e-12)
            assert batch.mean[i] == pytest.approx(row.mean())
            assert batch.quantile(np.array([0.3]))[i, 0] == alone.quantile(np.array([0.3]))[0, 0]
        assert np.isnan(batch.listed).sum(axis=1).tolist() == [8, 5, 0]
        assert batch.coincidence == pytest.approx([1, 1 / 4, 1 / 9])
        assert batch.is_even
        assert not Ensemble([[0.0, 1.0]], [[0.2, 0.8]]).is_even
        assert repr(batch) == "<Ensemble: 3 predictions of 9 weighted members>"

    def test_scores_and_ranks_know_the_numbers(self, rng):
        """Fair scores and levels of rows of different lengths are those of each row alone."""
        rows, y = [rng.normal(size=m) for m in (2, 4, 9)], rng.normal(size=3)
        batch = Ensemble.from_ragged(rows)
        alone = [Ensemble(row[None]) for row in rows]
        for score in (CRPS(), CRPS(fair=True), EnergyScore(), EnergyScore(fair=True)):
            exact = [score.losses(y[[i]], one)[0] for i, one in enumerate(alone)]
            assert score.losses(y, batch) == pytest.approx(exact, rel=1e-12)
        levels = pit_of(batch, self)(y)
        for i, one in enumerate(alone):
            low, high = pit_of(one, self)(y[[i]])
            assert (levels[0][i], levels[1][i]) == (low[0], high[0])
        assert pit_of(Ensemble([[0.0, 1.0]], [[0.2, 0.8]]), self)(np.zeros(1))[1].tolist() == [0.2]

    def test_fair_scores_are_unbiased(self, rng):
        """The mean over ensembles of m members is the score of what they were drawn from."""
        y = np.full(40_000, 0.4)
        exact = Normal([0.0], 1.0).crps(np.array([0.4]))[0]
        rows = [rng.normal(size=m) for m in rng.integers(2, 5, len(y))]
        found = CRPS(fair=True).losses(y, Ensemble.from_ragged(rows))
        assert abs(found.mean() - exact) < 4 * found.std() / 200
        plain = CRPS().losses(y, Ensemble.from_ragged(rows))
        assert plain.mean() - exact > 20 * plain.std() / 200

    def test_rows_words_and_travel(self, batch):
        part = batch[np.array([2, 0])]
        assert part.weights.tolist() == self.weights[[2, 0]].tolist()
        again = pickle.loads(pickle.dumps(batch))
        assert np.array_equal(again.cdf(np.ones(3)), batch.cdf(np.ones(3)))

    def test_every_library(self, xp):
        ours, other = Ensemble(self.members, self.weights), Ensemble(xp.asarray(self.members), self.weights)
        assert isinstance(other.mean, type(other.members))
        assert np.asarray(other.cf(np.array([0.7]))[0]) == pytest.approx(ours.cf(np.array([0.7]))[0], rel=1e-12)
        found = expectation(Gaussian(1.0), other, other.point(xp.asarray(np.ones(3))))
        assert np.asarray(found) == pytest.approx(expectation(Gaussian(1.0), ours, ours.point(np.ones(3))), rel=1e-12)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([0.5, 0.5], r"weights must be \(n, 3\) or \(3,\); got shape \(2,\)"),
            ([0.5, 0.6, -0.1], "weights must not be negative; found -0.1 in row 0"),
            ([0.5, 0.2, 0.2], "weights must sum to 1; row 0 sums to 0.9"),
            ([0.5, 0.5, np.nan], "weights has NaN"),
        ],
    )
    def test_weights_are_checked(self, weights, message):
        with pytest.raises(InputError, match=message):
            Ensemble(self.members, weights)

    def test_what_needs_equal_members_says_so(self, batch):
        with pytest.raises(InputError, match="RankTest takes equally likely members"):
            RankTest()([1.0, 2.0, 3.0], batch)
        with pytest.raises(InputError, match="Dressing takes equally likely members; got .* weighted members"):
            Dressing().fit([1.0, 2.0, 3.0], batch)

    def test_errors_and_tests(self, rng):
        rows = [mu + rng.normal(size=m) for mu, m in zip(rng.normal(size=60), rng.integers(3, 12, 60), strict=True)]
        batch = Ensemble.from_ragged(rows)
        honest = batch.sample(rng, 1)[0]
        assert ExactTest(SKCE(), n_resamples=99)(honest, batch).pvalue > 0.05
        assert ExactTest(SKCE(), n_resamples=99)(honest + 1.5, batch).pvalue == 0.01


@pytest.mark.parametrize(("shape", "axis", "expected"), [((7, 3), 0, (3, 7)), ((3, 7), 1, (3, 7)), ((7, 3, 2), 0, (3, 7, 2)), ((3, 2, 7), 2, (3, 7, 2))])  # fmt: skip
def test_draws_may_have_members_on_any_axis(shape, axis, expected, rng):
    draws = rng.normal(size=shape)
    batch = Ensemble.from_draws(draws, axis)
    assert batch.members.shape == expected
    assert np.array_equal(batch.mean, np.moveaxis(draws, axis, 1).mean(axis=1))
    with pytest.raises(InputError, match="draws must have 2 or 3 axes, members on one of them; got"):
        Ensemble.from_draws(draws, 5)


def test_scores_are_means_over_pairs(rng):
    members, y = rng.normal(size=(4, 7)).round(1), rng.normal(size=(2, 4))
    exact = (
        np.abs(members - y[..., None]).mean(axis=-1)
        - np.abs(members[:, :, None] - members[:, None]).mean(axis=(1, 2)) / 2
    )
    assert Ensemble(members).crps(y) == pytest.approx(exact, rel=1e-12)
    assert Ensemble(rng.normal(size=(2, 3, 2))).crps(np.zeros((2, 2))) is NotImplemented


class TestVectors:
    @pytest.fixture
    def batch(self, rng):
        return Ensemble(rng.normal(size=(40, 1, 3)) + rng.normal(size=(40, 8, 3)))

    def test_moments(self, batch):
        assert batch.mean == pytest.approx(batch.members.mean(axis=1))
        assert batch.std == pytest.approx(batch.members.std(axis=1))

    def test_errors_and_tests_work_out_of_the_box(self, batch, rng):
        honest = batch.sample(rng, 1)[0]
        result = SKCE()(honest, batch)
        assert result.route == "closed; plain"
        assert ExactTest(SKCE(), n_resamples=99)(honest, batch).pvalue > 0.05
        assert ExactTest(SKCE(), n_resamples=99)(honest + 1, batch).pvalue == 0.01

    def test_draws_stand_for_members(self, batch, rng):
        honest = batch.sample(rng, 1)[0]
        closed, drawn = (SKCE(route=route)(honest, batch).value for route in (None, Route.SAMPLED))
        assert drawn == pytest.approx(closed, abs=0.01)

    def test_large_problems_are_affordable(self, rng):
        """Beyond the budget the statistic is one of random features, and still sees an error."""
        batch = Ensemble(rng.normal(size=(500, 1, 2)) + rng.normal(size=(500, 8, 2)))
        result = ExactTest(SKCE(), n_resamples=99, budget=1e8)(batch.sample(rng, 1)[0] + 0.5, batch)
        assert "RandomFeatureSKCE" in result.notes[0]
        assert result.pvalue == 0.01


def test_members_drawn_from_the_truth_have_a_kernel_error_above_zero():
    values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        loc = rng.normal(size=150)
        members = Ensemble(rng.normal(loc[:, None], 1.0, (150, 3)))
        values.append(SKCE(Exponential(1.0), Gaussian(1.0))(rng.normal(loc, 1.0), members).value)
    assert np.mean(values) > 4 * np.std(values) / len(values) ** 0.5
