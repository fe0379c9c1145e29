import numpy as np
import pytest

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
