"""Losses that temper confidence without looking at calibration: what calibration losses are compared with."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from calibrant._validate import InputError, check_fraction
from calibrant.losses.heads import class_numbers, log_probabilities

MIN_CHANCE = 1e-30
"""Chances of error below this do not count: a power of zero may have no derivative."""


@dataclass(frozen=True)
class Stepwise:
    """An exponent for each probability of what happened: ``values[i]`` up to ``edges[i]``, the last value beyond.

    >>> Stepwise((0.5,), (4.0, 1.0))(torch.tensor([0.1, 0.5, 0.9])).tolist()
    [4.0, 1.0, 1.0]
    """

    edges: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.edges) + 1 or any(value < 0 for value in self.values):
            raise InputError(
                f"values must be {len(self.edges) + 1} exponents of at least 0, one more than edges; got {self.values}"
            )
        if list(self.edges) != sorted(self.edges):
            raise InputError(f"edges must rise; got {self.edges}")

    def __call__(self, probability: Tensor) -> Tensor:
        """The exponent of each row."""
        edges = torch.tensor(self.edges, dtype=probability.dtype, device=probability.device)
        values = torch.tensor(self.values, dtype=probability.dtype, device=probability.device)
        return values[torch.bucketize(probability, edges, right=True)]


FL53 = Stepwise(edges=(0.2,), values=(5.0, 3.0))
"""5 for probabilities below 0.2 and 3 from there: the schedule called FL-53."""


class FocalLoss(nn.Module):
    """Focal loss: the cross-entropy ``-log p`` of each row times ``(1 - p)^gamma``, with p the probability of what happened.

    Rows that are learned count less, so that confidence is not driven up further. ``gamma`` is a number, or a function
    of p such as :data:`FL53`. Zero gives cross-entropy. It estimates no calibration error. Lin et al. (2017), Mukhoti
    et al. (2020).

    >>> round(float(FocalLoss(2.0)(torch.tensor([0.0]), torch.tensor([1]))), 4)  # log(2) / 4
    0.1733
    """

    def __init__(self, gamma: float | Callable[[Tensor], Tensor] = FL53) -> None:
        super().__init__()
        if not callable(gamma) and not gamma >= 0:
            raise InputError(f"gamma must be a number of at least 0, or a schedule such as FL53; got {gamma!r}")
        self.gamma = gamma

    def extra_repr(self) -> str:
        """The settings."""
        return f"gamma={self.gamma!r}"

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean over rows, for logits ``(n, k)`` or log-odds ``(n,)``."""
        log = _log_of_what_happened(logits, targets)
        gamma = self.gamma(torch.exp(log.detach())) if callable(self.gamma) else self.gamma
        mistaken = torch.clamp(-torch.expm1(log), min=MIN_CHANCE)
        return (-log * mistaken**gamma).mean().to(torch.promote_types(logits.dtype, torch.float32))


class LabelSmoothing(nn.Module):
    """Cross-entropy with labels that keep ``epsilon`` of their weight for all classes alike. Szegedy et al. (2016).

    >>> round(float(LabelSmoothing(0.2)(torch.tensor([[0.0, 1.0]]), torch.tensor([1]))), 4)
    0.4133
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        super().__init__()
        check_fraction(epsilon, "epsilon")
        self.epsilon = epsilon

    def extra_repr(self) -> str:
        """The settings."""
        return f"epsilon={self.epsilon:g}"

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean over rows, for logits ``(n, k)`` or log-odds ``(n,)``."""
        logs = log_probabilities(logits)
        labels = class_numbers(targets, *logs.shape)
        loss = nn.functional.cross_entropy(logs, labels, label_smoothing=self.epsilon)
        return loss.to(torch.promote_types(logits.dtype, torch.float32))


def _log_of_what_happened(logits: Tensor, targets: Tensor) -> Tensor:
    logs = log_probabilities(logits)
    return logs.gather(1, class_numbers(targets, *logs.shape)[:, None])[:, 0]
