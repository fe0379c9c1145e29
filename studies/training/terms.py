"""Losses to train with, in plain torch, so that a machine without this library can train: tests compare them with ours."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Logits, labels and a weight to a scalar."""

BANDWIDTH = 0.05
"""Of the Dirichlet kernels of KDE-XE."""

LENGTHSCALE = 0.5
"""Of the exponential kernel of SKCE-XE."""

MMCE_LENGTHSCALE = 0.4
"""As Kumar et al. (2018) have it."""

SMALLEST = -30.0
"""Logarithms of probabilities below count as this."""


def one_hot(y: Tensor, z: Tensor) -> Tensor:
    """Labels as vectors like the logits, without waiting for the device."""
    return (y[:, None] == torch.arange(z.shape[1], device=z.device)).to(z.dtype)


def cross_entropy(z: Tensor, y: Tensor, _: Tensor) -> Tensor:
    """XE; the weight does not count."""
    return F.cross_entropy(z, y)


def label_smoothing(z: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy with labels that leave the weight to all classes alike."""
    return (1 - weight) * F.cross_entropy(z, y) - weight * F.log_softmax(z, 1).mean()


def focal53(z: Tensor, y: Tensor, _: Tensor) -> Tensor:
    """FL-53; the weight does not count."""
    log = F.log_softmax(z, 1).gather(1, y[:, None])[:, 0]
    gamma = 3 + 2 * (log.detach().exp() < 0.2)
    return (-log * (-torch.expm1(log)).clamp(min=1e-30) ** gamma).mean()


def kde_error(z: Tensor, y: Tensor, bandwidth: float = BANDWIDTH) -> Tensor:
    """The canonical L1 error of the paper, equation (9): leaving each row out, without correction."""
    log_p = F.log_softmax(z, 1).clamp(min=SMALLEST)
    alpha = log_p.exp() / bandwidth
    scale = torch.lgamma(alpha.sum(1) + z.shape[1]) - torch.lgamma(alpha + 1).sum(1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    weights = torch.softmax((log_p @ alpha.T + scale).masked_fill(itself, -torch.inf), 1)
    return (weights @ one_hot(y, z) - log_p.exp()).abs().sum(1).mean()


def kde_xe(z: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy and the weighted canonical error."""
    return F.cross_entropy(z, y) + weight * kde_error(z, y)


def kde_narrow_xe(z: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """The same with a bandwidth of a fifth."""
    return F.cross_entropy(z, y) + weight * kde_error(z, y, BANDWIDTH / 5)


def mmce(z: Tensor, y: Tensor) -> Tensor:
    """The maximum mean calibration error of the confidence."""
    confidence, favoured = F.softmax(z, 1).max(1)
    r = confidence - (favoured == y).to(z.dtype)
    kernel = torch.exp(-(confidence[:, None] - confidence[None]).abs() / MMCE_LENGTHSCALE)
    return (r @ kernel @ r).clamp(min=1e-12).sqrt() / len(z)


def mmce_xe(z: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy and the weighted MMCE."""
    return F.cross_entropy(z, y) + weight * mmce(z, y)


def skce(z: Tensor, y: Tensor) -> Tensor:
    """The squared kernel calibration error, unbiased, with an exponential kernel of whole vectors."""
    p, n = F.softmax(z, 1), len(z)
    r = one_hot(y, z) - p
    squares = (p * p).sum(1)
    distance = (squares[:, None] + squares[None] - 2 * p @ p.T).clamp(min=1e-12).sqrt()
    itself = torch.eye(n, dtype=torch.bool, device=z.device)
    kernel = torch.exp(-distance / LENGTHSCALE).masked_fill(itself, 0)
    return (kernel * (r @ r.T)).sum() / (n * (n - 1))


def skce_xe(z: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy and the weighted SKCE."""
    return F.cross_entropy(z, y) + weight * skce(z, y)


LOSSES: dict[str, Loss] = {
    "xe": cross_entropy,
    "ls": label_smoothing,
    "fl53": focal53,
    "kde": kde_xe,
    "kde-narrow": kde_narrow_xe,
    "mmce": mmce_xe,
    "skce": skce_xe,
}
"""By name."""
