"""Heads: from what a network puts out to predictions, targets and the log loss of each row.

A head is a function ``head(outputs, targets) -> Batch``; write one for a family of your own. All of it is done in double
precision, which autocast leaves alone: probabilities of 1e-40 have a gradient there and none in single precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from calibrant._array import common
from calibrant._validate import InputError, check_same_length
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.results import how_many

Outputs: TypeAlias = Tensor | tuple[Tensor, ...]
"""What a network puts out: a tensor with the rows first, or several."""

MIN_LOG_PROBABILITY = math.log(1e-200)
"""Logarithm of the smallest probability: its inverse, which gradients pass through, must be finite."""

MAX_PROBABILITY = 1 - 2.0**-53
"""The largest probability: what it leaves for the other classes must not be zero."""

MAX_LOG_VARIANCE = 60.0
"""Log variances beyond this, on either side, leave no room for squares of residuals."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Targets and predictions of n rows, and the log loss of each, ``(n,)``, with gradients: what a head gives.

    >>> batch = normal_head(torch.zeros(3, 2), torch.zeros(3))
    >>> len(batch), batch.targets.shape, batch.losses.shape
    (3, torch.Size([3]), torch.Size([3]))
    """

    targets: Tensor
    predictions: Distribution
    losses: Tensor

    def __len__(self) -> int:
        return len(self.predictions)


Head: TypeAlias = Callable[[Outputs, Tensor], Batch]
"""From outputs and targets to a batch."""


def class_head(outputs: Outputs, targets: Tensor) -> Batch:
    """Class probabilities from logits ``(n, k)``, or from log-odds of class 1, ``(n,)`` or ``(n, 1)``.

    Targets are class numbers ``(n,)``; for log-odds also the zeros and ones in floating point that torch asks for. The
    log loss is the cross-entropy.

    >>> batch = class_head(torch.tensor([[0.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1]))
    >>> batch.predictions, batch.losses
    (<Categorical: 2 predictions of 2 classes>, tensor([0.6931, 0.1269], dtype=torch.float64))
    """
    logs = log_probabilities(outputs)
    labels = class_numbers(targets, logs.shape[0], logs.shape[1])
    predictions = Categorical(torch.clamp(torch.exp(torch.clamp(logs, min=MIN_LOG_PROBABILITY)), max=MAX_PROBABILITY))
    return Batch(labels, predictions.checked(), -logs.gather(1, labels[:, None])[:, 0])


def normal_head(outputs: Outputs, targets: Tensor) -> Batch:
    """Normal predictions from means and log variances: ``(n, 2)``, or a pair of ``(n,)``. Targets are numbers ``(n,)``.

    >>> batch = normal_head(torch.zeros(3, 2), torch.zeros(3))
    >>> batch.predictions, round(float(batch.losses[0]), 4)
    (<Normal: 3 predictions>, 0.9189)
    """
    means, log_variances = _parts(outputs, ("mean", "log_variance"), 1)
    _check_widths(log_variances, "log_variance")
    y = _numbers(targets, means.shape[0])
    mean, log_variance = means[:, 0], log_variances[:, 0]
    losses = -_log_density(y, mean, log_variance)
    return Batch(y, Normal(mean, torch.exp(log_variance / 2)), losses)


def mixture_head(outputs: Outputs, targets: Tensor) -> Batch:
    """Mixtures of K normal components from logits of their weights, means and log variances.

    Outputs are ``(n, 3 K)`` in this order, or three of ``(n, K)``. Targets are numbers ``(n,)``.

    >>> mixture_head(torch.zeros(3, 6), torch.zeros(3)).predictions
    <Mixture: 3 predictions of 2 Normal components>
    """
    logits, means, log_variances = _parts(outputs, ("logits", "means", "log_variances"), None)
    _check_widths(log_variances, "log_variances")
    y = _numbers(targets, means.shape[0])
    logs = torch.log_softmax(logits, dim=1)
    scales = torch.exp(log_variances / 2)
    components = tuple(Normal(means[:, k], scales[:, k]) for k in range(means.shape[1]))
    weights = torch.exp(torch.clamp(logs, min=MIN_LOG_PROBABILITY))
    losses = -torch.logsumexp(logs + _log_density(y[:, None], means, log_variances), dim=1)
    return Batch(y, Mixture(components, weights), losses)


def log_probabilities(outputs: Outputs) -> Tensor:
    """Log probabilities of all classes, ``(n, k)``, in double precision, for logits or log-odds."""
    z = _double(one_a_class(outputs), "logits")
    if z.ndim == 1:
        z = torch.stack([torch.zeros_like(z), z], dim=1)
    return torch.log_softmax(z, dim=1)


def one_a_class(outputs: Outputs) -> Tensor:
    """Logits ``(n, k)``, or log-odds ``(n,)``, of which nothing but the shape was looked at."""
    if not isinstance(outputs, Tensor):
        raise InputError(f"logits must be one tensor; got {_described(outputs)}")
    _check_floating(outputs, "logits")
    if outputs.ndim > 2:
        raise InputError(
            f"logits must be (n, k), or (n,) for two classes; got shape {tuple(outputs.shape)}: "
            "put the classes last and flatten the rest, e.g. logits.movedim(1, -1).flatten(0, -2)"
        )
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def class_numbers(targets: Tensor, n: int, k: int) -> Tensor:
    """Class numbers from 0 to k - 1, ``(n,)``; ones and zeros in floating point are taken for two classes."""
    y = one_a_row(targets, n)
    if y.is_floating_point():
        if k > 2 or not bool(((y == 0) | (y == 1)).all()):
            raise InputError(
                f"targets must be integer class numbers; got {y.dtype} values like {y[0].item():g}: "
                "use targets.long(), or targets.argmax(1) of one-hot rows"
            )
        y = y.long()
    wrong = (y < 0) | (y >= k)
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        raise InputError(
            f"targets must be class numbers from 0 to {k - 1}; found {int(y[row])} in row {row}: "
            "drop rows without a class, and count classes from 0"
        )
    return y.long()


def _numbers(targets: Tensor, n: int) -> Tensor:
    """Real targets, ``(n,)``, in double precision."""
    y = one_a_row(targets, n)
    return _double(y if y.is_floating_point() else y.double(), "targets")


def one_a_row(targets: Tensor, n: int) -> Tensor:
    """Targets ``(n,)``, of which nothing but the shape was looked at."""
    if not isinstance(targets, Tensor):
        raise InputError(f"targets must be a tensor; got {_described(targets)}: use torch.as_tensor")
    if targets.is_complex():
        raise InputError(f"targets must be class numbers, or real numbers; got {_described(targets)}: use targets.real")
    targets = common(targets)
    y = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    if y.ndim != 1:
        raise InputError(
            f"targets must be one value per row, (n,); got shape {tuple(targets.shape)}: "
            "use targets.argmax(1) of one-hot rows, or targets.flatten()"
        )
    check_same_length(y.shape[0], n, "targets", "outputs")
    return y


def _parts(outputs: Outputs, names: tuple[str, ...], width: int | None) -> list[Tensor]:
    """The outputs by name, each ``(n, width)``, checked and in double precision; width None: as many as there are."""
    count = len(names)
    if isinstance(outputs, Tensor):
        columns = outputs.shape[1] if outputs.ndim == 2 else 0
        if columns == 0 or columns % count or width not in (None, columns // count):
            wanted = f"(n, {count * width})" if width else f"(n, {count} K)"
            raise InputError(
                f"outputs must be {wanted}, or {count} tensors {', '.join(names)}; got shape {tuple(outputs.shape)}"
            )
        outputs = outputs.chunk(count, dim=1)
    if not isinstance(outputs, list | tuple) or len(outputs) != count:
        found = len(outputs) if isinstance(outputs, list | tuple) else _described(outputs)
        raise InputError(f"outputs must be {count} tensors, {', '.join(names)}; got {found}")
    parts = [_double(part, name) for part, name in zip(outputs, names, strict=True)]
    parts = [part[:, None] if part.ndim == 1 else part for part in parts]
    for part, name in zip(parts, names, strict=True):
        if part.shape != parts[0].shape or part.ndim != 2 or width not in (None, part.shape[1]):
            shapes = ", ".join(str(tuple(other.shape)) for other in outputs)
            wanted = "one number per row" if width == 1 else "(n, K), all alike"
            raise InputError(f"{', '.join(names)} must be {wanted}; got shapes {shapes} ({name})")
    return parts


def _log_density(y: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    return -0.5 * ((y - mean) ** 2 * torch.exp(-log_variance) + log_variance + math.log(2 * math.pi))


def _check_widths(log_variance: Tensor, name: str) -> None:
    """Refuse spreads that are zero or infinite for all that follows."""
    size = log_variance.detach().abs().amax(dim=1)
    row = int(size.argmax())
    if float(size[row]) > MAX_LOG_VARIANCE:
        raise InputError(
            f"{name} must lie between -{MAX_LOG_VARIANCE:g} and {MAX_LOG_VARIANCE:g}; found {float(size[row]):g} in size in row "
            f"{row}: lower the learning rate, or use {name}.clamp(-10, 10)"
        )


def _double(x: Tensor, name: str) -> Tensor:
    """Finite numbers in double precision; gradients that are not finite are refused on the way back."""
    _check_floating(x, name)
    is_finite = torch.isfinite(x.detach())
    if not bool(is_finite.all()):
        bad = (~is_finite).reshape(len(x), -1).any(dim=1)
        row = int(bad.int().argmax())
        raise InputError(
            f"{name} has NaN or infinite values in {how_many(int(bad.sum()), 'row')}, first in row {row} "
            f"({x[row].detach().tolist()}): lower the learning rate, clip gradients, or repair the inputs of that row"
        )
    lifted = x * 1 if x.dtype == torch.float64 else x.double()  # not the caller's tensor: the hook is for this use
    if lifted.requires_grad:
        lifted.register_hook(_refuse_broken)  # type: ignore[no-untyped-call]
    return lifted


def _check_floating(x: Tensor, name: str) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise InputError(f"{name} must be a floating-point tensor; got {_described(x)}")
    if x.ndim == 0 or x.numel() == 0:
        raise InputError(f"{name} is empty: got shape {tuple(x.shape)}")


def _refuse_broken(gradient: Tensor | None) -> None:
    if gradient is not None and not bool(torch.isfinite(gradient).all()):
        raise InputError(
            "the gradient of the loss has NaN or infinite values: check what the loss is multiplied by; if that is "
            "finite, the estimator has no gradient at these outputs"
        )


def _described(x: object) -> str:
    return f"a tensor of {x.dtype}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
