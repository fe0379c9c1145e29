import numpy as np
import pytest

from calibrant import (
    Categorical,
    Ensemble,
    Gamma,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
)
from calibrant._validate import InputError
from calibrant.distributions import Beta, Logistic, Uniform
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, LabelMatrix, Matern, expectation
from calibrant.residuals import Route, residuals
from calibrant.residuals.embedding import (
    NODES,
    TAILS,
    extent,
    mean_embedding,
    residual_features,
    seen_from,
    spectral_features,
)


def four_terms(kernel, y, p, rng, draws=4000):
    """Inner products from independent draws."""
    a, b = (p.sample(rng, draws).T for _ in range(2))
    n = len(y)
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            yi, yj = y[i : i + 1, None], y[j : j + 1, None]
            x, z = a[i][:, None], b[j][:, None]
            pairs = np.mean([kernel(x[s : s + 50], z[s : s + 50]).mean() for s in range(0, draws, 50)])
            out[i, j] = kernel(yi, yj)[0, 0] - kernel(x, yj).mean() - kernel(yi, z).mean() + pairs
    return out


@pytest.mark.parametrize(
    ("kernel", "predictions", "route"),
    [
        (Identity(), Categorical, Route.FEATURES),
        (Gaussian(1.0), Normal, Route.CLOSED),
        (Exponential(1.0), Normal, Route.CLOSED),
        (Matern(1.5, 1.0), Normal, Route.QUANTILE),
        (Energy(), Laplace, Route.QUANTILE),
        (Gaussian(1.0), Mixture, Route.CLOSED),
        (Matern(2.5, 1.0), Mixture, Route.QUANTILE),
        (Matern(2.5, 1.0), Ensemble, Route.CLOSED),
        (Matern(2.5, 1.0), MultivariateNormal, Route.SAMPLED),
        (Gaussian(1.0), StudentT, Route.SPECTRAL),
        (Gaussian(1.0), Gamma, Route.SPECTRAL),
        (Exponential(1.0), Uniform, Route.CLOSED),
        (Exponential(1.0), Logistic, Route.QUANTILE),
        (Matern(1.5, 1.0), Poisson, Route.CLOSED),
    ],
)
def test_the_best_route_is_taken(kernel, predictions, route, rng):
    batch = predictions.example(rng, 4)
    assert residuals(kernel, batch.as_targets(batch.sample(rng, 1)[0]), batch).route is route


@pytest.mark.parametrize("route", [Route.CLOSED, Route.SPECTRAL, Route.QUANTILE, Route.SAMPLED])
@pytest.mark.parametrize("family", [Normal, Laplace])
def test_routes_agree(route, family, rng):
    batch = family.example(rng, 12)
    y = batch.sample(rng, 1)[0]
    reference = residuals(Gaussian(1.0), y, batch)
    other = residuals(Gaussian(1.0), y, batch, route)
    assert other.route is route
    tolerance = {Route.CLOSED: 1e-15, Route.SPECTRAL: 1e-11, Route.QUANTILE: 3e-3, Route.SAMPLED: 0.25}[route]
    assert np.abs(reference.inner(reference) - other.inner(other)).max() < tolerance


FAMILIES = [
    *(Normal, Laplace, Logistic, StudentT, LogNormal, Gamma, Beta, Uniform),
    *(Poisson, NegativeBinomial, Ensemble, Mixture),
]
HEAVY = (StudentT, LogNormal)
"""Their tails are cut off where the probability of a millionth is left."""


def by_route(kernel, y, batch, route):
    try:
        return residuals(kernel, y, batch, route)
    except InputError:
        return None


def variation(kernel, y, batch):
    """The total variation of ``z -> l(y, z) - L(P, z)`` for each row, which is what quantiles can miss."""
    nodes = batch.quantile((np.arange(4096) + 0.5) / 4096)
    found = []
    for target, row in zip(y, nodes, strict=True):
        line = np.unique(
            np.concatenate([row, [target], np.linspace(row[0] - 9 * np.ptp(row), row[-1] + 9 * np.ptp(row), 999)])
        )
        values = kernel(np.array([[target]]), line[:, None])[0] - kernel(row[::16, None], line[:, None]).mean(axis=0)
        found.append(np.abs(np.diff(values)).sum())
    return np.array(found)


def five_standard_errors(made):
    """Of inner products by draws, from the draws: their effect alone, and that of pairs of them."""
    kernel, y = made.kernel, made.points.members[:, 0]
    n = len(y)
    errors = np.empty((n, n))
    for i, j in np.ndindex(n, n):
        a, b = made.spread.members[i][:, None], made.column_spread.members[j][:, None]
        table = kernel(a, b) - kernel(a, y[j].reshape(1, 1)) - kernel(y[i].reshape(1, 1), b)
        alone = table.mean(axis=0).var() + table.mean(axis=1).var()
        errors[i, j] = np.sqrt((alone + table.var() / NODES) / NODES)
    return 5 * errors + 1e-12


@pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Matern(1.5), Energy()], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_routes_of_every_family_agree(family, kernel, rng, monkeypatch):
    """At what each of them promises; where there is no closed form, beside many more quantiles.

    Closed forms are exact. Waves leave out a probability of 1e-12, or 1e-6 of heavy tails, once an argument. The midpoints of
    m equal probabilities have discrepancy 1 / (2 m), so that by Koksma's inequality they miss at most that times the total
    variation of what is integrated, once an argument, whatever the tails. Draws are held to five standard errors.
    """
    batch = family.example(rng, 4)
    y = batch.as_targets(batch.sample(rng, 1)[0])
    kernel = kernel.resolve(batch.sample(rng, 1)[0].reshape(-1, 1))
    made = {route: by_route(kernel, y, batch, route) for route in Route}
    assert made[Route.FEATURES] is None
    inner = {route: one.inner(one) for route, one in made.items() if one is not None}
    assert {Route.QUANTILE, Route.SAMPLED} <= set(inner)
    assert (Route.SPECTRAL in inner) == isinstance(kernel, Gaussian)
    spread = variation(kernel, y, batch)
    coarse = (spread[:, None] + spread) / (2 * NODES)
    if Route.CLOSED in inner:
        exact, fine = inner[Route.CLOSED], 0.0
    else:
        monkeypatch.setattr("calibrant.residuals.embedding.NODES", 4096)
        dense = residuals(kernel, y, batch, Route.QUANTILE)
        exact, fine = dense.inner(dense), coarse * NODES / 4096
    if Route.SPECTRAL in inner:
        rough = 4e-6 if family in HEAVY else 1e-11
        assert np.all(np.abs(inner[Route.SPECTRAL] - exact) < rough + fine)
    assert np.all(np.abs(inner[Route.QUANTILE] - exact) <= coarse + fine + 1e-12)
    assert np.all(np.abs(inner[Route.SAMPLED] - exact) < five_standard_errors(made[Route.SAMPLED]) + fine)


def test_heavy_tails_are_no_harder_for_quantiles():
    """The mean distance of a target may be far off, but not its difference from that of another prediction."""
    batch = StudentT([1.2, 1.6, 2.5], [0.0, 1.0, 0.5], 1.0)
    y = np.array([3.0, -1.0, 40.0])
    coarse = residuals(Energy(), y, batch, Route.QUANTILE)
    wanted = np.diag(batch.crps(y))  # half the energy distance of a prediction and its target
    error = np.abs(np.diag(coarse.inner(coarse) - wanted))
    assert np.all(
        error < 2 * np.mean(np.abs(batch.quantile((np.arange(4096) + 0.5) / 4096) - y[:, None]), axis=1) / (2 * NODES)
    )


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Exponential(1.0), Matern(1.5, 1.0), Energy()], ids=lambda k: type(k).__name__
)
@pytest.mark.parametrize("family", FAMILIES)
def test_residuals_are_seen_from_anywhere(family, kernel, rng):
    """``l(t, y) - E l(t, Z)``, by many quantiles."""
    batch = family.example(rng, 5)
    y = batch.as_targets(batch.sample(rng, 1)[0])
    t = batch.as_targets(batch.sample(rng, 1)[0])[:3]
    nodes = batch.quantile((np.arange(4096) + 0.5) / 4096)
    expected = np.stack([kernel(t[:, None], row[:, None]).mean(axis=1) for row in nodes], axis=1)
    found = seen_from(kernel, t, y, batch)
    assert found.shape == (3, 5)
    bound = 2 * (
        np.abs(nodes).max() if isinstance(kernel, Energy) else 1
    )  # the variation of the kernel as a function of Z
    assert np.abs(found - (kernel(t[:, None], y[:, None]) - expected)).max() < bound / (2 * NODES) + bound / (2 * 4096)


def test_vectors_are_seen_by_draws(rng):
    batch = MultivariateNormal(np.zeros((5, 2)), 1.0)
    y = batch.sample(rng, 1)[0]
    kernel = Matern(1.5, 1.0)
    draws = batch[:1].sample(rng, 4000)[:, 0]
    wanted = kernel(y[:2], y) - kernel(y[:2], draws).mean(axis=1)[:, None]
    assert np.abs(seen_from(kernel, y[:2], y, batch) - wanted).max() < 5 * 0.5 / np.sqrt(NODES)


def test_many_rows_are_seen_in_parts(rng, monkeypatch):
    batch = Logistic.example(rng, 7)
    y = batch.sample(rng, 1)[0]
    whole = seen_from(Matern(1.5, 1.0), y[:2], y, batch)
    monkeypatch.setattr("calibrant.residuals.embedding.MAX_ROWS", 3)
    assert np.array_equal(seen_from(Matern(1.5, 1.0), y[:2], y, batch), whole)


def test_what_cannot_be_seen():
    with pytest.raises(InputError, match="Gaussian.* has no expectation under Categorical predictions"):
        seen_from(Gaussian(1.0), np.array([0]), np.array([0, 1]), Categorical([[0.2, 0.8], [0.5, 0.5]]))


def test_a_row_without_a_closed_form_takes_all_to_another_route(rng):
    """Counts that are too many to sum over, in the last row."""
    batch = Poisson([3.0, 5.0, 4000.0])
    y = batch.as_targets(batch.sample(rng, 1)[0])
    assert residuals(Matern(1.5, 100.0), y, batch).route is Route.QUANTILE
    assert residuals(Matern(1.5, 100.0), y[:2], batch[:2]).route is Route.CLOSED
    assert (
        residuals(Gaussian(100.0), y[:2], batch[:2]).route is Route.SPECTRAL
    )  # cheaper, where the kernel has a spectrum


def test_draws_for_rows_and_columns_are_independent(rng):
    """So the diagonal is unbiased too: averaged over many rows it meets the closed form."""
    batch = Normal(np.zeros(400), 1.0)
    y = batch.sample(rng, 1)[0]
    exact = np.diagonal(residuals(Gaussian(1.0), y, batch).inner(residuals(Gaussian(1.0), y, batch)))
    drawn = residuals(Gaussian(1.0), y, batch, Route.SAMPLED)
    error = np.array([(drawn[i : i + 1].inner(drawn[i : i + 1]))[0, 0] for i in range(400)]) - exact
    assert abs(error.mean()) < 4 * error.std() / 20


def test_against_independent_draws(rng):
    batch = Normal([0.0, 1.0], [1.0, 0.5])
    y = np.array([0.3, 1.4])
    made = residuals(Gaussian(0.9), y, batch)
    assert made.inner(made) == pytest.approx(four_terms(Gaussian(0.9), y, batch, rng), abs=0.03)


def test_label_features_are_one_hot_minus_probabilities():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    made = residuals(Identity(), np.array([2, 0]), Categorical(p))
    assert made.features == pytest.approx(np.eye(3)[[2, 0]] - p)
    matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]])
    ordinal = residuals(LabelMatrix(matrix), np.array([2, 0]), Categorical(p))
    difference = np.eye(3)[[2, 0]] - p
    assert ordinal.inner(ordinal) == pytest.approx(difference @ matrix @ difference.T, rel=1e-13)


def test_two_classes_need_one_feature(rng):
    p, y = rng.random(10), rng.integers(0, 2, 10)
    scalar = residuals(Identity(), y, Categorical(p))
    assert scalar.features.shape == (10, 1)
    full = np.eye(2)[y] - np.stack([1 - p, p], axis=1)
    assert scalar.inner(scalar) == pytest.approx(full @ full.T, rel=1e-13)


def test_unknown_pairs_list_what_exists(rng):
    with pytest.raises(
        InputError,
        match=r"Gaussian\(.*\) has no expectation under Categorical .* 'spectral'; closed forms: .*Gaussian with Normal",
    ):
        residuals(Gaussian(1.0), np.array([0]), Categorical([[0.2, 0.8]]), Route.SPECTRAL)
    with pytest.raises(InputError, match="by the route 'spectral'"):
        residuals(Matern(1.5, 1.0), np.zeros(1), Normal([0.0], 1.0), Route.SPECTRAL)
    with pytest.raises(InputError, match="the label matrix is for 2 classes; y_pred has 3"):
        residuals(LabelMatrix(np.eye(2)), np.array([0]), Categorical([[0.2, 0.3, 0.5]]))


def test_slices_keep_their_rows(rng):
    batch = Mixture.example(rng, 6)
    y = batch.sample(rng, 1)[0]
    made = residuals(Gaussian(1.0), y, batch)
    whole = made.inner(made)
    assert made[2:5].inner(made[:2]) == pytest.approx(whole[2:5, :2], rel=1e-13)
    assert len(made[2:5]) == 3


@pytest.mark.parametrize("route", [Route.CLOSED, Route.SPECTRAL])
def test_many_members_are_taken_by_their_features(route, rng):
    """The same inner products as sums over all pairs of members."""
    y, predictions = rng.normal(size=30), Ensemble(rng.normal(size=(30, 12)))
    best = residuals(Gaussian(0.7), y, predictions)
    assert best.route is Route.SPECTRAL
    assert best.inner(best) == pytest.approx(_inner(residuals(Gaussian(0.7), y, predictions, route)), abs=1e-10)
    assert residuals(Gaussian(0.7), y, Ensemble(rng.normal(size=(30, 3)))).route is Route.CLOSED


def test_quantiles_are_taken_by_their_features(rng):
    y, predictions = rng.normal(size=20), Normal(rng.normal(size=20), 1.0)
    found = residuals(Gaussian(0.7), y, predictions, Route.QUANTILE)
    nodes = Ensemble(predictions.quantile((np.arange(128) + 0.5) / 128))
    assert found.features is not None
    assert _inner(found) == pytest.approx(_inner(residuals(Gaussian(0.7), y, nodes, Route.CLOSED)), abs=1e-10)


def _inner(found):
    return found.inner(found)


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture, Ensemble])
def test_the_embedding_has_the_distance_of_mean_embeddings(family, rng):
    batch = family.example(rng, 8)
    kernel = Gaussian(1.3)
    points = mean_embedding(kernel, batch)
    inner = expectation(kernel, batch, batch)
    squared = np.diagonal(inner)[:, None] + np.diagonal(inner)[None, :] - 2 * inner
    found = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    assert found == pytest.approx(squared, abs=1e-11)


@pytest.mark.parametrize("family", [MultivariateNormal, Ensemble])
def test_vectors_are_seen_by_random_features(family, rng):
    """The squared distance is a mean over 256 frequencies, each with a spread of at most 4."""
    batch = family.example(rng, 8) if family is MultivariateNormal else Ensemble(rng.normal(size=(8, 5, 2)))
    kernel = Gaussian(1.3)
    points = mean_embedding(kernel, batch)
    assert np.array_equal(points, mean_embedding(kernel, batch))
    inner = expectation(kernel, batch, batch)
    squared = np.diagonal(inner)[:, None] + np.diagonal(inner)[None, :] - 2 * inner
    found = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
    assert np.abs(found - squared).max() < 5 * 0.5 / 16


def test_what_has_no_features(rng):
    assert residual_features(Matern(1.5, 1.0), np.zeros(2), Normal([0.0, 1.0], 1.0)) is NotImplemented
    vectors = MultivariateNormal.example(rng, 2)
    assert residual_features(Gaussian(1.0), np.zeros((2, 3)), vectors) is NotImplemented
    assert mean_embedding(Energy(), vectors) is NotImplemented
    assert residual_features(Gaussian(1e-6), np.zeros(2), Normal([0.0, 1.0], 1.0)) is NotImplemented


def test_light_tails_are_covered_all_but_a_trillionth_of_them():
    batch, y = Beta([2.0, 3.0], 4.0), np.array([0.1, 0.5])
    spectral = spectral_features(Gaussian(0.2), batch, y)
    assert spectral.expected.shape == (2, 2 * len(spectral.nodes))
    assert np.array_equal(spectral(y), residual_features(Gaussian(0.2), y, batch))
    assert spectral.of_points(y) - spectral.expected == pytest.approx(spectral(y), abs=1e-15)


@pytest.mark.parametrize(
    ("batch", "tail"), [(StudentT([30.0], 0.0, 1.0), 0), (StudentT([6.0], 0.0, 1.0), 1), (StudentT([3.0], 0.0, 1.0), 2)]
)
def test_heavy_tails_are_cut_where_few_enough_frequencies_reach(batch, tail):
    low, high = extent(batch, TAILS[tail][0])
    spectral = spectral_features(Gaussian(1.0), batch, np.zeros(1))
    assert len(spectral.nodes) == len(Gaussian(1.0).spectrum(high - low)[0])


def test_few_rows_may_take_more_frequencies():
    batch, y = LogNormal(np.zeros(3), 2.0), np.ones(3)
    spectral = spectral_features(Gaussian(0.5), batch, y)
    assert len(spectral.nodes) > TAILS[-1][1]
    many = LogNormal(np.zeros(10_000), 2.0)
    assert spectral_features(Gaussian(0.5), many, y) is NotImplemented


def test_targets_far_away_cost_no_more_than_near_ones():
    """One is as far as nine length scales from all others, wherever it is."""
    batch = Normal([0.0, 0.0, 0.0], 1.0)
    near, far, farther = (
        spectral_features(Gaussian(1.0), batch, np.array([y, y + 1, 0.3])) for y in (16.0, 500.0, 1e12)
    )
    assert len(near.nodes) <= len(far.nodes) == len(farther.nodes) < 1.5 * len(near.nodes)
    for y, spectral in ((500.0, far), (1e12, farther)):
        features = spectral(np.array([y, y + 1, 0.3]))
        inner = features @ features.T
        assert np.diag(inner)[:2] == pytest.approx(np.full(2, 1 + 3**-0.5), abs=1e-12)  # no prediction thought of them
        assert inner[0, 1] == pytest.approx(np.exp(-0.5) + 3**-0.5, abs=1e-12)
    whole = Gaussian(1.0)
    y = np.array([16.0, 40.0, 0.3])
    exact = residuals(whole, y, batch)
    features = residual_features(whole, y, batch)
    assert features @ features.T == pytest.approx(exact.inner(exact), abs=1e-11)


def test_a_tail_that_is_cut_off_costs_no_more_than_its_probability():
    """Against the same with all of it covered."""
    assert [tail for tail, _ in TAILS] == [1e-12, 1e-9, 1e-6]
    batch, y = StudentT([3.0, 4.0, 3.5], [0.0, 1.0, 2.0], 1.0), np.array([0.3, -2.0, 15.0])
    kernel = Gaussian(1.0)
    features = residual_features(kernel, y, batch)
    nodes, weights = kernel.spectrum(extent(batch, 1e-12)[1] * 2)
    parts = batch.cf(nodes)
    phase = y[:, None] * nodes
    exact = np.concatenate([(np.cos(phase) - parts[0]), (np.sin(phase) - parts[1])], axis=1) * np.sqrt(
        np.tile(weights, 2)
    )
    assert np.abs(features @ features.T - exact @ exact.T).max() < 2e-6
