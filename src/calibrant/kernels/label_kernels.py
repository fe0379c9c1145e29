"""Kernels on class labels."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError
from calibrant.kernels.base import Kernel
from calibrant.kernels.metrics import check_points
from calibrant.typing import Array


@dataclass(frozen=True)
class Identity(Kernel):
    """1 for equal points, 0 for different ones: classes that have nothing in common.

    >>> Identity()(np.array([[0], [1]]), np.array([[1]]))
    array([[0.],
           [1.]])
    """

    def __call__(self, x: Array, y: Array) -> Array:
        """Whether all coordinates agree."""
        check_points(x, y)
        xp = namespace(x, y)
        same = [x[:, c][:, None] == y[:, c][None, :] for c in range(x.shape[1])]
        equal = same[0]
        for other in same[1:]:
            equal = equal & other
        return xp.astype(equal, xp.float64)


@dataclass(frozen=True)
class LabelMatrix(Kernel):
    """Any positive semi-definite matrix of similarities between k classes, such as that of ordered ones.

    >>> kernel = LabelMatrix(((1.0, 0.5), (0.5, 1.0)))
    >>> kernel(np.array([[0]]), np.array([[0], [1]]))
    array([[1. , 0.5]])
    """

    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise InputError(f"matrix must be square and symmetric; got shape {matrix.shape}")
        least = float(np.linalg.eigvalsh(matrix)[0])
        if least < -1e-10 * float(np.abs(matrix).max()):
            raise InputError(f"matrix must be positive semi-definite; its smallest eigenvalue is {least:.3g}")
        object.__setattr__(self, "matrix", tuple(map(tuple, matrix.tolist())))

    @property
    def root(self) -> np.ndarray:
        """A matrix R, ``(k, k)``, with ``R R' = matrix``."""
        values, vectors = np.linalg.eigh(np.asarray(self.matrix))
        return vectors * np.sqrt(np.maximum(values, 0))

    def __call__(self, x: Array, y: Array) -> Array:
        """Looked up."""
        check_points(x, y)
        xp = namespace(x, y)
        rows, columns = (self._checked(to_numpy(points)[:, 0]) for points in (x, y))
        return xp.asarray(np.asarray(self.matrix)[np.ix_(rows, columns)], device=getattr(x, "device", None))

    def _checked(self, labels: np.ndarray) -> np.ndarray:
        k = len(self.matrix)
        if labels.dtype.kind not in "iub":
            raise InputError(
                f"a label matrix is for class labels, integers from 0 to {k - 1}; got {labels.dtype} numbers"
            )
        strange = labels[(labels < 0) | (labels >= k)]
        if len(strange):
            raise InputError(f"a label matrix of {k} classes takes labels from 0 to {k - 1}; found {strange[0]}")
        return labels


@dataclass(frozen=True, repr=False)
class OnClasses(LabelMatrix):
    """A kernel of numbers on class labels 0, 1, ..., k - 1: neighbours are alike, as grades of a disease or stars are.

    Estimators make it of kernels such as ``Gaussian(1.0)`` where predictions are of classes.

    >>> from calibrant.kernels import Gaussian
    >>> kernel = OnClasses.of(Gaussian(1.0), 3)
    >>> kernel, kernel(np.array([[0]]), np.array([[0], [1], [2]])).round(4)
    (Gaussian(lengthscale=1.0, metric=Euclidean()), array([[1.    , 0.6065, 0.1353]]))
    """

    kernel: Kernel

    @classmethod
    def of(cls, kernel: Kernel, n_classes: int) -> Self:
        """Its matrix for so many classes."""
        labels = np.arange(n_classes)[:, None]
        return cls(np.asarray(kernel(labels, labels), dtype=np.float64).tolist(), kernel)

    def __repr__(self) -> str:
        return repr(self.kernel)
