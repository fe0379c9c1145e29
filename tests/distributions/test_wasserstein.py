import itertools
import pickle

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import linprog

from calibrant import SKCE, Laplace, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_kernel
from calibrant.distributions import check_positive_definite
from calibrant.kernels import BuresWasserstein, Exponential, Gaussian, MixtureWasserstein
from calibrant.residuals.embedding import mean_embedding

TURNED = MultivariateNormal(
    np.zeros((4, 2)),
    covariance=[
        [[1.0, 0.0], [0.0, 0.01]],
        [[0.505, 0.495], [0.495, 0.505]],
        [[0.01, 0.0], [0.0, 1.0]],
        [[0.505, -0.495], [-0.495, 0.505]],
    ],
)
"""A narrow normal in four directions: the Bures distance between them is not Hilbertian."""

H = np.sqrt(0.5)
PAIRS = Mixture(
    [
        Normal([1.0, H, 0.0, -H], [2.0, 2 + H, 3.0, 2 + H]),
        Normal([-1.0, -H, 0.0, H], [2.0, 2 - H, 1.0, 2 - H]),
    ]
)
"""Two components opposite each other on a circle, in four directions: transport between them is not Hilbertian."""


def embedded(metric, predictions):
    points = metric.embed(predictions)
    return metric(points, points)


@pytest.mark.parametrize(
    ("metric", "predictions", "least"),
    [(BuresWasserstein(2), TURNED, -0.0638), (MixtureWasserstein(2), PAIRS, -0.1243)],
    ids=["bures", "mixture"],
)
class TestCounterExamples:
    def test_the_smallest_eigenvalue_is_negative(self, metric, predictions, least):
        with pytest.warns(
            UserWarning, match=f"not positive definite on these predictions: smallest eigenvalue {least}"
        ):
            found = check_positive_definite(Gaussian(1.0, metric), predictions)
        assert found == pytest.approx(least, abs=5e-5)
        assert np.linalg.eigvalsh(np.exp(-(embedded(metric, predictions) ** 2) / 2))[0] == pytest.approx(
            found, abs=1e-12
        )

    def test_the_check_of_kernels_finds_it(self, metric, predictions, least):
        with pytest.raises(AssertionError, match="is not positive semi-definite: eigenvalue -"):
            check_kernel(Gaussian(1.0, metric), metric.embed(predictions))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Exponential(1.0), Exponential(0.5, power=1.9)], ids=repr)
def test_our_coordinates_stay_positive_definite_there(kernel):
    assert check_positive_definite(kernel, TURNED) > 0
    check_kernel(kernel, TURNED.coords)
    for on_targets in (Gaussian(0.5), Gaussian(3.0)):
        check_kernel(kernel, mean_embedding(on_targets, PAIRS))


def test_bures_is_the_formula_of_matrix_roots(rng):
    batch = MultivariateNormal.example(rng, 4)
    exact = np.empty((4, 4))
    for i, j in np.ndindex(4, 4):
        root = sqrtm(batch.covariance[i])
        overlap = sqrtm(root @ batch.covariance[j] @ root).real
        exact[i, j] = ((batch.loc[i] - batch.loc[j]) ** 2).sum() + np.trace(batch.covariance[i] + batch.covariance[j] - 2 * overlap)  # fmt: skip
    assert embedded(BuresWasserstein(3), batch) ** 2 == pytest.approx(exact, abs=1e-11)


def test_bures_is_the_distance_of_coordinates_where_covariances_commute(rng):
    batch = MultivariateNormal(rng.normal(size=(5, 3)), rng.uniform(0.1, 2, (5, 3)))
    exact = np.linalg.norm(batch.coords[:, None] - batch.coords[None, :], axis=2)
    # the root of a difference that cancels keeps half of the digits
    assert embedded(BuresWasserstein(3), batch) == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("family", [Normal, Laplace])
def test_transport_between_components_is_the_best_pairing(family, rng):
    batch = Mixture([family.example(rng, 3) for _ in range(4)])
    coords = np.stack([c.coords for c in batch.components], axis=1)
    exact = np.empty((3, 3))
    for i, j in np.ndindex(3, 3):
        pairings = (coords[j][list(order)] for order in itertools.permutations(range(4)))
        exact[i, j] = min(((coords[i] - other) ** 2).sum() / 4 for other in pairings)
    assert embedded(MixtureWasserstein(4), batch) ** 2 == pytest.approx(exact, abs=1e-13)


def least_cost(cost, supply, demand):
    """By linear programming."""
    k, size = cost.shape
    rows = np.kron(np.eye(k), np.ones(size))
    columns = np.kron(np.ones(k), np.eye(size))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(cost.ravel(), A_eq=np.r_[rows, columns], b_eq=np.r_[supply, demand], options=tight)
    return found.fun


@pytest.mark.parametrize("power", [1, 1.5, 2, 3])
@pytest.mark.parametrize("family", [Normal, Laplace])
def test_weights_and_unequal_numbers_of_components_against_linear_programming(family, power, rng):
    """Also weights of zero, and equal ones, where plans are not unique."""
    weights = [rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(5) / 2, 4)]
    weights[0][0], weights[1][0] = [0.5, 0.5, 0.0], 0.2
    first, second = (Mixture([family.example(rng, len(w)) for _ in w[0]], w) for w in weights)
    metric = MixtureWasserstein(6, power)
    found = metric(metric.embed(first), metric.embed(second))
    a, b = (np.stack([c.coords for c in batch.components], axis=1) for batch in (first, second))
    for i, j in np.ndindex(3, 4):
        cost = np.linalg.norm(a[i][:, None] - b[j][None, :], axis=2) ** power
        exact = least_cost(cost, weights[0][i], weights[1][j]) ** (1 / power)
        assert found[i, j] == pytest.approx(exact, rel=1e-7)
    assert embedded(metric, first).diagonal() == pytest.approx(0, abs=1e-7)


def test_gradients_of_weights_are_differences_of_prices(rng):
    torch = pytest.importorskip("torch")
    parts = [Normal(torch.tensor(rng.normal(size=4)), torch.ones(4).double()) for _ in range(3)]
    metric = MixtureWasserstein(3, power=1.5)

    def distance(weights):
        points = metric.embed(Mixture(parts, weights))
        return metric(points[:2], points[2:]).sum()

    weights = torch.tensor(rng.dirichlet(np.ones(3), 4), requires_grad=True)
    distance(weights).backward()
    step = torch.zeros(4, 3).double()
    step[1, 0], step[1, 2] = 1e-6, -1e-6
    slope = (distance(weights.detach() + step) - distance(weights.detach() - step)) / 2e-6
    assert float(slope) == pytest.approx(float(weights.grad[1, 0] - weights.grad[1, 2]), rel=1e-5)


def test_one_component_is_the_component(rng):
    normal = Normal.example(rng, 5)
    exact = np.linalg.norm(normal.coords[:, None] - normal.coords[None, :], axis=2)
    assert embedded(MixtureWasserstein(1), Mixture([normal])) == pytest.approx(exact, abs=1e-14)
    assert embedded(MixtureWasserstein(3, power=1.5), normal) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize(
    ("components", "power", "message"), [(0, 2, "components must be"), (2, 0.5, "power must be a num")]
)
def test_settings_of_transport(components, power, message):
    with pytest.raises(InputError, match=message):
        MixtureWasserstein(components, power)


def test_good_predictions_do_not_warn(rng):
    normal = MultivariateNormal(rng.normal(size=(8, 2)), rng.uniform(0.1, 2, (8, 2)))
    assert check_positive_definite(Gaussian(1.0, BuresWasserstein(2)), normal) > 0
    assert check_positive_definite(Exponential(), Normal.example(rng, 8)) > 0  # the median distance is filled in


def test_other_libraries_are_embedded_on_the_host(xp):
    batch = MultivariateNormal(xp.asarray(TURNED.loc), covariance=xp.asarray(TURNED.covariance))
    assert np.array_equal(BuresWasserstein(2).embed(batch), BuresWasserstein(2).embed(TURNED))


@pytest.mark.parametrize(
    ("metric", "predictions", "message"),
    [
        (
            BuresWasserstein(3),
            TURNED,
            r"BuresWasserstein\(3\) takes MultivariateNormal predictions; got <Multi.* in 2 dimensions>",
        ),
        (
            BuresWasserstein(2),
            PAIRS,
            r"BuresWasserstein\(2\) takes MultivariateNormal predictions; got <Mixture",
        ),
        (
            MixtureWasserstein(1),
            PAIRS,
            r"MixtureWasserstein\(1\) takes mixtures of at most 1 component that have coordinates; got <Mixture: 4 predictions of 2 N",
        ),
        (
            MixtureWasserstein(2),
            Mixture([PAIRS.components[0], Laplace(np.zeros(4), 1.0)]),
            "takes components of one family; got <Mixture: 4 predictions of Normal and Laplace",
        ),
        (
            MixtureWasserstein(2),
            Mixture([PAIRS, PAIRS]),
            "that have coordinates; got <Mixture: 4 predictions of 2 Mixture",
        ),
    ],
)
def test_metrics_refuse_other_families(metric, predictions, message):
    with pytest.raises(InputError, match=message):
        metric.embed(predictions)


def test_predictions_without_coordinates_need_a_metric():
    with pytest.raises(InputError, match="<Mixture: 4 predictions .* has no coordinates: give the kernel a metric"):
        check_positive_definite(Gaussian(1.0), PAIRS)


def test_metrics_are_values():
    for metric in (BuresWasserstein(2), MixtureWasserstein(2)):
        assert pickle.loads(pickle.dumps(metric)) == metric
        assert hash(Gaussian(1.0, metric)) == hash(Gaussian(1.0, metric))


@pytest.mark.parametrize("unit", [1.0, 10.0, 100.0])
def test_an_open_length_scale_is_the_median_of_that_very_metric(rng, unit):
    batch = MultivariateNormal.example(rng, 60)
    scaled = MultivariateNormal(unit * batch.loc, covariance=unit**2 * batch.covariance)
    metric = BuresWasserstein(3)
    median = np.median(embedded(metric, batch)[np.triu_indices(60, 1)])
    assert Exponential(metric=metric).resolve(metric.embed(scaled)).unit == pytest.approx(unit * median, rel=1e-9)


def test_and_of_mixtures_also_of_many_rows(rng):
    many = Mixture([Normal(rng.normal(size=700), 1.0) for _ in range(2)])
    metric = MixtureWasserstein(2)
    points = metric.embed(many)
    median = np.median(metric(points[:300], points[300:]))
    assert Gaussian(metric=metric).resolve(points).unit == pytest.approx(median, rel=0.1)  # of 500 rows
    few = points[:50]
    exact = np.median(metric(few, few)[np.triu_indices(50, 1)])
    assert Gaussian(metric=metric).resolve(few).unit == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("lengthscale", [None, 1.0])
def test_tensors_have_the_numbers_of_arrays_and_gradients(rng, lengthscale):
    torch = pytest.importorskip("torch")
    batch, y = MultivariateNormal.example(rng, 12), rng.normal(size=(12, 3))
    parts, z = [Normal(rng.normal(size=12), 1.0) for _ in range(2)], rng.normal(size=12)
    slopes = [torch.tensor(batch.covariance, requires_grad=True), torch.tensor(parts[0].loc, requires_grad=True)]
    other = Normal(torch.tensor(parts[1].loc), torch.tensor(parts[1].scale))
    problems = [
        (BuresWasserstein(3), y, batch, MultivariateNormal(torch.tensor(batch.loc), covariance=slopes[0])),
        (MixtureWasserstein(2), z, Mixture(parts), Mixture([Normal(slopes[1], torch.ones(12).double()), other])),
    ]
    for metric, targets, here, there in problems:
        estimator = SKCE(Exponential(lengthscale, metric), Gaussian(1.0))
        found = estimator(torch.tensor(targets), there).value
        assert float(found.detach()) == pytest.approx(estimator(targets, here).value, rel=1e-9)
        found.backward()
    assert all(torch.isfinite(x.grad).all() and x.grad.abs().sum() > 0 for x in slopes)


def test_mixtures_cannot_be_traced():
    jax = pytest.importorskip("jax")

    def error(loc):
        return MixtureWasserstein(1).embed(Mixture([Normal(loc, jax.numpy.ones(2))])).sum()

    with pytest.raises(InputError, match="MixtureWasserstein cannot be traced by JAX: give arrays of numbers"):
        jax.grad(error)(jax.numpy.zeros(2))
