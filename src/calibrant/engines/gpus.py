"""Tasks on the GPU of a worker: arrays go there before, and come back after."""

from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._fused.precision import precision
from calibrant._tasks import check_plain

PANEL = 1 << 16
"""Rows of a panel that keep a GPU busy for some milliseconds; the cores of a CPU want fewer."""


def on_gpu(fn: Callable[..., Any], *arguments: Any, within: str = "float32") -> Any:
    """What ``fn`` gives on the GPU of this process, in arrays of NumPy, pairs computed within a precision; here without a GPU.

    >>> on_gpu(np.sum, np.array([1.0, 2.0])) in (3.0, np.array(3.0))
    True
    """
    if find_spec("torch") is None:
        return fn(*arguments)
    import torch

    if not torch.cuda.is_available():
        return fn(*arguments)
    from calibrant._fused.room import room_for

    with precision(within), room_for("a task and the rows that it needs"):
        return moved(fn(*moved(arguments, partial(there, "cuda"))), here)


def moved(value: Any, move: Callable[[Any], Any]) -> Any:
    """A copy of a value in which arrays, in collections and the fields of our own classes too, have been moved.

    What a class keeps in cached properties is made again. One that must be moved otherwise has a method ``moved_by``, which is
    given what moves its parts.

    >>> moved((np.array([2]), [3]), lambda x: x.tolist() if isinstance(x, np.ndarray) else x)
    ([2], [3])
    """
    if isinstance(value, tuple | list):
        return rebuilt(value, [moved(item, move) for item in value])
    if isinstance(value, Mapping):
        return {key: moved(item, move) for key, item in value.items()}
    if not is_ours(value):
        return move(value)
    if hasattr(value, "moved_by"):
        return value.moved_by(partial(moved, move=move))
    twin = copy(value)
    for name, item in list(vars(twin).items()):
        if isinstance(getattr(type(value), name, None), cached_property):
            del vars(twin)[name]
        else:
            object.__setattr__(twin, name, moved(item, move))  # which frozen classes allow
    return twin


def rebuilt(value: Any, items: list[Any]) -> Any:
    """A tuple or list of the kind of another, with these items; tuples whose items have names are made from each of them.

    >>> rebuilt((1, 2), [3, 4])
    (3, 4)
    """
    return value._make(items) if hasattr(value, "_make") else type(value)(items)


def is_ours(value: object) -> bool:
    """Whether this is a value of a class of calibrant, whose fields may hold arrays."""
    kind = type(value)
    return kind.__module__.startswith("calibrant.") and hasattr(value, "__dict__") and not issubclass(kind, Enum)


def there(device: Any, value: Any) -> Any:
    """Arrays of numbers, of NumPy and of torch, as tensors on a device; all else as it is."""
    import torch

    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        native = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")  # a copy, which torch may write to
        return torch.from_numpy(native).to(device)
    if isinstance(value, torch.Tensor):
        return check_plain(value).to(device)
    return value


def here(value: Any) -> Any:
    """Tensors as arrays of NumPy; all else as it is."""
    import torch

    return to_numpy(value) if isinstance(value, torch.Tensor) else value
