import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import Normal
from calibrant.kernels import Energy, Exponential, Gaussian, expectation

LOC, SCALE = np.array([0.3, -2.0, 1e3]), np.array([1.0, 0.01, 40.0])
SCIPY = stats.norm(LOC, SCALE)


@pytest.fixture
def batch():
    return Normal(LOC, SCALE)


def test_density_and_distribution_are_those_of_scipy(batch):
    y = LOC + SCALE * np.array([[-30.0], [-1.3], [0.0], [0.4], [30.0]])
    assert batch.log_prob(y) == pytest.approx(SCIPY.logpdf(y), rel=1e-12)
    assert batch.cdf(y) == pytest.approx(SCIPY.cdf(y), rel=1e-10, abs=0)


def test_quantiles_are_those_of_scipy(batch):
    u = np.array([0.0, 1e-12, 0.1, 0.5, 0.99, 1.0])
    assert batch.quantile(u) == pytest.approx(SCIPY.ppf(u[:, None]).T, rel=1e-12)


def test_characteristic_function_is_an_integral():
    w = np.array([0.0, 0.7, 3.0])

    def wave(f, v):
        return quad(lambda y: f(v * y) * stats.norm.pdf(y, 0.4, 0.9), -9, 10, epsabs=1e-13)[0]

    for f, part in zip((np.cos, np.sin), Normal([0.4], 0.9).cf(w), strict=True):
        assert part[0] == pytest.approx([wave(f, v) for v in w], abs=1e-12)


def test_draws_follow_the_distribution(batch, rng):
    draws = batch.sample(rng, 20_000)
    for column in batch.cdf(draws).T:  # the statistic exceeds 2.7 / sqrt(n) once in two million
        assert stats.kstest(column, "uniform").statistic < 2.7 / np.sqrt(20_000)
    assert np.all(np.abs((((draws - LOC) / SCALE) ** 2).mean(axis=0) - 1) < 5 * np.sqrt(2 / 20_000))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_tempering_is_a_power_of_the_density(temperature):
    plain, tempered = Normal([0.4], 0.9), Normal([0.4], 0.9).temper(temperature)
    total = quad(lambda y: np.exp(plain.log_prob(np.array([y]))[0] / temperature), -25, 25, points=[0.4], limit=200)[0]
    y = np.array([[-1.0], [0.2], [3.0]])
    assert tempered.log_prob(y) == pytest.approx(plain.log_prob(y) / temperature - np.log(total), rel=1e-9)


def test_coordinates_have_the_wasserstein_distance():
    batch = Normal([0.3, -1.0], [0.5, 2.0])
    squared = quad(lambda u: np.diff(batch.quantile(np.array([u]))[:, 0])[0] ** 2, 0, 1, epsabs=1e-11, limit=400)[0]
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) ** 2 == pytest.approx(squared, rel=1e-7)


KERNELS = {
    Gaussian(0.8): lambda d: np.exp(-0.5 * (d / 0.8) ** 2),
    Exponential(0.8): lambda d: np.exp(-abs(d) / 0.8),
}

PARAMETERS = [
    (0.7, 1.2, 0.4),
    (0.7, 0.8, 0.8),  # equal scales, and equal to the length scale
    (0.0, 1.0, 1.0),
    (0.0, 1e-8, 1e-8),
    (0.0, 0.0, 1e-8),
    (0.7, 1e-8, 0.5),
    (0.7, 1e-8, 1e-8),
    (0.7, 0.0, 0.5),  # a point
    (0.7, 0.0, 1e-8),
    (0.7, 0.0, 0.0),
    (30.0, 0.5, 0.3),
    (0.7, 50.0, 0.3),
]


def average(f, mean, sd, kink=0.0):
    """``E f(D)`` for a normal D, in units of its own spread."""
    z = (kink - mean) / sd if sd else 0.0
    points = [min(max(z, -12.9), 12.9), 0.0]
    return quad(lambda t: f(mean + sd * t) * stats.norm.pdf(t), -13, 13, points=points, epsabs=0, epsrel=1e-12, limit=400)[0]  # fmt: skip


@pytest.mark.parametrize(("distance", "a", "b"), PARAMETERS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_closed_forms_are_integrals(kernel, distance, a, b):
    p, q = Normal._trusted(np.array([distance]), np.array([a])), Normal._trusted(np.zeros(1), np.array([b]))
    found = expectation(kernel, p, q)[0, 0]
    assert found == pytest.approx(average(KERNELS[kernel], distance, np.hypot(a, b)), rel=1e-10)


@pytest.mark.parametrize(("distance", "a", "b"), PARAMETERS)
def test_the_energy_kernel_is_an_integral(distance, a, b):
    p, q = Normal._trusted(np.array([distance]), np.array([a])), Normal._trusted(np.array([-0.2]), np.array([b]))
    parts = average(abs, distance, a), average(abs, -0.2, b), average(abs, distance + 0.2, np.hypot(a, b))
    found = expectation(Energy(), p, q)[0, 0]
    assert found == pytest.approx((parts[0] + parts[1] - parts[2]) / 2, rel=1e-10, abs=1e-11 * parts[2])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_far_predictions_have_nothing_in_common(kernel):
    p, q = Normal([0.0, 0.0], [1.0, 1e-8]), Normal([1e6, 1e100], [2.0, 1e-8])
    assert np.all(expectation(kernel, p, q) == 0)


def test_two_standard_normals():
    unit = Normal([0.0], 1.0)
    assert expectation(Gaussian(1.0), unit, unit)[0, 0] == pytest.approx(3**-0.5, rel=1e-15)
    assert expectation(Gaussian(1.0), unit, unit.point(np.zeros(1)))[0, 0] == pytest.approx(2**-0.5, rel=1e-15)


@pytest.mark.parametrize("kernel", [*KERNELS, Energy()], ids=repr)
def test_single_precision_stays_and_is_close(kernel, rng):
    loc, scale = (x.astype(np.float32) for x in (rng.normal(size=6), rng.uniform(0.1, 2, 6)))
    single, double = Normal(loc, scale), Normal(loc.astype(float), scale.astype(float))
    found = expectation(kernel, single, single)
    assert found.dtype == np.float32
    assert found == pytest.approx(expectation(kernel, double, double), rel=2e-6)


def test_every_library_gives_the_same_numbers(xp, rng):
    loc, scale, y = rng.normal(size=4), np.array([0.5, 1e-8, 2.0, 30.0]), rng.normal(size=4)
    ours, other = Normal(loc, scale), Normal(xp.asarray(loc), xp.asarray(scale))
    for kernel in (*KERNELS, Energy()):
        for p, q in ((ours, other), (ours.point(y), other.point(xp.asarray(y)))):
            assert np.asarray(expectation(kernel, q, other)) == pytest.approx(
                expectation(kernel, p, ours), rel=1e-12, abs=1e-13
            )
    w = np.array([0.3, 2.0])
    assert np.asarray(other.coords) == pytest.approx(ours.coords, rel=1e-15)
    assert np.asarray(other.cf(xp.asarray(w))[1]) == pytest.approx(ours.cf(w)[1], rel=1e-13)


@pytest.mark.parametrize("kernel", [*KERNELS, Energy()], ids=repr)
def test_gradients_are_finite_differences(kernel):
    torch = pytest.importorskip("torch")
    other = Normal([0.1, 2.0], [1.5, 0.8])
    points = other.point(np.array([0.1, -3.0]))

    def total(loc, scale):
        batch = Normal(loc, scale)
        return sum(expectation(kernel, batch, q).sum() for q in (other_in[type(loc)], points_in[type(loc)], batch))

    other_in = {np.ndarray: other, torch.Tensor: Normal(torch.tensor(other.loc), torch.tensor(other.scale))}
    points_in = {np.ndarray: points, torch.Tensor: other_in[torch.Tensor].point(torch.tensor(points.loc))}
    at = np.array([0.3, -1.0, 0.7, 1.1])
    x = torch.tensor(at, requires_grad=True)
    total(x[:2], x[2:]).backward()
    steps = 1e-6 * np.eye(4)
    slopes = [(total(*np.split(at + h, 2)) - total(*np.split(at - h, 2))) / 2e-6 for h in steps]
    assert x.grad.numpy() == pytest.approx(slopes, rel=1e-6)


def test_ranked_score_of_scoringrules():
    """Values of crps_normal, scoringrules 0.10.0; properscoring 0.1 has the same."""
    batch = Normal([0.1, 0.4, -0.2], [0.5, 1.5, 2.0])
    theirs = [0.148344045173575, 0.97350829205411, 1.735210988510195]
    assert batch.crps(np.array([0.3, -1.2, 2.5])) == pytest.approx(theirs, rel=1e-13)


def test_ranked_score_far_away_and_of_a_point(batch):
    far = LOC + 1e3 * SCALE
    assert batch.crps(far) == pytest.approx(1e3 * SCALE - SCALE / np.sqrt(np.pi), rel=1e-13)
    assert batch.point(LOC).crps(far) == pytest.approx(far - LOC, rel=1e-13)


def test_distance_of_two_rows(batch, rng):
    """``E|Y - Y'|`` of equal rows is ``2 scale / sqrt(pi)``; of others it is the mean over draws."""
    assert batch.distance(batch) == pytest.approx(2 * SCALE / np.sqrt(np.pi), rel=1e-13)
    other = Normal([0.0, -2.0, 0.0], [2.0, 1.0, 1.0])
    draws = np.abs(batch.sample(rng, 40_000) - other.sample(rng, 40_000))
    assert np.all(np.abs(draws.mean(axis=0) - batch.distance(other)) < 5 * draws.std(axis=0) / 200)


def test_moments_stay_in_their_library(xp):
    batch = Normal(xp.asarray(LOC), xp.asarray(SCALE))
    assert batch.mean is batch.loc
    assert batch.std is batch.scale
