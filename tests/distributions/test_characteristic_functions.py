import numpy as np
import pytest

from calibrant import (
    SKCE,
    Ensemble,
    ExactTest,
    Gamma,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    Quantiles,
    StudentT,
)
from calibrant.distributions import Censored, Histogram, Logistic, Truncated, Uniform
from calibrant.distributions.characteristic_functions import around, origin_of
from calibrant.estimators import UCME, RandomFeatureSKCE
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, Matern

N = 24
RNG = np.random.default_rng(0)


def on_a_grid(x, step=2.0**-16):
    """Numbers that can be moved by all offsets of these tests without rounding."""
    return np.round(x / step) * step


MU, SD = on_a_grid(RNG.normal(size=N)), on_a_grid(RNG.uniform(0.5, 1.5, N))
Y, MEMBERS = on_a_grid(RNG.normal(MU, 1.5)), on_a_grid(RNG.normal(MU[:, None], 1, (N, 30)))
VECTORS = on_a_grid(RNG.normal(size=(N, 10)))
Y_VECTORS = on_a_grid(RNG.normal(VECTORS, 1.5))
FACTORS = RNG.normal(size=(N, 3, 3))
FAN = np.sort(MEMBERS[:, :9], axis=1) + np.arange(9) * 2.0**-10
EDGES = np.concatenate([FAN[:, :1] - 1, FAN], axis=1)

FAMILIES = {
    "thirty members": lambda o: Ensemble(MEMBERS + o),
    "three members": lambda o: Ensemble(MEMBERS[:, :3] + o),
    "weighted members": lambda o: Ensemble(MEMBERS[:, :3] + o, [0.5, 0.25, 0.25]),
    "normal": lambda o: Normal(MU + o, SD),
    "laplace": lambda o: Laplace(MU + o, SD),
    "logistic": lambda o: Logistic(MU + o, SD),
    "student": lambda o: StudentT(4.0, MU + o, SD),
    "uniform": lambda o: Uniform(MU + o - 2, MU + o + 2),
    "mixture": lambda o: Mixture([Normal(MU + o, SD), Normal(MU + 1 + o, SD)]),
    "two families": lambda o: Mixture([Normal(MU + o, SD), Laplace(MU + 1 + o, SD)]),
    "quantiles": lambda o: Quantiles(FAN + o, np.arange(1, 10) / 10),
    "quantiles within ends": lambda o: Quantiles(FAN + o, np.arange(1, 10) / 10, tails=(-20.0 + o, 20.0 + o)),
    "histogram": lambda o: Histogram(EDGES + o, np.full((N, 9), 1 / 9)),
    "truncated": lambda o: Truncated(Normal(MU + o, SD), low=-30 + o),
    "censored": lambda o: Censored(Normal(MU + o, SD), low=-30 + o),
}
OF_VECTORS = {
    "ten dimensions": lambda o: MultivariateNormal(VECTORS + o, SD),
    "diagonal": lambda o: MultivariateNormal(VECTORS + o, SD[:, None] * np.linspace(0.5, 2, 10)),
    "full": lambda o: MultivariateNormal(
        VECTORS[:, :3] + o, covariance=FACTORS @ FACTORS.transpose(0, 2, 1) + 0.1 * np.eye(3)
    ),
    "members": lambda o: Ensemble(VECTORS[:, None, :3] + MEMBERS[:, :7, None] + o),
    "mixture": lambda o: Mixture([MultivariateNormal(VECTORS[:, :3] + i + o, SD) for i in range(2)]),
}


def problem(name, offset):
    return Y + offset, FAMILIES[name](offset)


def vectors(name, offset):
    predictions = OF_VECTORS[name](offset)
    return Y_VECTORS[:, : predictions.position.shape[1]] + offset, predictions


@pytest.mark.parametrize("offset", [1e3, -1e6, 2.0**30])
@pytest.mark.parametrize("on_targets", [Gaussian(2.0), Exponential(2.0), Energy()], ids=repr)
@pytest.mark.parametrize("name", FAMILIES)
def test_an_offset_of_everything_changes_no_digit(name, on_targets, offset):
    if "mixture" in name or name == "two families":
        on_targets = Gaussian(2.0)
    estimator = SKCE(Exponential(1.0), on_targets)
    here, there = (estimator(*problem(name, o)).value for o in (0.0, offset))
    assert there == pytest.approx(here, rel=1e-10)


@pytest.mark.parametrize("offset", [1e3, 2.0**30])
@pytest.mark.parametrize("name", OF_VECTORS)
def test_nor_of_vectors(name, offset):
    for estimator in (
        SKCE(Exponential(1.0), Gaussian(2.0)),
        SKCE(Exponential(), Gaussian(2.0)),
        SKCE(Matern(2.5, 1.0), Gaussian(2.0)),
    ):
        here, there = (estimator(*vectors(name, o)).value for o in (0.0, offset))
        assert there == pytest.approx(here, rel=1e-10)


@pytest.mark.parametrize(
    "on_predictions",
    [Gaussian(1.0), Matern(1.5, 1.0), Exponential(1.0, Cityblock()), Exponential(), Exponential(1.0, power=0.5)],
    ids=repr,
)
@pytest.mark.parametrize("name", ["thirty members", "normal", "mixture", "quantiles"])
def test_whatever_the_kernel_on_predictions(name, on_predictions):
    estimator = SKCE(on_predictions, Gaussian(2.0))
    here, there = (estimator(*problem(name, o)).value for o in (0.0, 2.0**30))
    assert there == pytest.approx(here, rel=1e-10)


@pytest.mark.parametrize("name", ["thirty members", "normal", "logistic", "mixture", "quantiles"])
def test_other_estimators_and_resamples_are_moved_too(name):
    for estimator in (RandomFeatureSKCE(Exponential(1.0), Gaussian(2.0)), UCME(Exponential(1.0), Gaussian(2.0))):
        here, there = (estimator(*problem(name, o)).value for o in (0.0, 2.0**30))
        assert there == pytest.approx(here, rel=1e-5)  # features of random features are of single precision
    drawn = on_a_grid(problem(name, 0.0)[1].sample(np.random.default_rng(1), 3))
    for kernels in ((Exponential(1.0), Gaussian(2.0)), (Gaussian(1.0), Energy())):
        if kernels[1] == Energy() and name == "mixture":
            continue
        here, there = (SKCE(*kernels).given(FAMILIES[name](o), None)(drawn + o) for o in (0.0, 2.0**30))
        assert there == pytest.approx(here, rel=1e-9)


def test_a_kernel_with_an_origin_on_predictions_keeps_it():
    """Energy on predictions sees where they are; resamples agree with the estimate all the same."""
    y, predictions = problem("thirty members", 1000.0)
    estimator = SKCE(Energy(), Energy())
    assert estimator.given(predictions, None)(y[None])[0] == pytest.approx(estimator(y, predictions).value, rel=1e-8)
    assert estimator(y, predictions).value > 10 * estimator(*problem("thirty members", 0.0)).value


@pytest.mark.parametrize("n", [400, 2500])
def test_single_precision_off_centre_is_that_of_the_same_numbers_in_double(n):
    """Tiles of few rows, compiled code of many."""
    rng = np.random.default_rng(0)
    mu = rng.normal(280, 1, n)
    members, y = (np.float32(x) for x in (rng.normal(mu[:, None], 1, (n, 30)), rng.normal(mu, 1.5)))
    estimator = SKCE(Exponential(1.0), Gaussian(2.0))
    single, double = (estimator(y.astype(t), Ensemble(members.astype(t))).value for t in (np.float32, np.float64))
    assert single == pytest.approx(double, rel=1e-5)
    loc = np.float32(rng.normal(280, 1, (n, 10)))
    targets = np.float32(rng.normal(loc, 1.5))
    wide = SKCE(Exponential(3.0), Gaussian(3.0))
    single, double = (
        wide(targets.astype(t), MultivariateNormal(loc.astype(t), t(1.0))).value for t in (np.float32, np.float64)
    )
    assert single == pytest.approx(double, rel=1e-4)


def test_tensors_of_single_precision_off_centre():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    mu = rng.normal(280, 1, 300)
    members, y = (np.float32(x) for x in (rng.normal(mu[:, None], 1, (300, 30)), rng.normal(mu, 1.5)))
    for on_targets in (Gaussian(2.0), Energy()):
        estimator = SKCE(Exponential(1.0), on_targets)
        double = estimator(y.astype(float), Ensemble(members.astype(float))).value
        single = estimator(torch.from_numpy(y), Ensemble(torch.from_numpy(members))).value
        assert single == pytest.approx(double, rel=1e-4)


def test_the_exact_test_is_the_same_far_away():
    here, there = (
        ExactTest(SKCE(Exponential(1.0), Gaussian(2.0)), n_resamples=49)(*problem("thirty members", o), rng=0)
        for o in (0.0, 1e6)
    )
    assert there.pvalue == here.pvalue
    assert there.null_distribution == pytest.approx(here.null_distribution, rel=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_moved_is_the_same_distribution_elsewhere(name):
    predictions = FAMILIES[name](0.0)
    moved = predictions.shifted(1000.0)
    assert moved.position == pytest.approx(predictions.position + 1000, rel=1e-12)
    assert moved.cdf(Y + 1000) == pytest.approx(predictions.cdf(Y), abs=1e-9)
    assert moved.crps(Y + 1000) == pytest.approx(predictions.crps(Y), abs=1e-9)


def test_where_predictions_lie():
    assert origin_of(Normal([-1.0, 2.0], 1.0)) is None
    assert origin_of(Gamma([1.0], 1.0)) is None  # which begins at zero
    assert origin_of(Mixture([Normal([1e3], 1.0), Gamma([1.0], 1.0)])) == 1e3
    assert origin_of(Normal([1e3], 1.0), Normal([3e3], 1.0), far=1.0) == 2e3
    assert origin_of(MultivariateNormal([[1e3, 1.0]], 1.0)).tolist() == [1e3, 1.0]
    assert origin_of(Normal(np.float32([0.1, 0.1]), 1.0)) == float(np.float32(0.1))


def test_what_cannot_be_moved_stays():
    mixed, y = Mixture([Normal([1e3], 1.0), Gamma([1.0], 1.0)]), np.array([1e3])
    assert around(1e3, mixed, y) == (mixed, y)
    assert around(None, mixed, y) == (mixed, y)


def test_values_that_are_traced_stay():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    y = jax.numpy.asarray(Y + 1000)

    def error(loc):
        return SKCE(Exponential(1.0), Gaussian(2.0))(y, Normal(loc, jax.numpy.asarray(SD))).value

    slope = jax.grad(error)(jax.numpy.asarray(MU + 1000))
    assert np.isfinite(np.asarray(slope)).all()
