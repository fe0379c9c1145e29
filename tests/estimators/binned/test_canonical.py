import numpy as np
import pytest

from calibrant import ECE, Categorical, ExactTest, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import CanonicalECE, KMeans, MedianVariance


@pytest.fixture
def data(rng):
    p = rng.dirichlet(np.ones(3), 150)
    return rng.integers(0, 3, 150), p


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_definition(norm, weighted, data, rng):
    y, p = data
    w = rng.random(150) if weighted else np.ones(150)
    cells, total, largest = MedianVariance(12).cells(p, w), 0.0, 0.0
    for c in np.unique(cells):
        rows = cells == c
        gap = np.average(p[rows] - np.eye(3)[y[rows]], axis=0, weights=w[rows])
        largest = max(largest, np.abs(gap).max())
        total += w[rows].sum() / w.sum() * np.sum(np.abs(gap) ** norm) if np.isfinite(norm) else 0
    expected = largest if np.isinf(norm) else total ** (1 / norm)
    found = CanonicalECE(MedianVariance(12), norm)(y, p, sample_weight=w if weighted else None)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.table["weight"].sum() == pytest.approx(w.sum())
    assert found.lens == "canonical"


def test_two_classes_count_every_gap_twice(rng):
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    assert CanonicalECE(KMeans(1))(y, p).value == pytest.approx(
        2 * ECE(bins=ECE().bins)(y, np.full(200, p.mean())).value
    )


@pytest.mark.parametrize("cells", [KMeans(4), MedianVariance(10)], ids=repr)
def test_conformance(cells, data):
    y, p = data
    check_estimator(CanonicalECE(cells, 2), y, Categorical(p))


def test_the_level_of_the_exact_test_holds():
    rng, rejected = np.random.default_rng(4), 0
    for seed in range(600):
        p = rng.dirichlet(np.ones(3), 40)
        y = (rng.random((40, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        rejected += ExactTest(CanonicalECE(MedianVariance(5)), n_resamples=99)(y, p, rng=seed).pvalue <= 0.05
    assert 14 <= rejected <= 49  # 99.9 % of a binomial distribution with mean 30


def test_bad_input(rng):
    with pytest.raises(InputError, match="looks at class probabilities; got Normal predictions"):
        CanonicalECE()([0.1], Normal([0.0], [1.0]))
    with pytest.raises(InputError, match="cells must be a partition"):
        CanonicalECE(15)
    with pytest.raises(InputError, match="norm must be a number of at least 1"):
        CanonicalECE(norm=0.5)
