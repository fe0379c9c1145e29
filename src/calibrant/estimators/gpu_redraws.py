"""The kernel error of redrawn class labels on the GPU where the predictions are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import on_gpu, to_numpy
from calibrant.distributions.base import Distribution, matched
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.accelerated import compiled_law
from calibrant.estimators.kernel_problem import unit_weights
from calibrant.kernels import Identity, Kernel
from calibrant.typing import Array

OF_A_GPU = 100.0
"""Pairs of labels that a GPU compares in the time of one multiplication on two cores."""


@dataclass(frozen=True, eq=False)
class GpuLabelRedraws:
    """``sum_{i != j} k_ij <r_i, r_j>``, normalised, for stacks of redrawn labels of three or more classes.

    The kernel is compared with pairs of equal labels; what depends on the predictions alone is made once. O(n^2) a redraw.
    """

    kernel: Kernel
    predictions: Categorical
    weights: np.ndarray | None
    unbiased: bool

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each redraw, ``(m,)``."""
        w = unit_weights(self.weights, len(self.predictions))
        labels = matched(targets if targets.dtype == np.uint8 else targets.astype(np.int32), self.predictions.matrix)
        if self.unbiased:
            return self._in_batches(self._sums, labels) / (len(w) ** 2 - (w**2).sum())
        sums, squares = (self._in_batches(made, labels) for made in (self._sums, self._sums.diagonal))
        return (sums + squares) / len(w) ** 2

    def _in_batches(self, made: Callable[[Array], Array], labels: Array) -> np.ndarray:
        """What is made of all redraws at once, or of fewer where the GPU has no room for that."""
        from calibrant._fused.room import in_smaller, room_for

        def batches(size: int) -> np.ndarray:
            return np.concatenate([to_numpy(made(labels[i : i + size])) for i in range(0, len(labels), size)])

        with room_for("redraws", len(self.predictions)):
            return in_smaller(batches, len(labels), 1, "{:,} redraws at once")

    @cached_property
    def _sums(self) -> Any:
        from calibrant._fused.cuda import dtype_of_pairs
        from calibrant._fused.cuda_redraws import LabelSums

        p, law = self.predictions.matrix, compiled_law(self.kernel)
        assert law is not None
        return LabelSums(p, p, matched(unit_weights(self.weights, len(p)), p), *law, dtype_of_pairs(p))

    def moved_by(self, move: Callable[[Any], Any]) -> Self:
        """The same where predictions are moved to; weights stay on the host."""
        return replace(self, predictions=move(self.predictions))

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_sums"}


def redraws_on_gpu(kernel: Kernel, on_targets: Kernel, predictions: Distribution) -> bool:
    """Whether :class:`GpuLabelRedraws` can be used."""
    if not isinstance(predictions, Categorical) or not isinstance(on_targets, Identity) or predictions.n_classes < 3:
        return False
    if compiled_law(kernel) is None or not on_gpu(predictions.matrix):
        return False
    from calibrant._fused.cuda import has_triton

    return has_triton()
