import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import Laplace
from calibrant.kernels import Energy, Exponential, Gaussian, expectation

LOC, SCALE = np.array([0.3, -2.0, 1e3]), np.array([1.0, 0.01, 40.0])
SCIPY = stats.laplace(LOC, SCALE)


@pytest.fixture
def batch():
    return Laplace(LOC, SCALE)


def test_density_and_distribution_are_those_of_scipy(batch):
    y = LOC + SCALE * np.array([[-300.0], [-1.3], [0.0], [0.4], [300.0]])
    assert batch.log_prob(y) == pytest.approx(SCIPY.logpdf(y), rel=1e-12)
    assert batch.cdf(y) == pytest.approx(SCIPY.cdf(y), rel=1e-10, abs=0)


def test_quantiles_are_those_of_scipy(batch):
    u = np.array([1e-300, 1e-12, 0.1, 0.5, 0.99])
    assert batch.quantile(u) == pytest.approx(SCIPY.ppf(u[:, None]).T, rel=1e-12)
    assert batch.quantile(np.array([0.0, 1.0])).tolist() == [[-np.inf, np.inf]] * 3


def test_characteristic_function_is_an_integral():
    w = np.array([0.0, 0.7, 3.0])

    def wave(f, v):
        return quad(lambda y: f(v * y) * stats.laplace.pdf(y, 0.4, 0.9), -33, 34, points=[0.4], epsabs=1e-13)[0]

    for f, part in zip((np.cos, np.sin), Laplace([0.4], 0.9).cf(w), strict=True):
        assert part[0] == pytest.approx([wave(f, v) for v in w], abs=1e-12)


def test_draws_follow_the_distribution(batch, rng):
    draws = batch.sample(rng, 20_000)
    for column in batch.cdf(draws).T:  # the statistic exceeds 2.7 / sqrt(n) once in two million
        assert stats.kstest(column, "uniform").statistic < 2.7 / np.sqrt(20_000)
    assert np.all(np.abs(np.abs((draws - LOC) / SCALE).mean(axis=0) - 1) < 5 / np.sqrt(20_000))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_tempering_is_a_power_of_the_density(temperature):
    plain, tempered = Laplace([0.4], 0.9), Laplace([0.4], 0.9).temper(temperature)
    total = quad(lambda y: np.exp(plain.log_prob(np.array([y]))[0] / temperature), -90, 90, points=[0.4], limit=200)[0]
    y = np.array([[-1.0], [0.2], [3.0]])
    assert tempered.log_prob(y) == pytest.approx(plain.log_prob(y) / temperature - np.log(total), rel=1e-9)


def test_coordinates_have_the_wasserstein_distance():
    batch = Laplace([0.3, -1.0], [0.5, 2.0])
    squared = quad(lambda u: np.diff(batch.quantile(np.array([u]))[:, 0])[0] ** 2, 0, 1, points=[0.5], limit=400)[0]
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) ** 2 == pytest.approx(squared, rel=1e-7)


def by_frequencies(kernel, distance, b, c):
    """``integral lhat(w) cf_P(w) conj(cf_Q(w)) dw``: a second route to the mean of the kernel."""
    unit = kernel.unit
    if isinstance(kernel, Gaussian):
        density, end = (lambda w: unit / np.sqrt(2 * np.pi) * np.exp(-0.5 * (unit * w) ** 2)), 13 / unit
    else:
        density, end = (lambda w: unit / np.pi / (1 + (unit * w) ** 2)), np.inf

    def integrand(w):
        return 2 * density(w) / (1 + (b * w) ** 2) / (1 + (c * w) ** 2)

    if distance == 0:
        return quad(integrand, 0, end, epsabs=1e-13)[0]
    return quad(integrand, 0, end, weight="cos", wvar=distance, epsabs=1e-12, limit=400, limlst=200)[0]


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
@pytest.mark.parametrize(
    ("distance", "b", "c"),
    [
        (0.7, 1.2, 0.4),
        (0.7, 1.2, 1.2),
        (0.7, 1.2, 1.2 * (1 + 1e-9)),
        (0.7, 0.8, 0.8),  # equal to the length scale
        (0.7, 0.8 * (1 + 1e-9), 0.8),
        (0.7, 0.8, 0.3),
        (0.0, 1.0, 1.0),
        (0.0, 1e-3, 1e-3),
        (0.7, 1e-8, 0.5),
        (0.7, 0.0, 0.5),  # a point
        (0.7, 0.0, 0.8),
        (30.0, 0.5, 0.3),
        (0.7, 50.0, 0.3),
    ],
)
def test_closed_forms_are_integrals(kernel, distance, b, c):
    p, q = Laplace._trusted(np.array([distance]), np.array([b])), Laplace._trusted(np.zeros(1), np.array([c]))
    found = expectation(kernel, p, q)[0, 0]
    assert found == pytest.approx(by_frequencies(kernel, distance, b, c), rel=1e-9, abs=1e-11)
    assert found == expectation(kernel, q, p)[0, 0]


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
def test_without_spread_it_is_the_kernel(kernel):
    points = Laplace([0.0, 1.0], 1.0).point(np.array([0.3, -2.0]))
    columns = points.loc[:, None]
    assert expectation(kernel, points, points) == pytest.approx(kernel(columns, columns), rel=1e-14)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
def test_far_predictions_have_nothing_in_common(kernel):
    p, q = Laplace([0.0, 0.0], [1.0, 1e-8]), Laplace([1e6, 1e100], [2.0, 1e-8])
    assert np.all(expectation(kernel, p, q) == 0)


def test_a_table_of_both_orders(rng):
    """The value of a pair does not depend on what else is in the batch."""
    p, q = Laplace.example(rng, 3), Laplace.example(rng, 4)
    table = expectation(Exponential(0.8), p, q)
    assert table.shape == (3, 4)
    assert table[2, 1] == expectation(Exponential(0.8), p[2:], q[1:2])[0, 0]
    assert np.array_equal(table.T, expectation(Exponential(0.8), q, p))


def test_other_kernels_have_no_closed_form(batch):
    for kernel in (Energy(), Exponential(1.0, power=1.5)):
        assert expectation(kernel, batch, batch) is NotImplemented


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
def test_single_precision_stays_and_is_close(kernel, rng):
    loc, scale = (x.astype(np.float32) for x in (rng.normal(size=6), rng.uniform(0.1, 2, 6)))
    single, double = Laplace(loc, scale), Laplace(loc.astype(float), scale.astype(float))
    found = expectation(kernel, single, single)
    assert found.dtype == np.float32
    assert found == pytest.approx(expectation(kernel, double, double), rel=2e-6)


def test_every_library_gives_the_same_numbers(xp, rng):
    loc, scale, y = rng.normal(size=4), np.array([0.5, 1e-8, 0.8, 30.0]), rng.normal(size=4)
    ours, other = Laplace(loc, scale), Laplace(xp.asarray(loc), xp.asarray(scale))
    for kernel in (Gaussian(0.8), Exponential(0.8)):
        for p, q in ((ours, other), (ours.point(y), other.point(xp.asarray(y)))):
            assert np.asarray(expectation(kernel, q, other)) == pytest.approx(expectation(kernel, p, ours), rel=2e-12)
    w = np.array([0.3, 2.0])
    assert np.asarray(other.coords) == pytest.approx(ours.coords, rel=1e-15)
    assert np.asarray(other.cf(xp.asarray(w))[1]) == pytest.approx(ours.cf(w)[1], rel=1e-13)


def test_ranked_score_of_scoringrules():
    """Values of crps_laplace, scoringrules 0.10.0."""
    batch = Laplace([0.1, 0.4, -0.2], [0.5, 1.5, 2.0])
    theirs = [0.16016002301782, 0.991230680298118, 1.718480521291783]
    assert batch.crps(np.array([0.3, -1.2, 2.5])) == pytest.approx(theirs, rel=1e-13)


def test_moments_are_those_of_scipy(batch):
    assert batch.mean == pytest.approx(SCIPY.mean())
    assert batch.std == pytest.approx(SCIPY.std())
