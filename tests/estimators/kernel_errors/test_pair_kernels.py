import numpy as np
import pytest

from calibrant import SKCE, Categorical, ExactTest, Mixture, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import PairSKCE, RandomFeatureSKCE, SumSKCE
from calibrant.kernels import Exponential, Gaussian, Identity


def joint(p, y, q, z):
    """A function of the distance of pairs: no product of kernels."""
    a, b = np.concatenate([p, y], axis=1), np.concatenate([q, z], axis=1)
    return np.exp(-np.linalg.norm(a[:, None] - b[None, :], axis=2))


def product(p, y, q, z):
    return np.exp(-np.linalg.norm(p[:, None] - q[None, :], axis=2)) * np.exp(-((y - z.T) ** 2) / 2)


@pytest.fixture
def classes(rng):
    return rng.integers(0, 3, 12), rng.dirichlet(np.ones(3), 12)


def test_of_classes_it_is_the_matrix_valued_kernel(classes):
    """``(e_y - p)' K(p, q) (e_z - q)`` of the paper's appendix E, entry by entry."""
    y, p = classes
    h = PairSKCE(joint).matrix(y, p)
    for i, j in np.ndindex(12, 12):
        k = [[joint(p[[i]], np.array([[a]]), p[[j]], np.array([[b]]))[0, 0] for b in range(3)] for a in range(3)]
        exact = (np.eye(3)[y[i]] - p[i]) @ np.array(k) @ (np.eye(3)[y[j]] - p[j])
        assert h[i, j] == pytest.approx(exact, abs=1e-14)
    found = PairSKCE(joint)(y, p)
    assert float(found) == pytest.approx((h.sum() - h.trace()) / 132, rel=1e-12)
    assert found.route == "features"


def test_a_product_gives_the_error_of_both_kernels(classes):
    y, p = classes
    exact = SKCE(Exponential(1.0), Gaussian(1.0))
    assert PairSKCE(product).matrix(y, p) == pytest.approx(exact.matrix(y, p), abs=1e-13)
    one, other = PairSKCE(product)(y, p), exact(y, p)
    assert float(one) == pytest.approx(float(other), rel=1e-12)
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12)
    ends = [found.confidence_interval() for found in (one, other)]
    assert (ends[0].low, ends[0].high) == pytest.approx((ends[1].low, ends[1].high), rel=1e-9)


def test_draws_are_without_bias(rng):
    """Over many data sets, against closed forms on the same data."""
    differences = []
    for seed in range(300):
        predictions = Normal(rng.normal(size=8), rng.uniform(0.5, 1.5, 8))
        y = predictions.loc + rng.normal(size=8)
        by_draws = PairSKCE(product, draws=4, seed=seed)(y, predictions)
        differences.append(float(by_draws) - float(SKCE(Exponential(1.0), Gaussian(1.0))(y, predictions)))
    assert by_draws.route == "sampled"
    assert abs(np.mean(differences)) < 4 * np.std(differences) / 300**0.5
    assert np.std(differences) > 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sum_of_products_is_the_sum_of_matrices(classes, weighted, rng):
    y, p = classes
    terms = SKCE(Exponential(0.3)), SKCE(0.5 * Gaussian(2.0), Exponential(1.0))
    h = sum(term.matrix(y, p) for term in terms)
    assert SumSKCE(terms).matrix(y, p) == pytest.approx(h, rel=1e-13)
    weights = rng.uniform(0.5, 2, 12) if weighted else None
    w = np.ones(12) if weights is None else weights
    for estimator, matrix in ((SumSKCE(terms), h), (PairSKCE(joint), PairSKCE(joint).matrix(y, p))):
        found = estimator(y, p, sample_weight=weights)
        pairs = np.outer(w, w) * ~np.eye(12, dtype=bool)
        assert float(found) == pytest.approx((pairs * matrix).sum() / pairs.sum(), rel=1e-11)
        assert found.standard_error > 0


def test_open_scales_of_terms_are_settled(classes):
    settled = SumSKCE((SKCE(), SKCE(Gaussian())))(*classes).estimator
    assert [term.on_predictions.lengthscale > 0 for term in settled.terms] == [True, True]
    assert [term.on_targets for term in settled.terms] == [Identity(), Identity()]


@pytest.mark.parametrize("estimator", [SumSKCE((SKCE(Exponential(0.3)), SKCE(Gaussian(2.0)))), PairSKCE(joint)])
def test_the_exact_test_finds_errors_and_keeps_its_level(estimator, rng):
    p = rng.uniform(0.05, 0.95, 40)
    assert ExactTest(estimator, 99)((rng.random(40) < p**3).astype(int), p).pvalue < 0.02
    pvalues = [
        ExactTest(estimator, 19)((rng.random(12) < p[:12]).astype(int), p[:12], rng=i).pvalue for i in range(100)
    ]
    assert np.mean(np.array(pvalues) <= 0.1) < 0.2


@pytest.mark.parametrize("estimator", [SumSKCE((SKCE(Exponential(0.3)), SKCE())), PairSKCE(joint)])
def test_conformance(estimator, classes):
    check_estimator(estimator, classes[0], Categorical(classes[1]))


def test_settings(classes):
    with pytest.raises(InputError, match="terms must be a list of SKCE estimators with unbiased=True"):
        SumSKCE((SKCE(unbiased=False),))
    with pytest.raises(InputError, match="terms must be a list of SKCE estimators .*; got 3"):
        SumSKCE(3)
    with pytest.raises(InputError, match="kernel must be a function kernel"):
        PairSKCE(Gaussian(1.0).unit)
    with pytest.raises(InputError, match=r"must give one number for each pair, an array \(3, 3\); it gave \(3,\)"):
        PairSKCE(lambda p, y, q, z: p[:, 0])(*classes)
    with pytest.raises(InputError, match="PairSKCE needs at least two rows"):
        PairSKCE(joint)([0], Categorical([0.3]))
    with pytest.raises(InputError, match="SumSKCE needs at least two rows"):
        SumSKCE((SKCE(),))([0, 1], [0.3, 0.4], sample_weight=[1.0, 0.0])
    with pytest.raises(InputError, match="PairSKCE needs predictions with coordinates; Mixture have none"):
        PairSKCE(joint)([0.0, 1.0], Mixture([Normal([0.0, 1.0], 1.0)] * 2))


def test_a_sum_is_a_value(classes):
    """Of a list or of a tuple: equal, and a key of a dictionary."""
    terms = [SKCE(Exponential(0.5)), SKCE(Gaussian(0.5))]
    assert SumSKCE(terms) == SumSKCE(tuple(terms))
    assert len({SumSKCE(terms), SumSKCE(tuple(terms))}) == 1


@pytest.mark.parametrize(
    "estimator",
    [PairSKCE(joint), SumSKCE([SKCE()]), RandomFeatureSKCE(Exponential(0.5))],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_pair_needs_two_rows(estimator):
    assert np.isfinite(estimator([0, 1], [0.2, 0.7]).value)
    with pytest.raises(InputError, match="needs at least two rows"):
        estimator([0], [0.2])


def test_estimates_without_an_engine_are_what_a_call_gives(rng):
    p = rng.random(40)
    y, predictions = (rng.random(40) < p) * 1, Categorical(p)
    estimator = SumSKCE([SKCE(Exponential(0.4)), SKCE(Gaussian(0.4))])
    assert estimator.estimate(y, predictions, None).value == estimator(y, predictions).value
