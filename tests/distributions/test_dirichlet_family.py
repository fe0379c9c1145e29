"""Predictions of compositions, beside SciPy's, Beta predictions of two parts, and draws."""

import numpy as np
import pytest
from scipy import stats

from calibrant import SKCE, Ensemble, ExactTest, LogLoss, MultivariateNormal
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import Beta, Dirichlet, as_distribution, coordinate
from calibrant.distributions.multivariate import are_shares
from calibrant.estimators import PIT, EnergyScore, PITError
from calibrant.kernels import Gaussian, Identity
from calibrant.recalibration import Temperature, VectorScaling
from calibrant.residuals import Route, residuals

SIZES = (0.3, 2.0, 15.0, 150.0, 1e4)
"""Of parameters: predictions that are nearly corners, and nearly certain."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parts", [2, 3, 6])
def test_densities_and_moments_are_those_of_scipy(size, parts, rng):
    a = rng.uniform(0.5, 2, (5, parts)) * size
    ours = Dirichlet(a)
    y = ours.sample(rng, 3)
    for i, row in enumerate(a):
        theirs = stats.dirichlet(row)
        wanted = [theirs.logpdf(target / target.sum()) for target in y[:, i]]
        assert ours.log_prob(y)[:, i] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert ours.mean[i] == pytest.approx(theirs.mean(), rel=1e-12)
        assert ours.std[i] == pytest.approx(theirs.var() ** 0.5, rel=1e-12)


def test_what_cannot_happen_has_no_density():
    assert Dirichlet([[2.0, 3.0]]).log_prob(np.array([[0.0, 1.0]])) == -np.inf


@pytest.mark.parametrize("furthest", [1.0, 10.0, 60.0, 300.0])
@pytest.mark.parametrize("size", SIZES)
def test_the_characteristic_function_of_two_parts_is_that_of_a_beta_distribution(size, furthest, rng):
    a, w = rng.uniform(0.3, 3, (40, 2)) * size, rng.uniform(-furthest, furthest, (30, 2))
    found = np.array(Dirichlet(a).cf(w))
    beta = np.stack([np.array(Beta(*a.T).cf(np.array([step])))[:, :, 0] for step in w[:, 0] - w[:, 1]], axis=2)
    wanted = (beta[0] + 1j * beta[1]) * np.exp(1j * w[:, 1])
    assert np.abs(found[0] + 1j * found[1] - wanted).max() < 1e-8


def test_the_characteristic_function_of_four_parts_is_a_mean_over_draws(rng):
    batch, w = Dirichlet(rng.uniform(0.3, 8, (5, 4))), rng.normal(size=(7, 4)) * 5
    phase = batch.sample(rng, 40_000) @ w.T
    for found, seen in zip(batch.cf(w), (np.cos(phase), np.sin(phase)), strict=True):
        assert np.all(np.abs(found - seen.mean(axis=0)) < 5 * seen.std(axis=0) / 200 + 1e-9)


def test_frequencies_of_zero_and_equal_ones_turn_nothing_but_the_whole(rng):
    batch = Dirichlet.example(rng, 4)
    real, imaginary = batch.cf(np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]))
    assert real == pytest.approx(np.tile([1, np.cos(2)], (4, 1)), abs=1e-10)
    assert imaginary == pytest.approx(np.tile([0, np.sin(2)], (4, 1)), abs=1e-10)


def test_small_parameters_are_drawn_without_loss(rng):
    drawn = Dirichlet(np.full((1, 3), 1e-3)).sample(rng, 4_000)[:, 0]
    assert np.isfinite(drawn).all()
    assert np.all((drawn > 0) & (drawn < 1))
    share = (drawn > 0.99).mean(axis=0)
    assert np.all(np.abs(share - 1 / 3) < 5 * (2 / 9 / 4_000) ** 0.5 + 0.01)


def test_each_part_is_beta(rng):
    batch = Dirichlet.example(rng, 6)
    for i in (0, 2, -1):
        part = coordinate(batch, i)
        assert isinstance(part, Beta)
        assert np.array_equal(part.a, batch.concentration[:, i])
        assert part.mean == pytest.approx(batch.mean[:, i], rel=1e-14)
        assert part.std == pytest.approx(batch.std[:, i], rel=1e-12)
    with pytest.raises(InputError, match="index must be that of a coordinate, from 0 to 2; got 3"):
        coordinate(batch, 3)


def test_coordinates_stay_below_the_wasserstein_distance(rng):
    """Of all pairings of draws the best one is not cheaper."""
    from scipy.optimize import linear_sum_assignment

    for _ in range(5):
        batch = Dirichlet(rng.uniform(0.5, 9, (2, 3)))
        x, y = np.moveaxis(batch.sample(rng, 400), 1, 0)
        cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
        best = cost[linear_sum_assignment(cost)].mean() ** 0.5
        assert 0.5 * best < np.linalg.norm(np.diff(batch.coords, axis=0)) < best + 0.02


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], r"parts that sum to 1; those of row 0 sum to 0.9: divide each row by its sum"),
        ([[50.0, 50.0], [20.0, 80.0]], "those of row 0 sum to 100: divide percentages by 100"),
        (
            [[0.5, 0.5], [0.0, 1.0]],
            "y_true must have parts above zero.*found 0 in row 1: leave those rows out, or join",
        ),
        ([[1.5, -0.5], [0.5, 0.5]], "found -0.5 in row 0"),
        ([0.5, 0.5], r"y_true must be \(n, 2\), as there are 2 parts; got shape \(2,\)"),
        ([[0.2, 0.3, 0.5]] * 2, r"y_true must be \(n, 2\), as there are 2 parts; got shape \(2, 3\)"),
        ([[np.nan, 0.5], [0.5, 0.5]], "y_true has NaN or infinite values"),
    ],
)
def test_targets_are_compositions(y, message):
    with pytest.raises(InputError, match=message):
        Dirichlet([[2.0, 3.0], [1.0, 1.0]]).as_targets(y)


def test_rounded_shares_are_taken():
    assert Dirichlet([[2.0, 3.0, 4.0]]).as_targets([[0.333, 0.333, 0.333]]).sum() == pytest.approx(0.999)


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ([1.0, 2.0], r"concentration must be \(n, k\) with k at least 2; got shape \(2,\)"),
        ([[1.0]], r"with k at least 2; got shape \(1, 1\)"),
        ([[1.0, 2.0], [1.0, 0.0]], "concentration must be positive; found 0 in row 1"),
        ([[1.0, 1e13]], r"concentration must lie between 1e-100 and 1e\+12; found 1e\+13 in row 0: cut it off there"),
    ],
)
def test_parameters_are_positive(a, message):
    with pytest.raises(InputError, match=message):
        Dirichlet(a)


class Wrong(Dirichlet):
    """A density that is a tenth too high."""

    def log_prob(self, targets):
        return super().log_prob(targets) + 0.1


def test_the_checks_see_a_wrong_density_of_compositions(rng):
    with pytest.raises(AssertionError, match="log_prob does not agree with the draws"):
        check_distribution(Wrong, rng)


def test_inner_products_of_residuals_are_those_of_many_draws(rng):
    """256 random frequencies leave a standard error of at most 0.07 of a kernel of size one; differences have less."""
    batch = Dirichlet.example(rng, 6)
    y = batch.sample(rng, 1)[0]
    kernel = Gaussian(0.3)
    found = residuals(kernel, y, batch)
    assert found.route is Route.SPECTRAL
    members = Ensemble(np.moveaxis(batch.sample(rng, 1_000), 0, 1))
    wanted = residuals(kernel, y, members, Route.CLOSED)
    assert np.abs(found.inner(found) - wanted.inner(wanted)).max() < 0.15
    drawn = residuals(kernel, y, batch, Route.SAMPLED)
    assert np.abs(drawn.inner(drawn) - wanted.inner(wanted)).max() < 0.15


def test_kernels_without_frequencies_are_summed_over_draws(rng):
    batch = Dirichlet.example(rng, 4)
    assert residuals(Gaussian(0.3) + Gaussian(0.1), batch.sample(rng, 1)[0], batch).route is Route.SAMPLED
    assert residuals(Identity(), batch.sample(rng, 1)[0], batch).route is Route.SAMPLED


def test_resamples_have_the_same_statistic(rng):
    batch = Dirichlet.example(rng, 30)
    y = batch.sample(rng, 1)[0]
    for estimator in (SKCE(), SKCE(unbiased=False)):
        many = estimator.given(batch, None)(np.stack([y, y]))
        assert many == pytest.approx(np.full(2, estimator(y, batch).value), rel=1e-6)


def test_too_sure_predictions_are_found_out_and_put_right(rng):
    truth = Dirichlet(rng.uniform(1, 4, (400, 3)))
    y, sure = truth.sample(rng, 1)[0], Dirichlet(3 * truth.concentration)
    for estimator in (SKCE(), EnergyScore(), PITError("kuiper", prerank="centre"), LogLoss()):
        assert ExactTest(estimator, n_resamples=19)(y, sure).pvalue == 0.05
    fitted = Temperature().fit(y, sure)
    assert fitted.map.temperature == pytest.approx(3, abs=0.6)
    better = fitted.map.apply(sure)
    assert better.mean == pytest.approx(sure.mean)
    assert PITError("kuiper", prerank="centre")(y, better).value < 0.12


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_levels_of_compositions_are_uniform_however_rows_are_parted(parts, rng):
    batch = Dirichlet(rng.uniform(0.5, 9, (3_000, parts)))
    y = batch.sample(rng, 1)[0]
    whole = PIT(prerank="centre")(y, batch)
    folds = np.concatenate([PIT(prerank="centre")(y[i::5], batch[np.arange(i, 3_000, 5)]) for i in range(5)])
    for u in (whole, folds):
        assert stats.kstest(u, "uniform").pvalue > 1e-3


def test_outcomes_far_out_are_at_both_ends(rng):
    batch = Dirichlet(rng.uniform(20, 40, (500, 2)))
    y = Dirichlet(batch.concentration / 9).sample(rng, 1)[0]
    u = PIT(prerank="centre")(y, batch)
    assert np.mean(u < 0.05) > 0.15
    assert np.mean(u > 0.95) > 0.15


def test_shares_are_told_from_other_vectors(rng):
    assert are_shares(Dirichlet.example(rng, 3))
    assert are_shares(Ensemble(rng.dirichlet([1, 2, 3], (4, 9)).astype(np.float32)))
    assert not are_shares(MultivariateNormal.example(rng, 3))
    assert not are_shares(Beta([1.0], 2.0))


def test_distributions_of_other_libraries_are_read():
    torch = pytest.importorskip("torch")
    a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 1.0, 1.0]])
    found = as_distribution(torch.distributions.Dirichlet(a))
    assert isinstance(found, Dirichlet)
    assert torch.equal(found.concentration, a)
    rows = as_distribution([stats.dirichlet([1.0, 2.0]), stats.dirichlet([3.0, 4.0])])
    assert isinstance(rows, Dirichlet)
    assert rows.concentration.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_other_libraries_keep_their_arrays(xp, rng):
    host = Dirichlet.example(rng, 4)
    other = Dirichlet(xp.asarray(host.concentration))
    y, w = host.sample(rng, 1)[0], rng.normal(size=(3, 3))
    kind = type(xp.asarray([0.0]))
    pairs = [(other.coords, host.coords), (other.mean, host.mean), (other.std, host.std)]
    for found, wanted in (*pairs, *zip(other.cf(xp.asarray(w)), host.cf(w), strict=True)):
        assert isinstance(found, kind)
        assert np.asarray(found) == pytest.approx(wanted, rel=1e-12, abs=1e-14)
    assert np.array_equal(other.log_prob(xp.asarray(y)), host.log_prob(y))
    assert isinstance(other.as_targets(y.tolist()), kind)


def test_it_is_refused_by_recalibrators_of_classes(rng):
    batch = Dirichlet.example(rng, 30)
    with pytest.raises(InputError, match="Dirichlet"):
        VectorScaling().fit(batch.sample(rng, 1)[0], batch)
