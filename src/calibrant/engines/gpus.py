"""Tasks on the GPU of a worker: arrays go there before, and come back after."""

from collections.abc import Callable
from copy import copy
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._array import to_numpy


def on_gpu(fn: Callable[..., Any], *arguments: Any) -> Any:
    """What ``fn`` gives on the GPU of this process, in arrays of NumPy; the same here where there is none.

    >>> on_gpu(np.sum, np.array([1.0, 2.0])) in (3.0, np.array(3.0))
    True
    """
    if find_spec("torch") is None:
        return fn(*arguments)
    import torch

    if not torch.cuda.is_available():
        return fn(*arguments)
    return moved(fn(*moved(arguments, _there)), _here)


def moved(value: Any, move: Callable[[Any], Any]) -> Any:
    """A copy of a value in which arrays, in tuples, lists and the fields of our own classes too, have been moved.

    >>> moved((np.array([2]), [3]), lambda x: x.tolist() if isinstance(x, np.ndarray) else x)
    ([2], [3])
    """
    if isinstance(value, tuple | list):
        return type(value)([moved(item, move) for item in value])
    if not type(value).__module__.startswith("calibrant.") or not hasattr(value, "__dict__"):
        return move(value)
    twin = copy(value)
    for name, item in vars(value).items():
        object.__setattr__(twin, name, moved(item, move))  # which frozen classes allow
    return twin


def _there(value: Any) -> Any:
    import torch

    return torch.from_numpy(value).cuda() if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" else value


def _here(value: Any) -> Any:
    import torch

    return to_numpy(value) if isinstance(value, torch.Tensor) else value
