"""A base loss plus a weight times a calibration error; squared error with a brake on sharpness."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor

from calibrant._validate import InputError
from calibrant.estimators.simplex.kde import Sharpness
from calibrant.losses.fused_loss import brier_loss, fused_error, fused_loss, log_loss
from calibrant.losses.heads import (
    Batch,
    Head,
    Outputs,
    class_head,
    class_numbers,
    log_probabilities,
    one_a_class,
    one_a_row,
)
from calibrant.losses.watched import WatchedLoss

BaseLoss = Callable[[Any, Tensor], Tensor]
"""Outputs and targets to a scalar."""


class CalibrationLoss(WatchedLoss):
    """``base + weight * error``: a loss that a network lowers by being calibrated as well as right.

    ``estimator`` is any estimator with a gradient: ``KDE(bandwidth=0.1)`` (the canonical error; with cross-entropy this
    is called KDE-XE), ``SKCE(Exponential(0.5))``, ``MMCE()``, ``UCME()``, ``SoftBinnedECE()``. ``head`` says what the
    outputs of the network mean: logits of classes, or :func:`normal_head`, :func:`mixture_head` for regression. ``base``
    is a loss of outputs and targets; without one it is the log loss of the head, which is cross-entropy for classes.

    The error is that of the batch: give batches of a hundred rows or more, and fix bandwidths and length scales, which
    would otherwise change from batch to batch. A batch of one row has nothing to compare, and gives the base loss with a
    warning. The module has no state and works in double precision under autocast. O(n^2) for a batch of n rows.

    Of logits, KDE, Sharpness, SKCE, KCE, MMCE, UCME and SoftBinnedECE with given settings are fused: value and gradient in one
    pass that never waits for the device, can be compiled as one graph and captured. What is wrong with a batch is raised at
    once on the host and with ``check=True``, on a GPU by a later call or by :meth:`check`. Other errors and heads check at once.

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
        check: bool = False,
    ) -> None:
        super().__init__(check=check)
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
        self._fused = fused_error(estimator)

    def extra_repr(self) -> str:
        """The settings."""
        return f"estimator={self.estimator!r}, weight={self.weight:g}"

    def forward(self, outputs: Outputs, targets: Tensor) -> Tensor:
        """The loss of a batch, a scalar in the precision of the outputs, but at least single."""
        if not self._is_fused(outputs):
            base, error = self._in_general(outputs, targets)
        elif self.base is None or self.base is squared_error:
            return self._by_fused(outputs, targets, has_base=True, weight=self.weight)
        else:
            base, error = self.parts(outputs, targets)
        return base if self.weight == 0 else base + self.weight * error

    def parts(self, outputs: Outputs, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The base loss and the error by themselves, with gradients: to look at, or to combine in another way."""
        if not self._is_fused(outputs):
            return self._in_general(outputs, targets)
        error = self._by_fused(outputs, targets, has_base=False, weight=1.0 if self.weight else 0.0)
        if self.base is None or self.base is squared_error:
            return self._by_fused(outputs, targets, has_base=True, weight=0.0), error
        return self._base(outputs, targets).to(error.dtype), error

    def _is_fused(self, outputs: Outputs) -> bool:
        if self.head is not class_head or not isinstance(outputs, Tensor) or outputs.ndim not in (1, 2):
            return False
        n, k = outputs.shape[0], max(outputs.shape[1], 2) if outputs.ndim == 2 else 2
        return self.weight == 0 or n < 2 or (self._fused is not None and self._fused.fits(n, k))

    def _by_fused(self, outputs: Outputs, targets: Tensor, *, has_base: bool, weight: float) -> Tensor:
        """The base loss, if it is asked for, plus the weighted error; gradients are made with the value."""
        z = one_a_class(outputs)
        y = one_a_row(targets, z.shape[0])
        if y.is_floating_point() and z.ndim == 2 and z.shape[1] > 2:
            class_numbers(y, *z.shape)  # which refuses them
        error = self._fused
        if weight == 0 or z.shape[0] < 2:
            error = None
            if weight:
                self._warn_once(stacklevel=6)
        base = (brier_loss if self.base is squared_error else log_loss) if has_base else None
        again = None if torch.compiler.is_compiling() else partial(self._again, has_base, weight)
        value = fused_loss(z, y, base, error, weight, again)
        self.watch(value, partial(self._explain, outputs, targets))
        return value

    def _again(self, has_base: bool, weight: float, outputs: Tensor, targets: Tensor) -> Tensor:
        base, error = self._in_general(outputs, targets)
        return base + weight * error if has_base else weight * error

    def _explain(self, outputs: Outputs, targets: Tensor) -> NoReturn:
        class_head(outputs, targets)
        raise InputError(f"{self.estimator!r} is not finite on this batch: its settings do not fit the outputs")

    def _in_general(self, outputs: Outputs, targets: Tensor) -> tuple[Tensor, Tensor]:
        batch = self.head(outputs, targets)
        first = outputs if isinstance(outputs, Tensor) else outputs[0]
        base = batch.losses.mean() if self.base is None else self._base(outputs, targets)
        dtype = torch.promote_types(first.dtype, torch.float32)
        return base.to(dtype), self._error(batch).to(dtype)

    def _base(self, outputs: Outputs, targets: Tensor) -> Tensor:
        assert self.base is not None
        base = self.base(outputs, targets)
        if not isinstance(base, Tensor) or base.ndim != 0:
            raise InputError(f"base must give a scalar tensor, as with reduction='mean'; {self.base!r} does not")
        return base

    def _error(self, batch: Batch) -> Tensor:
        nothing = batch.losses.sum() * 0
        if self.weight == 0:
            return nothing
        if len(batch) < 2:
            self._warn_once(stacklevel=7)
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

    def _warn_once(self, stacklevel: int) -> None:
        """Said of the caller of the module, who is so many calls away."""
        if self._has_warned:
            return
        self._has_warned = True
        message = (
            "a batch of one row has no other to compare with: its loss is the base loss alone (said once; "
            "DataLoader(drop_last=True) avoids such batches)"
        )
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """The Brier score: ``mean (p - y)^2`` for two classes, the mean of sums over classes for more.

    >>> round(float(squared_error(torch.tensor([0.0, 0.0]), torch.tensor([0, 1]))), 4)
    0.25
    """
    p = torch.exp(log_probabilities(logits))
    n, k = p.shape
    gap = p - torch.nn.functional.one_hot(class_numbers(targets, n, k), k)
    error = (gap[:, 1] ** 2 if k == 2 else (gap**2).sum(dim=1)).mean()
    return error.to(torch.promote_types(logits.dtype, torch.float32))


class SharpnessRegularised(CalibrationLoss):
    """``MSE + gamma E ||E[y | f]||^2``: squared error and squared calibration error in one, up to a factor.

    As ``MSE = CE^2 + E||y||^2 - E||E[y | f]||^2``, minimising ``MSE + lambda CE^2`` is minimising this with
    ``gamma = lambda / (lambda + 1)``. The second term, called sharpness, is a mean of squared frequencies by kernel
    regression, debiased like :class:`~calibrant.estimators.Sharpness`.
    Popordanoska, Sayer & Blaschko (2022), equation (6).

    >>> loss = SharpnessRegularised.of_weight(1.0, bandwidth=0.1)
    >>> loss.gamma
    0.5
    """

    def __init__(
        self,
        gamma: float = 0.5,
        *,
        bandwidth: float = 0.1,
        debias: bool | Literal["partial"] = True,
        check: bool = False,
    ) -> None:
        if not 0 <= gamma < 1:
            raise InputError(f"gamma must be at least 0 and below 1, as lambda / (lambda + 1) is; got {gamma!r}")
        super().__init__(Sharpness(bandwidth=bandwidth, debias=debias), gamma, base=squared_error, check=check)

    @classmethod
    def of_weight(
        cls, weight: float, *, bandwidth: float = 0.1, debias: bool | Literal["partial"] = True
    ) -> "SharpnessRegularised":
        """For a weight lambda of the squared calibration error."""
        if not weight >= 0:
            raise InputError(f"weight must be a number of at least 0; got {weight!r}")
        return cls(weight / (weight + 1), bandwidth=bandwidth, debias=debias)

    @property
    def gamma(self) -> float:
        """The weight of the sharpness."""
        return self.weight
