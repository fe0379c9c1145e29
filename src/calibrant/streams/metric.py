"""An estimator in the manner of torchmetrics: an object that is updated, computed and reset, alone or in many processes."""

import sys
from collections import Counter
from functools import cache
from typing import Any, Self

from calibrant._array import looked_at
from calibrant._validate import RANGE_SLACK, InputError, as_array, check_finite
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import adapted, is_fractional
from calibrant.results import Estimate
from calibrant.streams.states import from_dict, state
from calibrant.typing import Array, ArrayLike

SWAPPED = (
    "the arguments look swapped: a StreamMetric takes predictions first, update(preds, target), as torchmetrics does"
)


class StreamMetric:
    """An estimator (or several) that is fed batch by batch, in loops that were written for torchmetrics.

    **Predictions come first**, ``update(preds, target)``, as in torchmetrics and unlike everywhere else in calibrant;
    arguments that are swapped are recognised and refused. ``preds`` are logits, probabilities or any of calibrant's
    distributions; ``logits`` says which of the first two, and where it does not, values below 0 or above 1 do. ``labels`` and
    ``pos_label`` name classes as everywhere, and ``like`` is that of :func:`~calibrant.state`.

    ``compute()`` gives the estimate, ``float()`` of which is what loggers want. Sums are kept on the host: batches may lie on any
    device, and ``to(device)`` changes nothing. Under ``torch.distributed`` the processes exchange their small states (JSON, a
    few kilobytes) and every one computes the estimate of all rows: merging is exact, so it does not depend on their number.

    In a program that has imported torchmetrics it is one of its metrics: a part of a ``MetricCollection`` or a Lightning
    module, reset by its trainer. Then ``compute()`` gives a tensor, and a mapping of them for several estimators;
    ``estimate()`` gives what it would have given.

    >>> from calibrant import ECE
    >>> metric = StreamMetric(ECE())
    >>> metric.update(preds=[0.9, 0.2], target=[1, 0])
    >>> metric.update([0.7, 0.4, 0.6], [1, 0, 1])
    >>> round(float(metric.compute()), 4)
    0.28
    >>> metric.reset()
    """

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """One of torchmetrics where that is used."""
        kind = collected() if cls is StreamMetric and "torchmetrics" in sys.modules else cls
        return super().__new__(kind)

    def __init__(
        self,
        *estimators: Any,
        logits: bool | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        like: tuple[ArrayLike, ArrayLike] | None = None,
        process_group: Any = None,
    ) -> None:
        self._empty = state(*estimators, like=like)
        self._group = process_group
        self._names = {"labels": labels, "pos_label": pos_label}
        self._are_logits = logits
        self._were_given = logits is not None
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
        if isinstance(target, Distribution):
            raise InputError(f"target is a {type(target).__name__}: {SWAPPED}")
        found: Any = preds if isinstance(preds, Distribution) else adapted(preds)
        truth = looked_at(as_array(target, "target"))  # metrics have no gradients
        if found is None:
            scores = looked_at(as_array(preds, "preds"))
            if truth.ndim > scores.ndim or (is_fractional(truth) and not is_fractional(scores)):
                raise InputError(f"target holds what preds should: {SWAPPED}")
            found = Categorical.from_logits(scores) if self._holds_logits(scores) else preds_of(preds, scores)
        return before.update(truth, found, sample_weight=weight, **self._names, **options)

    def _holds_logits(self, scores: Array) -> bool:
        """Whether a batch is of logits: as was said, or as batches before it, or by its range."""
        if self._were_given or self._are_logits or not scores.shape[0]:
            return bool(self._are_logits)
        low, high = check_finite(scores, "preds")
        if low >= -RANGE_SLACK and high <= 1 + RANGE_SLACK:
            self._are_logits = False
            return False
        if self._are_logits is False:
            raise InputError(
                f"preds were probabilities in earlier batches, and now one is {low if low < 0 else high:g}: if they are logits, "
                "say so, StreamMetric(..., logits=True)"
            )
        if low >= 0:
            raise InputError(
                f"preds lie between {low:g} and {high:g}: logits? Then say so, StreamMetric(..., logits=True); percentages are "
                "to be divided by 100"
            )
        self._are_logits = True
        return True

    def compute(self) -> Any:
        """The estimate from all batches so far, of all processes."""
        return self.estimate()

    def estimate(self) -> Any:
        """The same; a tuple of them for several estimators."""
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

    def to(self, *device: Any, **options: Any) -> Self:
        """The metric itself: it takes batches of any device."""
        return self

    def __repr__(self) -> str:
        return f"<StreamMetric: {self.state.n:,} rows of {self._empty!r}>"


def preds_of(preds: ArrayLike, scores: Array) -> ArrayLike:
    """What to read probabilities from: data frames have names, which arrays of theirs have not."""
    return preds if hasattr(preds, "columns") else scores


@cache
def collected() -> Any:
    """The class of metrics that are torchmetrics', too."""
    import torch
    from torchmetrics import Metric

    class CollectedMetric(StreamMetric, Metric):  # type: ignore[misc]
        """A :class:`StreamMetric` of which torchmetrics takes care."""

        is_differentiable = False
        higher_is_better = False
        full_state_update = False

        def __init__(self, *estimators: Any, **options: Any) -> None:
            Metric.__init__(self)
            StreamMetric.__init__(self, *estimators, **options)

        def __call__(self, *batch: Any, **options: Any) -> Any:
            return self.tensors(StreamMetric.__call__(self, *batch, **options))

        forward = __call__

        def compute(self) -> Any:
            return self.tensors(self.estimate())

        def tensors(self, found: Any) -> Any:
            """Estimates as numbers of torch, by name where there are several."""
            if isinstance(found, Estimate):
                return torch.tensor(float(found), dtype=self.dtype, device=self.device)
            return dict(zip(numbered([one.name for one in found]), map(self.tensors, found), strict=True))

        def reset(self) -> None:
            Metric.reset(self)
            StreamMetric.reset(self)

        to = Metric.to
        __repr__ = StreamMetric.__repr__
        __hash__ = Metric.__hash__

    CollectedMetric.__module__, CollectedMetric.__qualname__ = __name__, "CollectedMetric"
    return CollectedMetric


def __getattr__(name: str) -> Any:
    """The class by its name, which is how pickles ask for it."""
    if name == "CollectedMetric":
        return collected()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def numbered(names: list[str]) -> list[str]:
    """Names with a number behind those that came before.

    >>> numbered(["ECE", "Brier", "ECE"])
    ['ECE', 'Brier', 'ECE 2']
    """
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found
