"""What a fused error is, and the rows and events it looks at: values and gradients in one pass, without autograd inside."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from calibrant.lenses.class_lenses import Lens, PositiveClass, TopLabel

CACHED_NUMBERS = 1 << 17
"""Numbers of a panel of pairs on a CPU: they stay in its cache."""

NUMBERS_ON_GPU = 1 << 24
"""The same on a GPU, where few launches count: 128 MiB."""


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


class ValueAndSlope(NamedTuple):
    """The value of an error, a scalar; the gradient of the log probabilities is ``slope`` ``(n, k)`` times ``scale``.

    Where it is one number per row ``(n, 1)``, ``column`` says of which class.
    """

    value: Tensor
    slope: Tensor | None = None
    scale: Tensor | float = 1.0
    column: Tensor | None = None


class FusedError(ABC):
    """An error of class probabilities that is written with its gradient; subclasses are frozen dataclasses."""

    @abstractmethod
    def __call__(self, rows: ClassRows, *, wants_gradient: bool) -> ValueAndSlope:
        """The value and, if it is wanted, the gradient."""

    def fits(self, n: int, k: int) -> bool:
        """Whether it is meant for n rows of k classes."""
        return True


@dataclass(frozen=True, eq=False)
class EventRows:
    """One yes-or-no question for each row: the probability of yes ``(n,)``, its class, and whether it happened, as 0 or 1."""

    predicted: Tensor
    answer: Tensor
    hit: Tensor

    @classmethod
    def of(cls, lens: Lens, rows: ClassRows) -> Self:
        """The favoured class, or a class that is given."""
        if isinstance(lens, TopLabel):
            q, answer = rows.p.max(dim=1, keepdim=True)
        else:
            assert isinstance(lens, PositiveClass)
            index = 1 if lens.label is None else int(lens.label)
            q = rows.p[:, index : index + 1]
            answer = torch.full_like(q, index, dtype=torch.int64)
        return cls(q[:, 0], answer, rows.observed.gather(1, answer)[:, 0])

    def found(self, value: Tensor, slope: Tensor, scale: Tensor | float) -> ValueAndSlope:
        """From the gradient with respect to the probability of yes."""
        return ValueAndSlope(value, (self.predicted * slope)[:, None], scale, self.answer)


def event_lens(lens: Lens | None, k: int) -> Lens | None:
    """The lens of a single event that is fused, or ``None``; without a lens the positive class of two, else the confidence."""
    if lens is None:
        return PositiveClass() if k == 2 else TopLabel()
    if type(lens) is TopLabel or (type(lens) is PositiveClass and lens.label is None and k == 2):
        return lens
    is_class = type(lens) is PositiveClass and type(lens.label) is int and 0 <= lens.label < k
    return lens if is_class else None


def panels(n: int, device: torch.device) -> list[slice]:
    """Consecutive rows whose pairs with all n are held at a time."""
    size = max(1, (CACHED_NUMBERS if device.type == "cpu" else NUMBERS_ON_GPU) // n)
    return [slice(start, start + size) for start in range(0, n, size)]


def joined(parts: list[Tensor]) -> Tensor:
    """The columns of all panels; of one without a copy."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def rooted(mean: Tensor, p: float) -> tuple[Tensor, Tensor | float]:
    """The p-th root of the size with the sign, and its derivative, which is zero at zero."""
    if p == 1:
        return mean, 1.0
    size = mean.abs() ** (1 / p)
    return torch.sign(mean) * size, _finite(size ** (1 - p) / p)


def square_root(square: Tensor) -> tuple[Tensor, Tensor]:
    """The root of what rounding may have left below zero, and twice its derivative, which is zero there."""
    root = square.clamp(min=0).sqrt()
    return root, _finite(torch.reciprocal(root))


def _finite(slope: Tensor) -> Tensor:
    return torch.nan_to_num(slope, nan=torch.nan, posinf=0.0)
