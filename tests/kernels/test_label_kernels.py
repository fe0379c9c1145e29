import numpy as np
import pytest

from calibrant import SKCE, Ensemble
from calibrant._validate import InputError
from calibrant.kernels import Identity, LabelMatrix


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
