import numpy as np
import pytest
from scipy import stats

from calibrant import Ensemble, Gamma, NegativeBinomial, Poisson
from calibrant._validate import InputError
from calibrant.distributions.discrete.count_families import MAX_COUNTS, check_rate
from calibrant.kernels import Energy, Exponential, Gaussian, Matern, expectation

KERNELS = [Gaussian(1.3), Exponential(2.0), Matern(1.5, 2.0), Energy()]
FAMILIES = pytest.mark.parametrize("family", [Poisson, NegativeBinomial])


@FAMILIES
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, -3], r"y_true must be counts: 0, 1, 2, \.\.\.; found -3 in row 2"),
        ([1.0, 2.5, 3.0], r"y_true must be counts: 0, 1, 2, \.\.\.; found 2.5 in row 1"),
    ],
)
def test_targets_are_counts(family, y, message, rng):
    with pytest.raises(InputError, match=message):
        family.example(rng, 3).as_targets(y)


@FAMILIES
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, np.float64, np.bool_])
def test_counts_of_any_type_become_real_numbers(family, kind, rng):
    y = family.example(rng, 3).as_targets(np.array([0, 1, 1], dtype=kind))
    assert y.dtype == (np.float32 if kind is np.float32 else np.float64)
    assert y.tolist() == [0, 1, 1]


def test_rates_are_ones_that_can_be_counted_to():
    with pytest.raises(
        InputError, match=r"rate must be at most 1e\+15, so that counts are whole numbers; found 1e\+20"
    ):
        Poisson([1.0, 1e20])
    check_rate(np.array([1e15]))


@FAMILIES
def test_below_leaves_out_the_count_itself(family, rng):
    batch = family.example(rng, 5)
    for y in (0.0, 1.0, 2.5, 7.0):
        at = np.full(5, y)
        mass = np.exp(batch.log_prob(at))
        assert batch.cdf(at) - batch.below(at) == pytest.approx(mass, abs=1e-14)
    assert np.all(batch.cdf(np.full(5, -0.5)) == 0)
    assert np.all(batch.below(np.zeros(5)) == 0)


@FAMILIES
def test_what_is_no_count_cannot_happen(family, rng):
    assert np.all(family.example(rng, 2).log_prob(np.array([[-1.0], [0.5]])) == -np.inf)


@FAMILIES
def test_quantiles_are_the_least_counts_that_reach_a_level(family, rng):
    batch = family.example(rng, 20)
    u = np.concatenate([rng.random(50), 1 - 10.0 ** -np.arange(3, 15), 10.0 ** -np.arange(3, 15)])
    found = batch.quantile(u)
    assert np.all(u <= batch.cdf(found.T).T)
    assert np.all((u > batch.cdf(found.T - 1).T) | (found == 0))


@FAMILIES
def test_masses_are_those_of_the_log_probabilities(family, rng):
    batch = family.example(rng, 4)
    k = np.arange(31.0)
    assert batch.masses(30) == pytest.approx(np.exp(batch.log_prob(k[:, None])).T, rel=1e-12)
    assert batch.masses(batch.last).sum(axis=1) == pytest.approx(np.ones(4), abs=1e-14)
    tail = 1 - batch.cdf(np.full(4, batch.last))
    assert np.all(tail < 1e-15)


def test_the_last_count_of_rare_events():
    assert Poisson([1e-30]).last == 0
    assert Poisson([1e-30]).masses(0).tolist() == [[1.0]]
    assert NegativeBinomial([1e-30], 1.0).masses(0).tolist() == [[1.0]]


def by_sums(kernel, p, q, last):
    k = np.arange(last + 1.0)[:, None]
    return np.exp(p.log_prob(k)).T @ kernel(k, k) @ np.exp(q.log_prob(k))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_expectations_are_sums(kernel, rng):
    batches = [Poisson.example(rng, 3), NegativeBinomial.example(rng, 2)]
    for p in batches:
        for q in batches:
            assert expectation(kernel, p, q) == pytest.approx(by_sums(kernel, p, q, 800), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@FAMILIES
def test_expectations_with_points_are_sums(kernel, family, rng):
    batch = family.example(rng, 3)
    y = np.array([0.0, 3.0, 500.0])
    k = np.arange(800.0)[:, None]
    wanted = np.exp(batch.log_prob(k)).T @ kernel(k, y[:, None])
    points = batch.point(y)
    assert expectation(kernel, batch, points) == pytest.approx(wanted, rel=1e-11, abs=1e-13)
    assert expectation(kernel, points, batch) == pytest.approx(wanted.T, rel=1e-11, abs=1e-13)
    members = Ensemble(np.stack([y, y + 1], axis=1))
    both = (wanted + np.exp(batch.log_prob(k)).T @ kernel(k, y[:, None] + 1)) / 2
    assert expectation(kernel, batch, members) == pytest.approx(both, rel=1e-11, abs=1e-13)


def test_long_sums_are_left_to_other_routes(rng):
    short, long = Poisson([3.0, 900.0]), Poisson([3.0, 1e5])
    assert short.last < MAX_COUNTS < long.last
    kernel, points = Gaussian(1.0), short.point(np.zeros(2))
    assert expectation(kernel, short, short) is not NotImplemented
    for p, q in ((short, long), (long, short), (long, points), (points, long)):
        assert expectation(kernel, p, q) is NotImplemented


def test_vectors_are_no_counts(rng):
    assert expectation(Gaussian(1.0), Poisson([3.0]), Ensemble(np.zeros((1, 2, 2)))) is NotImplemented
    assert expectation(Gaussian(1.0), Poisson([3.0]), Gamma([3.0], 1.0)) is NotImplemented


@FAMILIES
def test_every_library_gives_the_same_sums(family, xp, rng):
    ours = family.example(rng, 3)
    other = family(*(xp.asarray(column) for column in ours.parameters))
    y = np.array([0.0, 2.0, 5.0])
    for kernel in KERNELS:
        for q, r in ((other, ours), (other.point(xp.asarray(y)), ours.point(y))):
            found = expectation(kernel, other, q)
            assert isinstance(found, type(xp.asarray(y)))
            assert np.asarray(found) == pytest.approx(expectation(kernel, ours, r), rel=1e-12)


@FAMILIES
def test_gradients_are_finite_differences(family, rng):
    torch = pytest.importorskip("torch")
    example = family.example(rng, 2)
    columns = [torch.tensor(column, requires_grad=True) for column in example.parameters]
    batch = family(*columns)
    expectation(Gaussian(1.3), batch, batch).sum().backward()
    for i, column in enumerate(example.parameters):
        step = 1e-6 * np.eye(len(example.parameters))[i][:, None]
        ends = [family(*(np.stack(example.parameters) + sign * step)) for sign in (-1, 1)]
        low, high = (expectation(Gaussian(1.3), end, end).sum() for end in ends)
        assert float(columns[i].grad.sum()) == pytest.approx((high - low) / 2e-6, rel=1e-5), column


@FAMILIES
def test_single_precision_stays_and_is_close(family, rng):
    double = family.example(rng, 4)
    single = family(*(column.astype(np.float32) for column in double.parameters))
    found = expectation(Gaussian(1.3), single, single)
    assert found.dtype == np.float32
    assert found == pytest.approx(expectation(Gaussian(1.3), double, double), rel=1e-5)


def test_large_counts():
    batch = Poisson([1e6, 1e12])
    y = np.array([1e6 + 300, 1e12])
    assert batch.crps(y) == pytest.approx(stats_crps(batch, y), rel=2e-4)
    assert batch.quantile(np.array([0.5])).ravel() == pytest.approx([1e6, 1e12], rel=1e-6)


def stats_crps(batch, y):
    """Of the normal distribution with the same moments."""
    z = (y - batch.mean) / batch.std
    return batch.std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
