import itertools
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import sqrtm

from calibrant import SKCE, ExactTest, LogLoss, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.distributions.multivariate import coordinate, matrix_root
from calibrant.estimators import EnergyScore
from calibrant.kernels import Exponential, Gaussian, expectation

LOC = np.array([[0.3, -1.0], [2.0, 0.5]])
SCALE = np.array([[0.5, 2.0], [1e-3, 40.0]])
COVARIANCE = np.array([[[1.0, 0.9], [0.9, 2.0]], [[0.5, -0.2], [-0.2, 0.1]]])

BATCHES = {
    "isotropic": MultivariateNormal(LOC, [0.7, 1.3]),
    "diagonal": MultivariateNormal(LOC, SCALE),
    "full": MultivariateNormal(LOC, covariance=COVARIANCE),
}


@pytest.fixture(params=BATCHES)
def batch(request):
    return BATCHES[request.param]


def test_density_is_that_of_scipy(batch):
    y = LOC + np.array([[[0.0, 0.0]], [[1.0, -0.3]], [[-4.0, 9.0]]])
    exact = [
        [stats.multivariate_normal(m, s).logpdf(z) for m, s, z in zip(LOC, batch.full, row, strict=True)] for row in y
    ]
    assert batch.log_prob(y) == pytest.approx(np.array(exact), rel=1e-10)


def test_draws_have_the_moments(batch, rng):
    draws = batch.sample(rng, 40_000)
    spread = np.sqrt(np.diagonal(batch.full, axis1=1, axis2=2))
    z = (draws - LOC) / spread
    assert np.all(np.abs(z.mean(axis=0)) < 5 / 200)
    correlation = np.einsum("sni,snj->nij", z, z) / len(z)
    exact = batch.full / spread[:, :, None] / spread[:, None, :]
    assert np.all(np.abs(correlation - exact) < 5 * np.sqrt(1 + exact**2) / 200)  # Var z z' = 1 + r^2


def test_characteristic_function_is_that_of_projections(batch):
    w = np.array([[0.3, -0.2], [1.0, 2.0], [0.0, 0.0]])
    real, imaginary = batch.cf(w)
    for j, v in enumerate(w[:2]):
        line = Normal(LOC @ v, np.sqrt(np.einsum("i,nij,j->n", v, batch.full, v)))
        assert real[:, j] == pytest.approx(line.cf(np.ones(1))[0][:, 0], rel=1e-12)
        assert imaginary[:, j] == pytest.approx(line.cf(np.ones(1))[1][:, 0], rel=1e-12)
    assert real[:, 2].tolist() == [1.0, 1.0]
    assert imaginary[:, 2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_tempering_is_a_power_of_the_density(batch, temperature):
    """``integral p^(1/T)`` is ``T^(d/2) (2 pi)^(d/2 (1 - 1/T)) |S|^(1/2 (1 - 1/T))``."""
    y = LOC + np.array([[[0.0, 0.0]], [[1.0, -0.3]]])
    volume = np.linalg.slogdet(2 * np.pi * batch.full)[1] / 2
    total = np.log(temperature) + (1 - 1 / temperature) * volume
    assert batch.temper(temperature).log_prob(y) == pytest.approx(batch.log_prob(y) / temperature - total, rel=1e-10)


def bures(batch):
    """W2 of the two predictions, by matrix square roots."""
    first, second = batch.full
    root = sqrtm(first)
    overlap = np.trace(sqrtm(root @ second @ root)).real
    return np.sqrt(((LOC[0] - LOC[1]) ** 2).sum() + np.trace(first + second) - 2 * overlap)


def test_coordinates_have_the_wasserstein_distance_where_covariances_commute(rng):
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    same_axes = np.stack([turn @ np.diag(s) @ turn.T for s in ([4.0, 0.01], [0.3, 1.0])])
    for batch in (BATCHES["isotropic"], BATCHES["diagonal"], MultivariateNormal(LOC, covariance=same_axes)):
        assert np.linalg.norm(np.diff(batch.coords, axis=0)) == pytest.approx(bures(batch), rel=1e-7)


def test_coordinates_of_full_covariances_are_matrix_roots():
    coords = BATCHES["full"].coords
    assert coords.shape == (2, 6)
    assert coords[:, 2:].reshape(2, 2, 2) == pytest.approx(np.stack([sqrtm(s) for s in COVARIANCE]), rel=1e-10)
    # further apart than W2, which is the least over all roots
    assert np.linalg.norm(np.diff(coords, axis=0)) > bures(BATCHES["full"])


def by_nodes(kernel, p, q):
    """Gauss-Hermite in the coordinates of the difference: another route than determinants."""
    x, weights = np.polynomial.hermite_e.hermegauss(80)
    grid = np.array(list(itertools.product(x, x)))
    mass = np.prod(list(itertools.product(weights, weights)), axis=1) / (2 * np.pi)
    out = np.empty((len(p), len(q)))
    for i, j in np.ndindex(*out.shape):
        values, vectors = np.linalg.eigh(p.full[i] + q.full[j])
        points = p.loc[i] - q.loc[j] + grid @ (vectors * np.sqrt(values)).T
        out[i, j] = mass @ kernel(points, np.zeros((1, 2)))[:, 0]
    return out


def test_the_closed_form_is_an_integral():
    p, q = BATCHES["full"], MultivariateNormal(LOC[::-1] / 2, [[0.5, 0.8], [1e-8, 0.3]])
    both = MultivariateNormal(q.loc, covariance=q.full)
    exact = by_nodes(Gaussian(1.3), p, q)
    assert expectation(Gaussian(1.3), p, both) == pytest.approx(exact, rel=1e-9)
    assert expectation(Gaussian(1.3), p, q) == pytest.approx(exact, rel=1e-9)  # either way to give a covariance
    assert expectation(Gaussian(1.3), q, p) == pytest.approx(exact.T, rel=1e-9)
    assert expectation(Gaussian(1.3), q, q) == pytest.approx(by_nodes(Gaussian(1.3), q, q), rel=1e-9)


def test_coordinates_that_are_independent_multiply():
    kernel, batch = Gaussian(0.8), BATCHES["diagonal"]
    single = [expectation(kernel, *[Normal(LOC[:, c], SCALE[:, c])] * 2) for c in range(2)]
    assert expectation(kernel, batch, batch) == pytest.approx(single[0] * single[1], rel=1e-13)
    full = MultivariateNormal(LOC, covariance=batch.full)
    assert expectation(kernel, full, full) == pytest.approx(single[0] * single[1], rel=1e-10)


def test_one_dimension_is_the_normal_family(rng):
    normal = Normal.example(rng, 4)
    for one in (
        MultivariateNormal(normal.loc[:, None], normal.scale),
        MultivariateNormal(normal.loc[:, None], covariance=normal.scale[:, None, None] ** 2),
    ):
        found, exact = expectation(Gaussian(0.8), one, one), expectation(Gaussian(0.8), normal, normal)
        assert found == pytest.approx(exact, rel=1e-13)
        assert one.log_prob(np.ones((4, 1))) == pytest.approx(normal.log_prob(np.ones(4)), rel=1e-13)
        assert one.coords == pytest.approx(normal.coords, rel=1e-13)


def test_points_and_far_predictions(batch):
    y = np.array([[0.1, 0.2], [3.0, -1.0]])
    points = batch.point(y)
    assert expectation(Gaussian(0.8), points, points) == pytest.approx(Gaussian(0.8)(y, y), rel=1e-13)
    narrow = batch.temper(1e-16)  # a hundred millionth of the spread
    assert expectation(Gaussian(0.8), narrow, points) == pytest.approx(Gaussian(0.8)(LOC, y), rel=1e-6)
    assert np.all(expectation(Gaussian(0.8), batch, batch.point(y + 1e6)) == 0)


def test_every_library_gives_the_same_numbers(xp):
    for ours, other in (
        (BATCHES["diagonal"], MultivariateNormal(xp.asarray(LOC), xp.asarray(SCALE))),
        (BATCHES["full"], MultivariateNormal(xp.asarray(LOC), covariance=xp.asarray(COVARIANCE))),
    ):
        found = expectation(Gaussian(0.8), other, other.point(xp.asarray(2 * LOC)))
        assert np.asarray(found) == pytest.approx(expectation(Gaussian(0.8), ours, ours.point(2 * LOC)), rel=1e-12)
        assert np.asarray(other.coords) == pytest.approx(ours.coords, rel=1e-12)
        w = np.array([[0.3, 0.1]])
        assert np.asarray(other.cf(xp.asarray(w))[0]) == pytest.approx(ours.cf(w)[0], rel=1e-12)
        assert isinstance(other.as_targets(LOC.tolist()), type(other.loc))


def test_single_precision_stays_and_is_close(batch):
    numbers = {k: v.astype(np.float32) for k, v in vars(batch).items() if v is not None}
    single, double = (
        MultivariateNormal(**numbers),
        MultivariateNormal(**{k: v.astype(float) for k, v in numbers.items()}),
    )
    found = expectation(Gaussian(0.8), single, single)
    assert found.dtype == single.coords.dtype == single.temper(2.0).coords.dtype == np.float32
    assert found == pytest.approx(expectation(Gaussian(0.8), double, double), rel=1e-5)
    assert single.log_prob(LOC) == pytest.approx(double.log_prob(LOC), rel=1e-14)  # on the host, in double precision


def test_gradients_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def total(factor, loc=LOC):
        batch = MultivariateNormal(loc, covariance=factor * COVARIANCE)
        return expectation(Gaussian(0.8), batch, batch.point(np.zeros((2, 2)))).sum()

    slope = jax.grad(total)(1.0, jax.numpy.asarray(LOC))
    assert float(slope) == pytest.approx((total(1 + 1e-6) - total(1 - 1e-6)) / 2e-6, rel=1e-6)


def test_one_scale_a_row_serves_all_coordinates():
    for scale in ([0.5, 2.0], [[0.5], [2.0]], [[0.5, 0.5], [2.0, 2.0]]):
        assert MultivariateNormal(LOC, scale).scale.tolist() == [[0.5, 0.5], [2.0, 2.0]]
    assert MultivariateNormal(LOC, 3).scale.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_rows_words_and_travel(batch):
    assert np.array_equal(batch[np.array([1])].full[0], batch.full[1])
    assert np.array_equal(batch[1:].loc, LOC[1:])
    assert repr(batch) == "<MultivariateNormal: 2 predictions in 2 dimensions>"
    assert np.array_equal(pickle.loads(pickle.dumps(batch)).full, batch.full)


@pytest.mark.parametrize(
    ("loc", "options", "message"),
    [
        (LOC, {}, "give either scale or covariance"),
        (LOC, {"scale": 1.0, "covariance": COVARIANCE}, "give either scale or covariance"),
        (LOC[:, 0], {"scale": 1.0}, r"loc must be \(n, d\); got shape \(2,\)"),
        (np.zeros((0, 2)), {"scale": 1.0}, r"loc is empty: got shape \(0, 2\)"),
        (np.zeros((2, 0)), {"scale": 1.0}, r"loc is empty: got shape \(2, 0\)"),
        (LOC, {"scale": [[1.0, 1.0], [1.0, -1.0]]}, "scale must be positive; found -1 in row 1"),
        (LOC, {"scale": [1.0, np.nan]}, "scale has NaN or infinite values in 1 place, first in row 1"),
        (LOC, {"scale": np.ones(3)}, "scale has 3 rows and loc has 2"),
        (LOC, {"scale": np.ones((2, 3))}, r"scale must be one number per row, or like loc; got shape \(2, 3\)"),
        (LOC, {"covariance": COVARIANCE[0]}, r"covariance must be \(n, 2, 2\); got shape \(2, 2\)"),
        (LOC, {"covariance": COVARIANCE[:1]}, "covariance has 1 row and loc has 2"),
        (
            LOC,
            {"covariance": [np.zeros((2, 2)), [[1.0, 0.5], [0.1, 1.0]]]},
            "must be symmetric; the matrix of row 1 is not",
        ),
        (
            LOC,
            {"covariance": [np.eye(2), [[1.0, 2.0], [2.0, 1.0]]]},
            "covariance must not have negative eigenvalues; row 1 has -1",
        ),
        (
            LOC,
            {"covariance": [np.eye(2), [[0.0, 0.1], [0.1, 1.0]]]},
            "covariance must not have negative eigenvalues; row 1 has -0.0099",
        ),
        (LOC, {"covariance": np.full((2, 2, 2), np.nan)}, "covariance has NaN or infinite values"),
    ],
)
def test_parameters_are_checked(loc, options, message):
    with pytest.raises(InputError, match=message):
        MultivariateNormal(loc, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_rounding_leaves_of_a_singular_matrix_has_no_density(dtype):
    """Rank 4 in 5 dimensions: the least eigenvalue may come out on either side of zero."""
    for seed in range(20):
        factor = np.random.default_rng(seed).normal(size=(5, 4)).astype(dtype)
        batch = MultivariateNormal(np.zeros((1, 5), dtype=dtype), covariance=(factor @ factor.T)[None])
        if dtype == np.float64:
            with pytest.raises(InputError, match="prediction 0 has no spread along some direction, and so no density"):
                batch.log_prob(np.zeros((1, 5)))


@pytest.mark.parametrize("full", [False, True])
def test_predictions_without_spread_along_some_direction(full, rng):
    """Kernel errors, samples and expectations are the limits of those with little spread."""
    n, loc = 40, rng.normal(size=(40, 3))
    factor = rng.normal(size=(n, 3, 2))
    scale = rng.uniform(0.5, 2, (n, 3)) * [1.0, 1.0, 0.0]
    flat = {"covariance": factor @ np.swapaxes(factor, 1, 2)} if full else {"scale": scale}
    near = {"covariance": flat["covariance"] + 1e-12 * np.eye(3)} if full else {"scale": scale + 1e-7}
    batch, other = MultivariateNormal(loc, **flat), MultivariateNormal(loc, **near)
    y = batch.sample(rng, 1)[0]
    assert np.linalg.matrix_rank(np.cov(batch[:1].sample(rng, 100)[:, 0].T), tol=1e-8) == 2
    estimator = SKCE(Exponential(1.0), Gaussian(1.0))
    assert estimator(y, batch).value == pytest.approx(estimator(y, other).value, abs=1e-6)
    assert ExactTest(estimator, 39)(y, batch, rng=0).pvalue > 0.02
    assert EnergyScore()(y, batch).value == pytest.approx(EnergyScore()(y, other).value, rel=1e-4)
    with pytest.raises(
        InputError, match="prediction 0 has no spread along some direction, and so no density: for a log"
    ):
        LogLoss()(y, batch)
    assert np.isfinite(LogLoss()(y + 0.0, other).value)
    if not full:
        with pytest.raises(
            InputError, match="coordinate 2 is predicted without any spread in row 0, so there is no normal"
        ):
            coordinate(batch, 2)


def test_targets_and_temperatures_are_checked(batch):
    with pytest.raises(InputError, match=r"y_true must be \(n, 2\); got shape \(2,\)"):
        batch.as_targets([0.0, 1.0])
    with pytest.raises(InputError, match=r"y_true must be \(n, 2\); got shape \(2, 3\)"):
        batch.as_targets(np.zeros((2, 3)))
    with pytest.raises(InputError, match="temperature must be positive; got 0"):
        batch.temper(0)


def test_orders_of_vectors_do_not_exist(batch):
    assert batch.cdf(LOC) is NotImplemented
    assert batch.quantile(np.array([0.5])) is NotImplemented


def test_moments_of_each_coordinate(xp):
    for batch in BATCHES.values():
        parts = {
            name: xp.asarray(np.asarray(x))
            for name in ("scale", "covariance")
            if (x := getattr(batch, name)) is not None
        }
        found = MultivariateNormal(xp.asarray(LOC), **parts)
        assert np.asarray(found.mean) == pytest.approx(LOC)
        assert np.asarray(found.std) ** 2 == pytest.approx(np.diagonal(batch.full, axis1=1, axis2=2))


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [2.0, 2.0, 0.5], [3.0, 1.0, 1e-6]])
def test_the_matrix_root_has_a_gradient_where_eigenvalues_coincide(values):
    torch = pytest.importorskip("torch")
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    covariance = torch.tensor((turn * values @ turn.T)[None], requires_grad=True)

    def root(x):
        return matrix_root((x + x.transpose(1, 2)) / 2)

    assert (root(covariance) @ root(covariance) - covariance).abs().max() < 1e-12
    if min(values) > 1e-3:  # else steps of differences are too long
        assert torch.autograd.gradcheck(root, covariance)
    root(covariance).sum().backward()
    assert torch.isfinite(covariance.grad).all()


def test_gradients_of_equal_eigenvalues_are_those_of_differences():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    mu = rng.normal(size=(15, 3))
    y, estimator = rng.normal(mu), SKCE(Exponential(1.0), Gaussian(2.0))

    def error(log, xp):
        unit = xp.exp(log) * xp.eye(3, dtype=xp.float64)
        covariance = unit.expand(15, 3, 3) if xp is torch else np.broadcast_to(unit, (15, 3, 3))
        return estimator(xp.asarray(y), MultivariateNormal(xp.asarray(mu), covariance=covariance)).value

    log = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    error(log, torch).backward()
    difference = (error(0.3 + 1e-5, np) - error(0.3 - 1e-5, np)) / 2e-5
    assert float(log.grad) == pytest.approx(difference, rel=1e-6)


def test_and_in_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    slope = jax.grad(lambda s: matrix_root(jax.numpy.exp(s) * jax.numpy.eye(3)[None]).sum())(0.0)
    assert float(slope) == pytest.approx(1.5, rel=1e-12)  # three times half of exp(s / 2)
