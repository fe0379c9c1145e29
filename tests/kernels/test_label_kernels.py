import numpy as np
import pytest

from calibrant import SKCE, Categorical, Ensemble, ExactTest
from calibrant._validate import InputError
from calibrant.estimators import UCME, GivenLocations
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, LabelMatrix
from calibrant.residuals import residuals


def test_identity_looks_at_all_coordinates():
    x = np.array([[0, 1], [0, 2]])
    assert Identity()(x, x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_label_matrix_looks_up_and_has_a_root():
    matrix = np.exp(-np.abs(np.subtract.outer(range(4), range(4))))
    kernel = LabelMatrix(matrix)
    labels = np.array([[3], [0], [1]])
    assert kernel(labels, labels) == pytest.approx(matrix[np.ix_([3, 0, 1], [3, 0, 1])])
    assert kernel.root @ kernel.root.T == pytest.approx(matrix, abs=1e-14)
    assert hash(kernel) == hash(LabelMatrix(matrix))


def test_a_label_matrix_takes_its_labels_alone():
    kernel = LabelMatrix(((1.0, 0.5), (0.5, 1.0)))
    with pytest.raises(InputError, match="label matrix of 2 classes takes labels from 0 to 1; found -1"):
        kernel(np.array([[0], [-1]]), np.array([[1]]))
    with pytest.raises(InputError, match="takes labels from 0 to 1; found 2"):
        kernel(np.array([[0]]), np.array([[2]]))
    with pytest.raises(InputError, match="label matrix is for class labels, integers from 0 to 1; got float64 numbers"):
        SKCE(on_targets=kernel)(np.array([0.5, 0.7]), Ensemble(np.array([[0.1, 0.2], [0.3, 0.9]])))


@pytest.fixture
def grades(rng):
    p = rng.dirichlet(np.ones(4), 120)
    return np.array([rng.choice(4, p=row) for row in p]), p


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Energy(), Exponential(2.0, power=1.5), Identity() + 0.5 * Gaussian(2.0)], ids=repr
)
def test_kernels_of_numbers_see_labels_as_numbers(kernel, grades):
    """``sum_ij k_ij (e_i - p_i)' L (e_j - p_j)`` by hand; a label matrix of the same numbers is the same kernel."""
    y, p = grades
    numbers = np.arange(4)[:, None]
    likeness, r = kernel(numbers, numbers), np.eye(4)[y] - p
    terms = Exponential(0.5)(p, p) * (r @ likeness @ r.T)
    found = SKCE(Exponential(0.5), kernel)(y, p)
    assert found.value == pytest.approx((terms.sum() - np.trace(terms)) / (120 * 119), rel=1e-10)
    same = SKCE(Exponential(0.5), LabelMatrix(likeness))
    assert found.value == pytest.approx(same(y, p).value, rel=1e-12)
    tests = [ExactTest(SKCE(Exponential(0.5), k), 49)(y, p).pvalue for k in (kernel, LabelMatrix(likeness))]
    assert tests[0] == tests[1]
    assert repr(kernel) in repr(found.estimator)


def test_two_classes_and_locations(grades, rng):
    q = rng.random(50)
    z = (rng.random(50) < q) * 1
    half = 1 - np.exp(-0.5)  # (e, -e)' L (e', -e') = 2 e e' (1 - exp(-1/2)), against 2 e e' of the identity
    found = [SKCE(Exponential(0.5), kernel)(z, q).value for kernel in (Gaussian(1.0), None)]
    assert found[0] == pytest.approx(half * found[1], rel=1e-10)
    y, p = grades
    places = GivenLocations(y[:3], p[:3])
    assert UCME(Exponential(0.5), Gaussian(1.0), places)(y, p).value > 0
    assert residuals(Gaussian(1.0), y, Categorical(p)).features.shape == (120, 4)


def test_an_open_length_scale_is_the_median_difference_of_labels(grades):
    y, p = grades
    assert SKCE(Exponential(0.5), Gaussian())(y, p).estimator.on_targets.kernel == Gaussian(1.0)
