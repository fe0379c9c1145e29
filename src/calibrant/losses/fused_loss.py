"""A base loss plus a fused error with its gradient, and which estimators are fused."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from calibrant._validate import InputError
from calibrant.estimators.kernel_errors.kernel_sums import compiled_law
from calibrant.estimators.kernel_errors.skce import KCE, MMCE, SKCE
from calibrant.estimators.kernel_errors.ucme import UCME, SampledLocations
from calibrant.estimators.simplex.kde import KDE, Sharpness
from calibrant.kernels import Exponential, Gaussian, Identity, Kernel
from calibrant.losses.dirichlet_errors import FusedKDE
from calibrant.losses.event_errors import SPAN, FusedMMCE, FusedSoftBins
from calibrant.losses.fused_error import ClassRows, FusedError, ValueAndSlope
from calibrant.losses.pair_errors import FusedSKCE, FusedUCME, KernelLaw
from calibrant.losses.soft_binned import SoftBinnedECE

Base = Callable[[ClassRows], ValueAndSlope]
"""From rows to a loss."""


def fused_error(estimator: object) -> FusedError | None:
    """The same error with a gradient in one pass, or ``None`` for estimators and settings that have none."""
    make = _FUSED.get(type(estimator))
    return None if make is None else make(estimator)


def log_loss(rows: ClassRows) -> ValueAndSlope:
    """Cross-entropy."""
    return ValueAndSlope(rows.cross_entropy(), rows.observed, -1 / len(rows))


def brier_loss(rows: ClassRows) -> ValueAndSlope:
    """Squared error as :func:`squared_error` has it: of two classes that of one."""
    gap, scale = rows.p - rows.observed, (0.5 if rows.k == 2 else 1.0) / len(rows)
    return ValueAndSlope((gap**2).sum() * scale + 0 * rows.cross_entropy(), rows.p * gap, 2 * scale)


def fused_loss(
    logits: Tensor, targets: Tensor, base: Base | None, error: FusedError | None, weight: float, again: Any
) -> Tensor:
    """``base + weight * error`` of a batch, in the precision of the logits, but at least single; never waits for the device.

    ``again(logits, targets)`` is the same by operations that record gradients, for second derivatives.
    """
    if torch.is_autocast_enabled(logits.device.type):
        with torch.autocast(logits.device.type, enabled=False):
            return fused_loss(logits, targets, base, error, weight, again)
    if torch.is_grad_enabled() and logits.requires_grad:
        return _FusedLoss.apply(logits, targets, base, error, weight, again)  # type: ignore[no-untyped-call]
    return _value_and_gradient(logits, targets, base, error, weight, False)[0]


class _FusedLoss(torch.autograd.Function):
    """The gradient is made with the value and kept: going back is one multiplication."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        targets: Tensor,
        base: Base | None,
        error: FusedError | None,
        weight: float,
        again: Any,
    ) -> Tensor:
        value, gradient = _value_and_gradient(logits, targets, base, error, weight, True)
        ctx.save_for_backward(gradient, logits, targets)
        ctx.again = again
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        gradient, logits, targets = ctx.saved_tensors
        if torch.compiler.is_compiling():
            return (gradient * grad).to(logits.dtype), None, None, None, None, None
        if torch.is_grad_enabled():  # somebody wants second derivatives
            return _twice(ctx.again, logits, targets, grad), None, None, None, None, None
        product = gradient * grad
        if not product.is_cuda and not math.isfinite(float(product.sum())):
            raise InputError(
                "the gradient of the loss has NaN or infinite values: check what the loss is multiplied by; if that is "
                "finite, the estimator has no gradient at these outputs"
            )
        return product.to(logits.dtype), None, None, None, None, None


def _twice(again: Any, logits: Tensor, targets: Tensor, grad: Tensor) -> Tensor:
    value = again(logits, targets)
    return torch.autograd.grad(value, logits, grad.to(value.dtype), create_graph=True)[0]


def _value_and_gradient(
    logits: Tensor, targets: Tensor, base: Base | None, error: FusedError | None, weight: float, wants_gradient: bool
) -> tuple[Tensor, Tensor]:
    rows, dtype = ClassRows.of(logits, targets), torch.promote_types(logits.dtype, torch.float32)
    first = ValueAndSlope(0 * rows.cross_entropy()) if base is None else base(rows)
    value, slope = first.value.to(dtype), None if first.slope is None else first.slope * first.scale
    if error is not None:
        found = error(rows, wants_gradient=wants_gradient)
        value = value + (found.value if weight == 1 else weight * found.value).to(dtype)
        if found.slope is not None:
            slope = _added(torch.zeros_like(rows.p) if slope is None else slope, found, weight)
    if not wants_gradient:
        return value, value
    gradient = torch.zeros_like(rows.p) if slope is None else rows.to_logits(slope)
    return value, (gradient[:, 1] if logits.ndim == 1 else gradient).to(dtype)


def _added(slope: Tensor, found: ValueAndSlope, weight: float) -> Tensor:
    """The gradient with that of the error, times its weight."""
    assert found.slope is not None
    scale = found.scale if weight == 1 else weight * found.scale
    if found.column is not None:
        return slope.scatter_add_(1, found.column, found.slope * scale)
    if isinstance(scale, Tensor):
        return slope.addcmul_(found.slope, scale)
    return slope.add_(found.slope, alpha=scale)


def _law(kernel: Kernel) -> KernelLaw | None:
    """The law of an exponential or Gaussian kernel with Euclidean distances."""
    if not isinstance(kernel, Exponential | Gaussian):
        return None
    law = compiled_law(replace(kernel, lengthscale=1.0) if kernel.is_open else kernel)
    return None if law is None else KernelLaw(law[1], None if kernel.is_open else law[0])


def _of_skce(estimator: SKCE) -> FusedError | None:
    law = _law(estimator.on_predictions)
    if law is None or not _is_of_classes(estimator.on_targets) or estimator.block is not None or estimator.route:
        return None
    return FusedSKCE(law, unbiased=estimator.unbiased)


def _of_kce(estimator: KCE) -> FusedError | None:
    law = _law(estimator.on_predictions)
    if law is None or not _is_of_classes(estimator.on_targets):
        return None
    return FusedSKCE(law, unbiased=False, is_root=True)


def _of_ucme(estimator: UCME) -> FusedError | None:
    law, locations = _law(estimator.on_predictions), estimator.locations
    if law is None or not _is_of_classes(estimator.on_targets) or type(locations) is not SampledLocations:
        return None
    return FusedUCME(law, locations.count, locations.seed)


def _is_of_classes(kernel: Kernel | None) -> bool:
    return kernel is None or type(kernel) is Identity


def _of_mmce(estimator: MMCE) -> FusedError | None:
    return FusedMMCE(estimator.lengthscale) if estimator.lengthscale * SPAN > 1 else None


def _of_kde(estimator: KDE | Sharpness) -> FusedError | None:
    if isinstance(estimator.bandwidth, str):
        return None
    bandwidth, debias, lens = float(estimator.bandwidth), estimator.debias, estimator.lens
    if isinstance(estimator, KDE):
        return FusedKDE(float(estimator.p), bandwidth, debias, lens, estimator.root)
    return FusedKDE(None, bandwidth, debias, lens)


def _of_soft_bins(estimator: SoftBinnedECE) -> FusedError:
    return FusedSoftBins(estimator.bins, estimator.temperature, estimator.p, estimator.lens)


_FUSED: dict[type, Callable[[Any], FusedError | None]] = {
    KDE: _of_kde,
    Sharpness: _of_kde,
    SKCE: _of_skce,
    KCE: _of_kce,
    UCME: _of_ucme,
    MMCE: _of_mmce,
    SoftBinnedECE: _of_soft_bins,
}
"""A closed set: types that derive from these may be something else."""
