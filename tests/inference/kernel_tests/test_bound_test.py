import numpy as np
import pytest

from calibrant import SKCE, Normal
from calibrant._validate import InputError
from calibrant.inference import BoundTest
from calibrant.inference.kernel_tests.bound_test import peak
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, Identity, LabelMatrix, Matern

TOTAL_VARIATION = Exponential(2.0, Cityblock())


def three_classes():
    rng = np.random.default_rng(1234)
    return rng.dirichlet((3, 2, 5), 100), rng.integers(1, 4, size=100) - 1


@pytest.mark.parametrize(("unbiased", "pvalue"), [(True, 0.9971693807097616), (False, 0.9835906886570001)])
def test_three_classes_in_total_variation(unbiased, pvalue):
    p, y = three_classes()
    result = BoundTest(SKCE(TOTAL_VARIATION, unbiased=unbiased))(y, p)
    assert result.pvalue == pytest.approx(pvalue, abs=1e-12)
    assert result.statistic == SKCE(TOTAL_VARIATION, unbiased=unbiased)(y, p).value


@pytest.mark.parametrize("unbiased", [True, False])
def test_500_binary_predictions(unbiased):
    """A negative U is no evidence, however large."""
    rng = np.random.default_rng(1234)
    p = rng.dirichlet((1, 1), 500)
    y = (1 - (rng.random(500) < p[:, 0])).astype(int)
    assert BoundTest(SKCE(Exponential(1 / 3), unbiased=unbiased))(y, p).pvalue == 1


@pytest.mark.parametrize(("n", "block"), [(100, 10), (100, 7), (101, 2), (99, 33)])
def test_blocks_count_their_independent_pairs(n, block, rng):
    p = rng.random(n)
    y = (p < 0.5).astype(int)
    result = BoundTest(SKCE(Gaussian(0.5), block=block))(y, p)
    pairs = (n // block) * (block // 2)
    assert result.pvalue == pytest.approx(np.exp(-pairs / 2 * (result.statistic / 2) ** 2), rel=1e-12)


def test_the_bound_can_be_given():
    p, y = three_classes()
    value = SKCE(TOTAL_VARIATION)(y, p).value
    assert BoundTest(SKCE(TOTAL_VARIATION), bound=0.5)(y, p).pvalue == pytest.approx(
        np.exp(-25 * 4 * value**2), rel=1e-12
    )


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Exponential(0.3), 1),
        (Gaussian(), 1),
        (Matern(2.5, 2.0), 1),
        (Identity(), 1),
        (3.0 * Gaussian(1.0) + Exponential(1.0), 4),
        ((3.0 * Gaussian(1.0)) * (2.0 * Exponential(1.0)), 6),
        (LabelMatrix(((1.0, 0.5), (0.5, 1.0))), 0.5),
        (LabelMatrix(((1.0, -1.0), (-1.0, 1.0))), 2),
    ],
    ids=repr,
)
def test_the_largest_value(kernel, value):
    assert peak(kernel) == value


@pytest.mark.parametrize("matrix", [np.eye(3), [[1, -0.4, 0], [-0.4, 1, 0.2], [0, 0.2, 2]]])
def test_no_term_exceeds_the_bound(matrix, rng):
    """Certain predictions that are wrong have the longest residuals."""
    labels = LabelMatrix(matrix)
    p = np.vstack([np.eye(3)[rng.integers(0, 3, 300)], rng.dirichlet(np.ones(3), 100)])
    r = (np.eye(3)[rng.integers(0, 3, 400)] - p) @ labels.root
    largest = np.abs(r @ r.T).max()
    assert largest <= 2 * peak(labels) + 1e-12
    assert largest == pytest.approx(2 * peak(labels), rel=1e-12)


@pytest.mark.parametrize("estimator", [SKCE(), SKCE(unbiased=False), SKCE(block=2)], ids=repr)
@pytest.mark.parametrize("n", [8, 100])
def test_the_level_holds_at_every_n(estimator, n, rejections, bounds):
    assert rejections(BoundTest(estimator), "classes", n, 100) <= bounds(100)[1]


def test_large_errors_are_found():
    p = np.linspace(0.01, 0.99, 400)
    assert BoundTest(SKCE(unbiased=False))((p < 0.5).astype(int), p).pvalue < 1e-6
    p = np.linspace(0.01, 0.99, 1000)
    assert BoundTest()((p < 0.5).astype(int), p).pvalue < 0.05


def test_degenerate_input(degenerate):
    for unbiased in (True, False):
        result = BoundTest(SKCE(unbiased=unbiased))(*degenerate)
        assert 0 < result.pvalue <= 1
        assert "a bound on the p-value, with terms of at most 2" in result.notes


def test_no_residuals_no_evidence():
    assert BoundTest(SKCE(unbiased=False))([0, 1], [0.0, 1.0]).pvalue == 1


def test_an_unbounded_kernel_needs_a_bound():
    y, predictions = [0.0, 1.0], Normal([0.0, 1.0], 1.0)
    with pytest.raises(InputError, match=r"Energy\(\) has no known bound: give one as BoundTest\(bound=...\)"):
        BoundTest(SKCE(on_targets=Energy()))(y, predictions)
    assert BoundTest(SKCE(on_targets=Energy()), bound=10.0)(y, predictions).pvalue <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bound": 0}, "bound must be a positive number, or None to derive it; got 0"),
        ({"bound": float("inf")}, "bound must be a positive number"),
        ({"estimator": Gaussian()}, "estimator must be an SKCE; got Gaussian"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        BoundTest(**settings)


def test_weights_are_refused():
    with pytest.raises(InputError, match="BoundTest takes no sample_weight"):
        BoundTest()([0, 1], [0.3, 0.4], sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("unbiased", [True, False])
def test_a_matrix_that_makes_no_difference_between_classes_sees_no_error(unbiased):
    constant = LabelMatrix(((1.0, 1.0), (1.0, 1.0)))
    result = BoundTest(SKCE(on_targets=constant, unbiased=unbiased))([0, 1, 0], [0.9, 0.1, 0.8])
    assert result.pvalue == 1
    assert result.notes[-1].endswith("makes no difference between classes: it sees no error at all")
