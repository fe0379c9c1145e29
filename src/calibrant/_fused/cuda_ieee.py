"""Products of matrices in IEEE single precision, whatever torch is set to."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

_lock = Lock()
_inside: list[Any] = []
"""What torch was set to, once for every thread that is inside."""


@contextmanager
def ieee_products() -> Iterator[None]:
    """No shortened numbers in products on a GPU inside the block; the last of several threads to leave restores what was."""
    name, exact = _setting()
    matmul = torch.backends.cuda.matmul
    with _lock:
        _inside.append(_inside[0] if _inside else getattr(matmul, name))
        setattr(matmul, name, exact)
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                setattr(matmul, name, before)


def _setting() -> tuple[str, object]:
    """The name of the setting in this version of torch, and its value for IEEE arithmetic."""
    return (
        ("fp32_precision", "ieee") if hasattr(torch.backends.cuda.matmul, "fp32_precision") else ("allow_tf32", False)
    )
