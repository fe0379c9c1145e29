"""An estimator in the manner of torchmetrics: an object that is updated, computed and reset, alone or in many processes."""

import sys
from typing import Any

from calibrant._validate import InputError, as_array
from calibrant.distributions.base import Distribution
from calibrant.distributions.reading.conversion import is_fractional
from calibrant.streams.states import from_dict, state
from calibrant.typing import ArrayLike

SWAPPED = (
    "the arguments look swapped: a StreamMetric takes predictions first, update(preds, target), as torchmetrics does"
)


class StreamMetric:
    """An estimator (or several) that is fed batch by batch, in loops that were written for torchmetrics.

    **Predictions come first**, ``update(preds, target)``, as in torchmetrics and unlike everywhere else in calibrant;
    arguments that are swapped are recognised and refused. ``preds`` are probabilities, not logits, or any of calibrant's
    distributions. ``compute()`` gives the estimate; ``float()`` of it is what loggers want. Under
    ``torch.distributed`` the processes exchange their small states (JSON, a few kilobytes) and every one computes
    the estimate of all rows: merging is exact, so it does not depend on their number. ``like`` is that of :func:`~calibrant.state`.

    >>> from calibrant import ECE
    >>> metric = StreamMetric(ECE())
    >>> metric.update(preds=[0.9, 0.2], target=[1, 0])
    >>> metric.update([0.7, 0.4, 0.6], [1, 0, 1])
    >>> round(float(metric.compute()), 4)
    0.28
    >>> metric.reset()
    """

    def __init__(
        self, *estimators: Any, like: tuple[ArrayLike, ArrayLike] | None = None, process_group: Any = None
    ) -> None:
        self._empty = state(*estimators, like=like)
        self._group = process_group
        self.state = self._empty

    def update(
        self, preds: ArrayLike, target: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any
    ) -> None:
        """Take in a batch."""
        self.state = self._after(self.state, preds, target, sample_weight, options)

    def __call__(
        self, preds: ArrayLike, target: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any
    ) -> Any:
        """Take in a batch, and give the estimate of the batch alone."""
        self.update(preds, target, sample_weight=sample_weight, **options)
        return self._after(self._empty, preds, target, sample_weight, {}).finalize()

    def _after(self, before: Any, preds: ArrayLike, target: ArrayLike, weight: Any, options: dict[str, Any]) -> Any:
        _check_order(preds, target)
        return before.update(target, preds, sample_weight=weight, **options)

    def compute(self) -> Any:
        """The estimate from all batches so far, of all processes."""
        return self.merged().finalize()

    def merged(self) -> Any:
        """The state of all processes; in a single one its own."""
        if "torch" not in sys.modules:  # then there are no other processes of torch's
            return self.state
        from torch import distributed

        if not (distributed.is_available() and distributed.is_initialized()):
            return self.state
        parts: list[Any] = [None] * distributed.get_world_size(self._group)
        distributed.all_gather_object(parts, self.state.to_dict(), group=self._group)
        total = self._empty
        for part in parts:
            total = total.merge(from_dict(part))
        return total

    def reset(self) -> None:
        """Forget all batches."""
        self.state = self._empty

    def __repr__(self) -> str:
        return f"<StreamMetric: {self.state.n:,} rows of {self._empty!r}>"


def _check_order(preds: ArrayLike, target: ArrayLike) -> None:
    if isinstance(target, Distribution):
        raise InputError(f"target is a {type(target).__name__}: {SWAPPED}")
    if isinstance(preds, Distribution):
        return
    truth, scores = as_array(target, "target"), as_array(preds, "preds")
    if truth.ndim > scores.ndim or (is_fractional(truth) and not is_fractional(scores)):
        raise InputError(f"target holds what preds should: {SWAPPED}")
