"""One softmax pass over the logits of a batch, and what every fused loss knows of its rows."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows of class probabilities ``(n, k)`` in double precision; nothing here waits for the device.

    ``logs`` are log probabilities, ``p`` probabilities, ``observed`` is 1 in the column of what happened. A row whose target is
    no class has no 1. Double precision costs no more than single on these sizes, as the steps between both cost the gain.

    >>> rows = ClassRows.of(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    >>> rows.p.tolist(), rows.observed.tolist(), round(rows.cross_entropy().item(), 4)
    ([[0.5, 0.5]], [[0.0, 1.0]], 0.6931)
    """

    logs: Tensor
    p: Tensor
    observed: Tensor

    @classmethod
    def of(cls, logits: Tensor, targets: Tensor) -> Self:
        """From logits ``(n, k)``, or log-odds of class 1 ``(n,)``, and class numbers ``(n,)``."""
        z = logits.double()
        if z.ndim == 1:
            z = torch.stack([torch.zeros_like(z), z], dim=1)
        logs = torch.log_softmax(z, dim=1)
        classes = torch.arange(z.shape[1], device=z.device)
        return cls(logs, torch.exp(logs), (targets[:, None] == classes).double())

    def __len__(self) -> int:
        return int(self.p.shape[0])

    @property
    def k(self) -> int:
        """How many classes there are."""
        return int(self.p.shape[1])

    @property
    def labels(self) -> Tensor:
        """Class numbers ``(n,)``; the first class where a target is none."""
        return self.observed.argmax(dim=1)

    def cross_entropy(self) -> Tensor:
        """The mean log loss; no finite number where a logit is none or a target is no class."""
        total = torch.dot(self.observed.view(-1), self.logs.view(-1))  # 0 * -inf is NaN
        return torch.sqrt(self.observed.sum() - len(self)) - total / len(self)

    def to_logits(self, slope: Tensor) -> Tensor:
        """The gradient with respect to the logits, from that with respect to the log probabilities."""
        return torch.addcmul(slope, self.p, slope.sum(dim=1, keepdim=True), value=-1)
