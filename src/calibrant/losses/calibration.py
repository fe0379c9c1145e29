"""A base loss plus a weight times a calibration error, with its gradient."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from calibrant._validate import InputError
from calibrant.losses.heads import Batch, Head, Outputs, class_head

BaseLoss = Callable[[Any, Tensor], Tensor]
"""Outputs and targets to a scalar."""


class CalibrationLoss(nn.Module):
    """``base + weight * error``: a loss that a network lowers by being calibrated as well as right.

    ``estimator`` is any estimator with a gradient: ``KDE(bandwidth=0.1)`` (the canonical error; with cross-entropy this
    is called KDE-XE), ``SKCE(Exponential(0.5))``, ``MMCE()``, ``UCME()``, ``SoftBinnedECE()``. ``head`` says what the
    outputs of the network mean: logits of classes, or :func:`normal_head`, :func:`mixture_head` for regression. ``base``
    is a loss of outputs and targets; without one it is the log loss of the head, which is cross-entropy for classes.

    The error is that of the batch: give batches of a hundred rows or more, and fix bandwidths and length scales, which
    would otherwise change from batch to batch. A batch of one row has nothing to compare, and gives the base loss with a
    warning. The module has no state and works in double precision under autocast. O(n^2) for a batch of n rows.

    >>> from calibrant import SKCE
    >>> from calibrant.kernels import Exponential
    >>> loss = CalibrationLoss(SKCE(Exponential(0.5)), weight=2.0)
    >>> logits, labels = torch.tensor([[2.0, 0.0], [1.0, 0.5], [0.0, 1.0]]), torch.tensor([0, 1, 1])
    >>> base, error = loss.parts(logits, labels)
    >>> bool(loss(logits, labels) == base + 2 * error)
    True
    """

    def __init__(
        self,
        estimator: Callable[..., Any],
        weight: float = 1.0,
        *,
        base: BaseLoss | None = None,
        head: Head = class_head,
    ) -> None:
        super().__init__()
        if not callable(estimator) or isinstance(estimator, type):
            raise InputError(f"estimator must be an estimator such as KDE(bandwidth=0.1); got {estimator!r}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise InputError(f"weight must be a number of at least 0; got {weight!r}")
        if base is not None and not callable(base):
            raise InputError(f"base must be a loss of outputs and targets such as FocalLoss(), or None; got {base!r}")
        if not callable(head):
            raise InputError(f"head must be a function such as class_head or normal_head; got {head!r}")
        self.estimator = estimator
        self.weight = float(weight)
        self.base = base
        self.head = head
        self._has_warned = False

    def extra_repr(self) -> str:
        """The settings."""
        return f"estimator={self.estimator!r}, weight={self.weight:g}"

    def forward(self, outputs: Outputs, targets: Tensor) -> Tensor:
        """The loss of a batch, a scalar in the precision of the outputs, but at least single."""
        base, error = self.parts(outputs, targets)
        return base if self.weight == 0 else base + self.weight * error

    def parts(self, outputs: Outputs, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The base loss and the error by themselves, with gradients: to look at, or to combine in another way."""
        first = outputs if isinstance(outputs, Tensor) else outputs[0]
        batch = self.head(outputs, targets)
        base = batch.losses.mean() if self.base is None else self.base(outputs, targets)
        if not isinstance(base, Tensor) or base.ndim != 0:
            raise InputError(f"base must give a scalar tensor, as with reduction='mean'; {self.base!r} does not")
        dtype = torch.promote_types(first.dtype, torch.float32)
        return base.to(dtype), self._error(batch).to(dtype)

    def _error(self, batch: Batch) -> Tensor:
        nothing = batch.losses.sum() * 0
        if self.weight == 0:
            return nothing
        if len(batch) < 2:
            self._warn_once()
            return nothing
        with torch.autocast(batch.losses.device.type, enabled=False):
            result = self.estimator(batch.targets, batch.predictions)
        value = getattr(result, "value", result)
        if not isinstance(value, Tensor):
            if batch.losses.requires_grad:
                raise InputError(
                    f"{self.estimator!r} has no gradient and cannot be trained on: use KDE, SKCE, MMCE, UCME or "
                    "SoftBinnedECE"
                )
            value = torch.as_tensor(value, dtype=torch.float64, device=nothing.device)
        if not math.isfinite(number := float(value.detach())):
            raise InputError(f"{self.estimator!r} is {number} on this batch: its settings do not fit the outputs")
        return value

    def _warn_once(self) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        message = (
            "a batch of one row has no other to compare with: its loss is the base loss alone (said once; "
            "DataLoader(drop_last=True) avoids such batches)"
        )
        warnings.warn(message, UserWarning, stacklevel=7)  # the caller of the module
