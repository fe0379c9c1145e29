"""Kernels of streams, whose numbers must be known before the first row."""

from typing import Any

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.kernels import Kernel


def check_kernels(estimator: Any) -> None:
    """Refuse kernels with open length scales: medians of all data cannot be known before the last row."""
    for name in ("on_predictions", "on_targets"):
        kernel: Kernel | None = getattr(estimator, name)
        if kernel is not None and kernel.is_open:
            raise InputError(
                f"{name}={kernel!r} takes its length scale from the data, which a stream does not know yet: give one, such as "
                f"{type(kernel).__name__}(0.1), or take it from a first sample, state(..., like=(y_true, y_pred))"
            )


def check_target_kernel(estimator: Any, predictions: Distribution) -> None:
    """Refuse the default kernel on targets where that is not the identity of classes."""
    if estimator.on_targets is None and not isinstance(predictions, Categorical):
        raise InputError(
            f"on_targets must be given for a stream of {type(predictions).__name__} predictions, such as "
            "on_targets=Gaussian(1.0), or taken from a first sample, state(..., like=(y_true, y_pred))"
        )
