import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import SKCE, ExactTest, LogLoss
from calibrant._validate import InputError
from calibrant.distributions import Histogram
from calibrant.kernels import Exponential, Gaussian

INF = np.inf
EDGES = [0.0, 1.0, 3.0, 4.0]
PROBS = [[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]]


@pytest.fixture
def batch():
    return Histogram(EDGES, PROBS)


def scipy_rows(batch):
    """The same from scipy, for closed bins."""
    edges = np.broadcast_to(batch.edges, (len(batch), batch.probs.shape[1] + 1))
    return [stats.rv_histogram((p, e), density=False) for p, e in zip(batch.probs, edges, strict=True)]


@pytest.mark.parametrize("edges", [EDGES, [[0.0, 1.0, 3.0, 4.0], [-5.0, 1.0, 1.5, 40.0]]])
def test_against_scipy(edges):
    batch = Histogram(edges, PROBS)
    y, u = np.array([-1.0, 0.0, 0.3, 1.2, 2.9, 3.5, 4.0, 5.0]), np.array([0.05, 0.2, 0.5, 0.7, 0.95])
    for i, row in enumerate(scipy_rows(batch)):
        one = batch[i : i + 1]
        assert one.cdf(y[:, None])[:, 0] == pytest.approx(row.cdf(y), abs=1e-15)
        assert np.exp(one.log_prob(y[:-2, None]))[:, 0] == pytest.approx(row.pdf(y[:-2]), abs=1e-15)
        assert one.quantile(u)[0] == pytest.approx(row.ppf(u), rel=1e-14)
        assert (one.mean[0], one.std[0]) == pytest.approx((row.mean(), row.std()), rel=1e-13)


def test_open_bins_are_exponential():
    batch = Histogram([-INF, 0.0, 2.0, 3.0, INF], [[0.3, 0.2, 0.4, 0.1]])
    below, above = stats.expon(0, 2), stats.expon(0, 1)
    for distance in (0.1, 1.0, 9.0):
        assert batch.cdf(np.array([-distance])) == pytest.approx(0.3 * below.sf(distance), rel=1e-13)
        assert batch.cdf(np.array([3 + distance])) == pytest.approx(1 - 0.1 * above.sf(distance), rel=1e-13)
    assert batch.mean[0] == pytest.approx(0.3 * -2 + 0.2 * 1 + 0.4 * 2.5 + 0.1 * 4, rel=1e-13)


def test_empty_bins_are_skipped(batch):
    assert batch.quantile(np.array([0.0, 0.5, 1.0]))[1].tolist() == [1.0, 2.0, 3.0]
    assert batch.log_prob(np.array([4.0, 0.5]))[1] == -INF
    assert batch.cdf(np.array([0.5, 0.5])).tolist() == [0.1, 0.0]
    assert np.all(batch.sample(np.random.default_rng(0), 1000)[:, 1] >= 1)


def test_rows_are_normalised():
    batch = Histogram([0.0, 1.0, 2.0], [[0.5003, 0.5]])
    assert batch.cdf(np.array([2.0])) == 1.0
    assert batch.cdf(np.array([1.0])) == pytest.approx(0.5003 / 1.0003)


def test_tables_of_the_distribution_function():
    grid = np.linspace(-3, 3, 13)
    exact = stats.norm([0.0, 0.5], [1.0, 1.5])
    batch = Histogram.from_cdf(grid, exact.cdf(grid[:, None]).T)
    assert batch.edges[[0, -1]].tolist() == [-INF, INF]
    for y in grid:
        assert batch.cdf(np.full(2, y)) == pytest.approx(exact.cdf(y), rel=1e-13)
    own = Histogram.from_cdf(np.stack([grid, grid + 1]), exact.cdf(np.stack([grid, grid + 1]).T).T)
    assert own.edges.shape == (2, 15)
    assert own.cdf(grid[[3, 3]] + [0, 1]) == pytest.approx(exact.cdf(grid[[3, 3]] + [0, 1]))


@pytest.mark.parametrize(
    ("cdf", "edges"),
    [
        ([[0.0, 0.5, 1.0]], [0.0, 1.0, 2.0]),
        ([[0.1, 0.5, 1.0]], [-INF, 0.0, 1.0, 2.0]),
        ([[0.0, 0.5, 0.9]], [0.0, 1.0, 2.0, INF]),
        ([[0.0, 0.5, 1.0], [0.2, 0.5, 0.9]], [-INF, 0.0, 1.0, 2.0, INF]),
    ],
)
def test_only_what_is_left_over_is_in_open_bins(cdf, edges):
    batch = Histogram.from_cdf([0, 1, 2], cdf)
    assert batch.edges.tolist() == edges
    assert batch.cdf(np.ones(len(cdf))).tolist() == [0.5] * len(cdf)


def test_coordinates_are_nearly_the_wasserstein_distance(rng):
    batch = Histogram([-2.0, -0.5, 0.3, 1.5, 3.0], rng.dirichlet(np.ones(4), 2))
    exact = quad(lambda u: np.diff(batch.quantile(np.array([u]))[:, 0])[0] ** 2, 0, 1, limit=500)[0] ** 0.5
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(exact, rel=0.05)
    points = batch.point(np.array([1.0, 4.0]))
    assert np.linalg.norm(np.diff(points.coords, axis=0)) == pytest.approx(3.0, rel=1e-13)
    assert (points.mean.tolist(), points.std.tolist()) == ([1.0, 4.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("edges", "probs", "message"),
    [
        ([0.0, 1.0], [[0.5, 0.5]], r"edges must be \(3,\) or \(n, 3\) numbers, one more than bins; got shape \(2,\)"),
        ([[0.0, 1.0, 2.0]], [[0.5, 0.5], [0.1, 0.9]], "edges has 1 row and probs has 2"),
        (
            [0.0, 2.0, 1.0],
            [[0.5, 0.5]],
            "edges must increase, and only the outer ones may be infinite; found 1 at place 2",
        ),
        ([0.0, 0.0, 1.0], [[0.5, 0.5]], "edges must increase, .* found 0 at place 1"),
        ([0.0, np.nan, 1.0], [[0.5, 0.5]], "edges must increase, .* found nan at place 1"),
        ([0.0, INF, INF], [[0.5, 0.5]], "edges must increase, .* found inf at place 1"),
        ([INF, 0.0, 1.0], [[0.5, 0.5]], "edges must increase, .* found inf at place 0"),
        ([-INF, 0.0, INF], [[0.5, 0.5]], "at least one bin must have two finite edges"),
        ([[0.0, 1.0, 2.0], [0.0, 3.0, 2.0]], PROBS_OF_TWO := [[0.5, 0.5], [0.1, 0.9]], "found 2 at place 2 of row 1"),
        ([[0.0, 1.0, 2.0], [0.0, 1.0, INF]], PROBS_OF_TWO, "outer bins must be open in every row or in none"),
        (["a", "b", "c"], [[0.5, 0.5]], r"edges must be \(3,\) or \(n, 3\) numbers"),
        (
            [0.0, 1.0, 2.0],
            [[0.5, 0.4]],
            "probs rows must sum to 1 .* row 0 sums to 0.9: divide by the sums, or add open bins",
        ),
        ([0.0, 1.0, 2.0], [[3.0, 7.0]], r"probs must lie in \[0, 1\]"),
        ([0.0, 1.0, 2.0], [[np.nan, 0.5]], "probs has NaN"),
        ([0.0, 1.0, 2.0], [0.5, 0.5], r"probs must be \(n, m\), a column per bin; got shape \(2,\)"),
    ],
)
def test_parameters_are_checked(edges, probs, message):
    with pytest.raises(InputError, match=message):
        Histogram(edges, probs)


@pytest.mark.parametrize(
    ("grid", "cdf", "message"),
    [
        ([0, 1, 2], [[0.1, 0.5, 0.4]], "cdf must not fall; in row 0 0.4 comes after 0.5"),
        ([0, 1], [[0.1, 0.5, 0.9]], r"grid must be \(3,\) or \(n, 3\); got shape \(2,\)"),
        ([0, 1, 2], [0.1, 0.5, 0.9], r"cdf must be \(n, m\), a column a value of the grid; got shape \(3,\)"),
        ([0, 1, 2], [[10, 50, 90]], r"cdf must lie in \[0, 1\]"),
    ],
)
def test_tables_are_checked(grid, cdf, message):
    with pytest.raises(InputError, match=message):
        Histogram.from_cdf(grid, cdf)


def test_rows_words_and_travel(rng):
    batch = Histogram(np.sort(rng.normal(size=(1500, 3)), axis=1), rng.dirichlet([1, 1], 1500))
    part = batch[np.array([3, 1])]
    assert np.array_equal(part.edges, batch.edges[[3, 1]])
    assert repr(batch) == "<Histogram: 1,500 predictions of 2 bins>"
    again = pickle.loads(pickle.dumps(batch))
    assert np.array_equal(again.cdf(np.zeros(1500)), batch.cdf(np.zeros(1500)))


@pytest.mark.parametrize("edges", [[0.0, 1.0, 2.0, INF], [[0.0, 1.0, 2.0, INF], [0.0, 1.5, 2.0, INF]]])
def test_every_library_gives_the_same_numbers(xp, edges, rng):
    probs, y, w = rng.dirichlet([1, 1, 1], 2), rng.normal(size=2), np.array([0.7, 2.0])
    ours, other = Histogram(edges, probs), Histogram(xp.asarray(edges), xp.asarray(probs))
    for found, exact in ((other.coords, ours.coords), (other.cf(w)[1], ours.cf(w)[1])):
        assert isinstance(found, type(other.probs))
        assert np.asarray(found) == pytest.approx(exact, rel=1e-12)
    assert other.crps(xp.asarray(y)) == pytest.approx(ours.crps(y), rel=1e-13)
    error = SKCE(Exponential(1.0), Gaussian(1.0))
    assert float(error(xp.asarray(y), other).value) == pytest.approx(error(y, ours).value, rel=1e-10)


def test_gradients_flow_through_the_probabilities(rng):
    torch = pytest.importorskip("torch")
    logits, y, edges = rng.normal(size=(4, 3)), rng.uniform(0, 2, 4), [0.0, 0.7, 2.0, INF]
    error, parameter = SKCE(Exponential(1.0), Gaussian(1.0)), torch.tensor(logits, requires_grad=True)
    error(torch.tensor(y), Histogram(edges, torch.softmax(parameter, dim=1))).value.backward()
    step = np.zeros((4, 3))
    step[2, 1] = 1e-6

    def value(z):
        return error(y, Histogram(edges, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))).value

    slope = (value(logits + step) - value(logits - step)) / 2e-6
    assert float(parameter.grad[2, 1]) == pytest.approx(slope, rel=1e-5)


def test_tests_work_out_of_the_box(rng):
    batch = Histogram([-INF, -1.0, 0.0, 1.0, INF], rng.dirichlet(np.ones(4), 60))
    honest = batch.sample(rng, 1)[0]
    assert SKCE()(honest, batch).route == "spectral; plain"
    assert ExactTest(SKCE(), n_resamples=99)(honest, batch).pvalue > 0.05
    assert ExactTest(SKCE(), n_resamples=99)(honest + 2, batch).pvalue == 0.01
    assert np.isfinite(LogLoss()(honest, batch).value)
