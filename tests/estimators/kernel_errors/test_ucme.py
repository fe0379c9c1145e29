import numpy as np
import pytest

from calibrant import Categorical, Gamma, Mixture, Normal, Poisson
from calibrant._validate import InputError
from calibrant.estimators import UCME, GivenLocations, OptimisedLocations, SampledLocations
from calibrant.kernels import Energy, Exponential, Gaussian, LabelMatrix, Matern, expectation

CERTAIN = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("y", "value"),
    [((0, 1), 0), ((0, 0), 0.1451554952457705), ((1, 1), 0.1451554952457705), ((1, 0), 0.06659606681562134)],
)
def test_two_certain_predictions(y, value):
    places = GivenLocations([0, 0, 1], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert UCME(Gaussian(1.0), locations=places)(y, CERTAIN).value == pytest.approx(value, rel=1e-12, abs=1e-15)


def test_normals():
    places = GivenLocations([1.0], Normal([0.5], 0.5))
    estimator = UCME(Exponential(1.0), Gaussian(1.0), places)
    value = estimator([0, 0.5], Normal([0, 1], [1, 2])).value
    assert value == pytest.approx(0.0034272907966348375, rel=1e-12)


def test_500_binary_predictions():
    rng = np.random.default_rng(1234)
    p = rng.dirichlet((1, 1), 500)
    y = (1 - (rng.random(500) < p[:, 0])).astype(int)
    places = rng.dirichlet((1, 1), 5)
    estimator = UCME(Exponential(1 / 3), locations=GivenLocations(rng.integers(1, 3, 5) - 1, places))
    assert estimator(y, p).value == pytest.approx(1.7633993805461795e-05, rel=1e-12)


def by_hand(y, p, rows, kernel, w=None):
    r = np.eye(p.shape[1])[y] - p
    values = kernel(p[rows], p) * (np.eye(p.shape[1])[y[rows]] @ r.T)
    return (np.average(values, axis=1, weights=w) ** 2).mean()


def test_sampled_locations_are_rows(rng):
    p, y, w = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100), rng.random(100)
    kernel = Exponential(0.4)
    rows = np.random.default_rng(7).permutation(100)[:6]
    estimator = UCME(kernel, locations=SampledLocations(6, seed=7))
    assert estimator(y, p).value == pytest.approx(by_hand(y, p, rows, kernel), rel=1e-12)
    weighted = estimator(y, p, sample_weight=w).value
    assert weighted == pytest.approx(by_hand(y, p, rows, kernel, w), rel=1e-12)


def test_more_locations_than_rows_takes_all(rng):
    p, y = rng.dirichlet(np.ones(3), 5), rng.integers(0, 3, 5)
    kernel = Exponential(0.4)
    assert UCME(kernel)(y, p).value == pytest.approx(by_hand(y, p, np.arange(5), kernel), rel=1e-12)


def test_optimised_locations_see_more_of_an_error_in_one_corner(rng):
    """Only confident predictions are wrong: rows chosen where the error is see more of it than rows at random."""
    p = rng.random(2000)
    y = (rng.random(2000) < np.where(p > 0.9, 0.5, p)).astype(int)
    kernel = Exponential(0.05)
    chosen = UCME(kernel, locations=OptimisedLocations(5))(y, p).value
    drawn = [UCME(kernel, locations=SampledLocations(5, seed=s))(y, p).value for s in range(10)]
    assert chosen > 2 * np.median(drawn)


def test_optimised_locations_are_evaluated_on_other_rows(rng):
    """Were both halves the same, the choice would find an error in calibrated predictions, too."""
    chosen, drawn = [], []
    for seed in range(40):
        p = rng.random(200)
        y = (rng.random(200) < p).astype(int)
        chosen.append(UCME(Exponential(0.05), locations=OptimisedLocations(3, seed=seed))(y, p).value)
        apart = GivenLocations(y[:3], p[:3])
        drawn.append(UCME(Exponential(0.05), locations=apart)(y[100:], p[100:]).value)
    spread = np.hypot(np.std(chosen), np.std(drawn)) / 40**0.5
    assert abs(np.mean(chosen) - np.mean(drawn)) < 4 * spread


def test_every_library(xp, rng):
    predictions = Normal.example(rng, 60)
    y = predictions.sample(rng, 1)[0]
    estimator = UCME(Exponential(1.0), Gaussian(1.0))
    other = estimator(xp.asarray(y), Normal(xp.asarray(predictions.loc), xp.asarray(predictions.scale)))
    assert other.value == pytest.approx(estimator(y, predictions).value, rel=1e-11)


def test_gradients_flow(rng):
    torch = pytest.importorskip("torch")
    p = torch.tensor(rng.dirichlet(np.ones(3), 40), requires_grad=True)
    UCME(Exponential(0.4))(torch.tensor(rng.integers(0, 3, 40)), p).value.backward()
    assert bool(torch.isfinite(p.grad).all())
    assert float(p.grad.abs().max()) > 0


class TestBadInput:
    def test_locations(self):
        with pytest.raises(InputError, match="locations must be such as SampledLocations"):
            UCME(locations=5)

    @pytest.mark.parametrize("rule", [SampledLocations, OptimisedLocations])
    def test_counts(self, rule):
        with pytest.raises(InputError, match="count must be a whole number of at least 1; got 0"):
            rule(0)

    def test_candidates(self):
        with pytest.raises(InputError, match="candidates must be a whole number of at least 10; got 5"):
            OptimisedLocations(10, candidates=5)

    def test_few_rows(self):
        with pytest.raises(InputError, match="optimised locations need at least 4 rows; got 2"):
            UCME(locations=OptimisedLocations(2))([0, 1], CERTAIN)

    def test_weights_with_optimised_locations(self, rng):
        with pytest.raises(InputError, match="optimised locations take no sample_weight"):
            UCME(locations=OptimisedLocations(2))([0, 1] * 4, CERTAIN * 4, sample_weight=[1.0, 2] * 4)

    def test_another_family(self):
        with pytest.raises(InputError, match="locations are Normal predictions; the data are Categorical"):
            UCME(locations=GivenLocations([0.0], Normal([0.0], 1.0)))([0, 1], CERTAIN)

    def test_no_expectation(self):
        with pytest.raises(InputError, match="a label matrix is for class labels, integers from 0 to 1; got float64"):
            UCME(on_targets=LabelMatrix(np.eye(2)))([0.0, 1.0], Normal([0.0, 1.0], 1.0))


def test_results_show_their_settings(rng):
    p, y = rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30)
    result = UCME()(y, Categorical(p))
    assert result.estimator.on_predictions.lengthscale is not None
    assert result.n == 30


def test_mixtures_are_compared_in_common_coordinates(rng):
    """Rows and locations reach differently far; distances are those of the mean embeddings, by closed forms."""
    mu, s = rng.normal(size=(2, 30)), rng.uniform(0.3, 2, (2, 30))
    mixture = Mixture((Normal(mu[0], s[0]), Normal(mu[1], s[1])), np.full((30, 2), 0.5))
    y, gaussian = mixture.sample(rng, 1)[0], Gaussian(1.0)
    estimator = UCME(Exponential(1.0), gaussian, SampledLocations(4, seed=1))
    (t, where), _ = estimator.locations.choose(estimator, y, mixture)
    across, own, all_ = (
        expectation(gaussian, *pair) for pair in ((where, mixture), (where, where), (mixture, mixture))
    )
    distance = np.sqrt(np.maximum(np.diag(own)[:, None] - 2 * across + np.diag(all_)[None, :], 0))
    inner = expectation(gaussian, where.point(t), mixture.point(y)) - expectation(gaussian, where.point(t), mixture)
    expected = np.mean((np.exp(-distance) * inner).mean(axis=1) ** 2)
    assert estimator(y, mixture).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(0.9), Matern(1.5, 0.9), Energy()], ids=repr)
@pytest.mark.parametrize("family", [Normal, Gamma, Poisson])
def test_any_family_and_kernel_by_its_best_route(kernel, family, rng):
    """Against expectations by many quantiles."""
    predictions = family.example(rng, 12)
    y = predictions.as_targets(predictions.sample(rng, 1)[0])
    rows = np.random.default_rng(0).permutation(12)[:4]
    t = y[rows][:, None]
    nodes = predictions.quantile((np.arange(4000) + 0.5) / 4000)
    expected = np.stack([kernel(t, row[:, None]).mean(axis=1) for row in nodes], axis=1)
    on_predictions = Exponential(1.0)
    values = on_predictions(predictions.coords[rows], predictions.coords) * (kernel(t, y[:, None]) - expected)
    found = UCME(on_predictions, kernel, SampledLocations(4))(y, predictions).value
    assert found == pytest.approx((values.mean(axis=1) ** 2).mean(), rel=0.02)
