"""Statistics under signs of clusters are what the signed residuals make of them, row by row."""

import numpy as np
import pytest

from calibrant import (
    ECE,
    SKCE,
    AggregatedTest,
    Bernoulli,
    Categorical,
    EqualMass,
    ExactTest,
    InputError,
    Normal,
    PITError,
    Quantiles,
    Sweep,
)
from calibrant._clusters import Clusters
from calibrant.distributions import as_problem
from calibrant.estimators import (
    ICI,
    DebiasedECE,
    KolmogorovSmirnov,
    Kuiper,
    QuantileError,
    RandomFeatureSKCE,
    TailScan,
)
from calibrant.estimators.signs import SignedSums, pairs_between
from calibrant.kernels import Exponential
from calibrant.lenses import ClassWise, TopLabel

N, C = 120, 30


@pytest.fixture
def clusters(rng):
    return Clusters.of_codes(np.r_[np.arange(C), rng.integers(0, C, N - C)])


def problem(family, rng):
    if family == "binary":
        p = np.round(rng.random(N), 2)
        return (rng.random(N) < p) * 1, p
    if family == "classes":
        probs = rng.dirichlet(np.ones(4), N)
        return np.array([rng.choice(4, p=p) for p in probs]), Categorical(probs)
    if family == "labels":
        p = rng.random((N, 3))
        return (rng.random((N, 3)) < p) * 1, Bernoulli(p)
    loc = rng.normal(size=N)
    if family == "normal":
        return loc + rng.normal(size=N), Normal(loc, 1.0)
    fan = Quantiles(np.round(loc[:, None] + np.array([-1.0, 0, 1]), 1), [0.16, 0.5, 0.84])
    return np.round(loc + rng.normal(size=N), 1), fan  # many targets equal a quantile


CASES = [
    *[
        ("binary", e)
        for e in (ECE(), ECE(EqualMass(7), norm=2), ECE(norm=np.inf), TailScan(), KolmogorovSmirnov(), Kuiper())
    ],
    *[("classes", e) for e in (ECE(), ECE(lens=ClassWise(), norm=2), TailScan(ClassWise()), TailScan(TopLabel()))],
    *[("classes", e) for e in (KolmogorovSmirnov(ClassWise()),)],
    *[("labels", e) for e in (ECE(EqualMass(5)), TailScan(), Kuiper())],
    *[
        ("normal", e)
        for e in (
            PITError(),
            PITError("kuiper"),
            PITError("cramer-von-mises"),
            QuantileError(),
            QuantileError(squared=True),
        )
    ],
    *[("fan", e) for e in (PITError(), PITError("kuiper"), PITError("cramer-von-mises"), QuantileError())],
]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("family", "estimator"), CASES, ids=lambda x: str(x)[:60])
def test_without_a_change_of_sign_it_is_the_estimate(family, estimator, is_weighted, clusters, rng):
    y, p = problem(family, rng)
    w = rng.uniform(0.5, 2, N) if is_weighted else None
    targets, predictions = as_problem(y, p)
    signed = estimator.with_signs(targets, predictions, w, clusters)
    assert signed(np.ones((1, C)))[0] == pytest.approx(float(estimator(y, p, sample_weight=w)), rel=1e-9)
    assert signed(-np.ones((1, C)))[0] >= 0


def test_signs_of_bins_against_loops(clusters, rng):
    """Gaps of ten bins, each residual with the sign of its cluster."""
    y, p = problem("binary", rng)
    signs = rng.choice([-1.0, 1.0], (5, C))
    found = ECE(EqualMass(10), norm=2).with_signs(*as_problem(y, p), None, clusters)(signs)
    cell = EqualMass(10).bins(p).index(p)
    for s, value in zip(signs, found, strict=True):
        e = s[clusters.codes] * (y - p)
        squares = [e[cell == b].sum() ** 2 / (cell == b).sum() for b in range(10) if (cell == b).any()]
        assert value == pytest.approx(np.sqrt(np.sum(squares) / N))


def test_signs_of_walks_against_loops(clusters, rng):
    y, p = problem("binary", rng)
    signs = rng.choice([-1.0, 1.0], (5, C))
    targets, predictions = as_problem(y, p)
    farthest = KolmogorovSmirnov().with_signs(targets, predictions, None, clusters)(signs)
    span = Kuiper().with_signs(targets, predictions, None, clusters)(signs)
    for s, a, b in zip(signs, farthest, span, strict=True):
        e = s[clusters.codes] * (p - y)
        walk = np.array([0.0, *(e[p <= t].sum() for t in np.unique(p))]) / N
        assert a == pytest.approx(np.abs(walk).max())
        assert b == pytest.approx(walk.max() - walk.min())


@pytest.mark.parametrize("distance", ["kolmogorov", "kuiper", "cramer-von-mises"])
def test_signs_of_pit_values_on_a_grid(distance, clusters, rng):
    """The process looked at in a million places."""
    y, p = problem("normal", rng)
    signs = rng.choice([-1.0, 1.0], (4, C))
    found = PITError(distance).with_signs(y, p, None, clusters)(signs)
    u, grid = np.asarray(p.cdf(y)), np.linspace(0, 1, 20_001)
    for s, value in zip(signs, found, strict=True):
        process = ((u[None, :] <= grid[:, None]) - grid[:, None]) @ s[clusters.codes] / N
        far = {"kolmogorov": np.abs(process).max(), "kuiper": process.max() - process.min()}
        assert value == pytest.approx(far.get(distance, np.sqrt(np.mean(process**2))), abs=2e-4)


@pytest.mark.parametrize("family", ["binary", "classes", "normal"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_kernel_error_between_clusters_against_loops(family, is_weighted, clusters, rng):
    few = np.r_[:10, 80:N]
    clusters, n = Clusters.of_codes(clusters.codes[few]), len(few)
    targets, predictions = (part[few] for part in as_problem(*problem(family, rng)))
    w = rng.uniform(0.5, 2, n) if is_weighted else np.ones(n)
    codes, values, shares = clusters.codes, [], []
    settled = SKCE().resolved(predictions)
    for i in range(n):
        for j in range(i):
            if codes[i] != codes[j]:
                values.append(float(settled(targets[[i, j]], predictions[np.array([i, j])])))
                shares.append(w[i] * w[j])
    expected = np.average(values, weights=shares)
    estimate = settled(targets, predictions, sample_weight=w, clusters=codes)
    assert float(estimate) == pytest.approx(expected, rel=1e-9)
    assert estimate.notes == ("pairs of rows of the same cluster are left out",)
    assert "rows of a cluster depend on each other" in estimate.withheld
    assert settled.with_signs(targets, predictions, w, clusters)(np.ones((1, len(clusters))))[0] == pytest.approx(
        expected, rel=1e-9
    )


def test_random_features_are_nearly_the_kernel_error(clusters, rng):
    y, p = problem("classes", rng)
    signs = rng.choice([-1.0, 1.0], (20, C))
    settled = SKCE().resolved(p)
    exact = settled.with_signs(y, p, None, clusters)(signs)
    features = RandomFeatureSKCE(settled.on_predictions, settled.on_targets, 5000).with_signs(y, p, None, clusters)(
        signs
    )
    assert np.abs(features - exact).max() < 0.1 * exact.std()


def test_pairs_of_different_clusters():
    assert pairs_between(Clusters(np.array([0, 0, 1]), 2), None) == 4
    assert pairs_between(Clusters(np.array([0, 0, 1]), 2), np.array([1.0, 2.0, 3.0])) == 18


def test_many_cells_are_stored_as_they_are_filled(rng):
    cell, residuals, codes = rng.integers(0, 500, 60), rng.normal(size=60), np.arange(60) // 2
    clusters, signs = Clusters(codes, 30), rng.choice([-1.0, 1.0], (3, 30))
    sparse = SignedSums.of(residuals, cell, 500, clusters)
    assert not isinstance(sparse.sums, np.ndarray)
    for s, found in zip(signs, sparse(signs), strict=True):
        assert found == pytest.approx(np.bincount(cell, s[codes] * residuals, 500))


def test_an_impossible_event_is_proof():
    """What had probability 0 and happened is no matter of signs."""
    p, y = np.tile([0.0, 0.5, 0.5, 0.5, 0.5], 30), np.tile([0, 0, 1, 0, 1], 30)
    y[0] = 1
    clusters = np.arange(150) // 5
    assert ExactTest(TailScan(), 199)(y, p, clusters=clusters).pvalue == 1 / 200
    y[0] = 0
    assert ExactTest(TailScan(), 199)(y, p, clusters=clusters).pvalue == 1


@pytest.mark.parametrize(
    "estimator", [ECE(Sweep()), DebiasedECE(), ICI(), ECE(label_binned=True), SKCE(unbiased=False)], ids=repr
)
def test_what_is_no_sum_of_residuals_is_refused(estimator):
    """The remedies that are named work."""
    y, p, clusters = np.tile([0, 1], 50), np.tile([0.4, 0.6, 0.3, 0.8], 25), np.arange(100) // 4
    with pytest.raises(
        InputError, match=r"clusters do not go with .*Use one of ECE and TailScan .*, or AggregatedTest\(\)"
    ):
        ExactTest(estimator, 19)(y, p, clusters=clusters)
    for remedy in (TailScan(), KolmogorovSmirnov(), Kuiper(), SKCE(), RandomFeatureSKCE(Exponential(0.5))):
        assert ExactTest(remedy, 19)(y, p, clusters=clusters).pvalue > 0
    assert AggregatedTest(n_resamples=19)(y, p, clusters=clusters).pvalue > 0
