import itertools
import pickle

import numpy as np
import pytest

from calibrant import Ensemble
from calibrant._validate import InputError
from calibrant.distributions.ensemble import _is_worth_sorting
from calibrant.expectation import expectation
from calibrant.kernels import Energy, Exponential, Gaussian, Matern


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
        ([[1.0, np.inf]], "members has NaN or infinite values in 1 places, first in row 0"),
        ([[1.0], [1.0, 2.0]], "members has rows of different lengths"),
    ],
)
def test_members_are_checked(members, message):
    with pytest.raises(InputError, match=message):
        Ensemble(members)


def test_targets_are_checked():
    with pytest.raises(InputError, match=r"y_true must be one number a row; got shape \(2, 2\)"):
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
    monkeypatch.setattr("calibrant.distributions.ensemble.MANY", 0)
    monkeypatch.setattr("calibrant.distributions.ensemble.STEP", 0)
    assert expectation(kernel, p, q) == pytest.approx(plain, rel=1e-12, abs=1e-13)


def test_sorting_is_for_many_members_on_a_line_and_kernels_that_can(rng):
    few, many = Ensemble(rng.normal(size=(4, 5))), Ensemble(rng.normal(size=(16, 128)))
    vectors = Ensemble(rng.normal(size=(16, 128, 2)))
    assert _is_worth_sorting(Energy(), many, many)
    assert not _is_worth_sorting(Energy(), few, few)
    assert not _is_worth_sorting(Gaussian(1.0), many, many)
    assert not _is_worth_sorting(Energy(), vectors, vectors)
