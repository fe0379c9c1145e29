import numpy as np
import pytest

from calibrant import ECE, Categorical, ExactTest, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import CanonicalECE, Grid, KMeans, MedianVariance
from calibrant.estimators.binned.canonical import CellCounts
from calibrant.lab import TwiceTempered


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


@pytest.mark.parametrize("label_binned", [False, True])
@pytest.mark.parametrize("cells", [KMeans(4), MedianVariance(10), Grid("doane")], ids=repr)
def test_conformance(cells, label_binned, data):
    y, p = data
    check_estimator(CanonicalECE(cells, 2, label_binned), y, Categorical(p))


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_label_binned_row_by_row_as_the_paper_has_it(norm, weighted, rng):
    """``1/n sum_i ||H(f_i) - f_i||_p^p``; comparing the mean of a cell instead is never larger."""
    p, w = rng.dirichlet(np.ones(3), 60), rng.random(60) if weighted else np.ones(60)
    y = np.array([rng.choice(3, p=row) for row in p])
    cell = [tuple(np.minimum((row * 2).astype(int), 1)) for row in p]
    terms = []
    for i in range(60):
        here = [j for j in range(60) if cell[j] == cell[i]]
        frequency = np.average([np.eye(3)[y[j]] for j in here], axis=0, weights=w[here])
        size = np.abs(frequency - p[i])
        terms.append(size.max() if np.isinf(norm) else np.sum(size**norm))
    expected = max(terms) if np.isinf(norm) else np.average(terms, weights=w) ** (1 / norm)
    weights = w if weighted else None
    found = CanonicalECE(Grid(2), norm, label_binned=True)(y, p, sample_weight=weights)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.value > CanonicalECE(Grid(2), norm)(y, p, sample_weight=weights).value
    assert found.withheld == "none is known with label_binned=True; label_binned=False has one"


def test_the_audited_value_of_four_classes():
    """20,000 rows, five bins a class: .284 in one data set, whose spread is .005; the truth is .2335."""
    world, estimator = TwiceTempered(4), CanonicalECE(Grid(5), label_binned=True)
    found = [estimator(*world.draw(20_000, np.random.default_rng(seed))).value for seed in range(3)]
    assert np.mean(found) == pytest.approx(0.284, abs=0.007)
    assert world.truth(estimator) == pytest.approx(0.2335, abs=1e-4)


def test_the_number_of_bins_that_was_taken_is_told(data):
    found = CanonicalECE(Grid("doane"))(*data)
    assert found.estimator.cells == Grid("doane").settled(data[1])
    assert found.value == CanonicalECE(found.estimator.cells)(*data).value


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


@pytest.mark.parametrize("is_right", [True, False])
def test_limits_count_what_a_row_is_off_in_all_classes(is_right, rng):
    """The variance of a sum of sizes, from each row's own residuals: as they were, or as predictions expect them if that is more."""
    p, w = rng.dirichlet(np.ones(3), 40), rng.uniform(0.5, 2, 40)
    y = p.argmax(axis=1) if is_right else p.argmin(axis=1)
    counts = CellCounts.in_cells(np.arange(40) % 4, p, w)
    slack = counts.slack(counts.gaps(y[None])[0], p, y)
    sizes = [[np.abs(row - np.eye(3)[k]).sum() for k in range(3)] for row in p]
    seen = sum(w[i] ** 2 * sizes[i][y[i]] ** 2 for i in range(40))
    expected = sum(w[i] ** 2 * p[i, k] * sizes[i][k] ** 2 for i in range(40) for k in range(3))
    assert (expected > seen) == is_right
    assert slack.whole == pytest.approx(max(seen, expected) / w.sum() ** 2, rel=1e-12)
    assert slack.step == pytest.approx(2 * w.max() / w.sum(), rel=1e-12)
