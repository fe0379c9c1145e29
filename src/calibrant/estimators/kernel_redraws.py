"""The kernel error under redrawn class labels: the kernel on predictions is evaluated once for many redraws."""

from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.kernel_problem import coordinates
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.residuals import residuals

STORED = 4096
"""Up to so many rows the kernel matrix is kept; beyond, its tiles are made again for every batch of redraws."""

BATCH = 64
"""Redraws that share a kernel tile."""

TILE = 512


@dataclass(frozen=True, eq=False)
class LabelRedraws:
    """``sum_{i != j} k_ij <r_i, r_j>``, normalised, for stacks of redrawn labels: a matrix product a batch."""

    kernel: Kernel
    on_targets: Identity | LabelMatrix
    predictions: Categorical
    weights: np.ndarray | None
    unbiased: bool

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each redraw, ``(m,)``."""
        points = to_numpy(coordinates(self.predictions, self.kernel, self.on_targets)).astype(np.float64)
        stored = self.kernel(points, points) if len(points) <= STORED else None
        batches = [targets[i : i + BATCH] for i in range(0, len(targets), BATCH)]
        return np.concatenate([self._batch(batch, points, stored) for batch in batches])

    def _batch(self, targets: np.ndarray, points: np.ndarray, stored: np.ndarray | None) -> np.ndarray:
        n, m = len(points), len(targets)
        made = [residuals(self.on_targets, y, self.predictions).features for y in targets]
        features = np.stack([to_numpy(f).astype(np.float64) for f in made], axis=1)  # (n, m, q)
        if self.weights is not None:
            features = features * (self.weights * (n / self.weights.sum()))[:, None, None]
        flat = features.reshape(n, -1)
        sums = np.zeros(m)
        for start in range(0, n, TILE):
            rows = slice(start, start + TILE)
            tile = self.kernel(points[rows], points) if stored is None else stored[rows]
            sums += ((tile @ flat) * flat[rows]).reshape(-1, m, features.shape[2]).sum(axis=(0, 2))
        if not self.unbiased:
            return sums / n**2
        diagonal = self.kernel.diagonal(points)
        pairs = n * (n - 1) if self.weights is None else n**2 * (1 - (self.weights**2).sum() / self.weights.sum() ** 2)
        return (sums - np.einsum("n,nmq->m", diagonal, features**2)) / pairs
