"""Losses that look at their input where it is, and say what is wrong with it when this costs no wait."""

import math
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from calibrant._validate import InputError


class WatchedLoss(nn.Module):
    """A loss that must be a finite number; on a GPU it is looked at without waiting.

    On the host, and with ``check=True``, the error is raised at once. On a GPU a number stays there that is not finite
    from the first broken batch on. It is copied beside the work, and the call that finds the copy finished raises.
    In compiled and captured steps nothing is copied: :meth:`check` asks.
    """

    _seen: Tensor

    def __init__(self, *, check: bool = False) -> None:
        super().__init__()
        self.checks_at_once = check
        self.register_buffer("_seen", torch.zeros(()), persistent=False)
        self._copy: Tensor | None = None
        self._copied: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to this process."""
        return {**self.__dict__, "_copy": None, "_copied": None}

    def check(self) -> None:
        """Wait for the device, and raise if a batch since the last look was broken.

        >>> from calibrant.estimators import MMCE
        >>> from calibrant.losses import CalibrationLoss
        >>> CalibrationLoss(MMCE()).check()
        """
        self._copied = None
        self._refuse(float(self._seen))

    def watch(self, loss: Tensor, explain: Callable[[], NoReturn]) -> None:
        """Look at a scalar, at once or later; ``explain`` raises the error that names what is wrong with this batch."""
        number = loss.detach()
        if self.checks_at_once:
            _look(number, explain)
        elif torch.compiler.is_compiling():
            self._mark(number)
        elif not number.is_cuda:
            _look(number, explain)
        else:
            self._mark(number)
            if not torch.cuda.is_current_stream_capturing():
                self._poll()

    def _mark(self, number: Tensor) -> None:
        """Not finite from now on, if this number is not."""
        if self._seen.device != number.device:
            self._seen = torch.zeros((), device=number.device)
        if torch.compiler.is_compiling():  # which may take a product with zero for zero
            self._seen.copy_(torch.where(torch.isfinite(number), self._seen, torch.nan))
        else:
            self._seen.add_(number * 0)

    def _poll(self) -> None:
        """Start a copy, or look at the one that was started if it is there."""
        if self._copied is None:
            if self._copy is None:
                self._copy = torch.zeros((), pin_memory=True)
            self._copy.copy_(self._seen, non_blocking=True)
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record()
        elif self._copied.query():
            assert self._copy is not None
            self._copied = None
            self._refuse(float(self._copy))

    def _refuse(self, number: float) -> None:
        if math.isfinite(number):
            return
        self._seen.zero_()
        raise InputError(
            "the loss of an earlier batch was no finite number: logits were NaN or infinite, targets were no class "
            "numbers, or the settings of the estimator did not fit. Give the loss check=True, which names the row at once"
        )


def _look(number: Tensor, explain: Callable[[], NoReturn]) -> None:
    if not math.isfinite(float(number)):
        explain()
