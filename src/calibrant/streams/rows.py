"""Rows of predictions put together from parts, and as plain data."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from calibrant import distributions
from calibrant._array import is_array, namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, matched


def concatenated(parts: Sequence[Any]) -> Any:
    """One batch of several of the same family, rows in order; of arrays the same.

    >>> from calibrant import Normal
    >>> concatenated([Normal([0.0], [1.0]), Normal([2.0, 3.0], [4.0, 5.0])]).loc
    array([0., 2., 3.])
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, tuple):
        return tuple(concatenated(column) for column in zip(*parts, strict=True))
    if is_array(first):
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            raise InputError("rows of different shapes cannot be put together: " + str([p.shape for p in parts]))
        return namespace(first).concat(list(parts))
    assert isinstance(first, Distribution)
    of_rows = _fields_of_rows(first)
    values = {name: [getattr(part, name) for part in parts] for name in field_names(first)}
    return type(first)(**{name: concatenated(v) if name in of_rows else v[0] for name, v in values.items()})


def field_names(batch: Distribution) -> list[str]:
    """What a batch is made of."""
    return [part.name for part in fields(batch)]  # type: ignore[arg-type]  # families are dataclasses


def _fields_of_rows(batch: Distribution) -> set[str]:
    """Fields that have one entry a row: those that are longer in a longer batch."""
    rows = np.zeros(len(batch) + 1, dtype=np.intp)
    longer = batch[matched(rows, batch.parameters[0])]
    return {name for name in field_names(batch) if _size(getattr(longer, name)) != _size(getattr(batch, name))}


def _size(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_size(part) for part in value]
    return len(value) if is_array(value) or isinstance(value, Distribution) else None


def to_plain(value: Any) -> Any:
    """A batch, array or setting as data for JSON."""
    if isinstance(value, Distribution):
        name = type(value).__name__
        if name not in families():
            raise InputError(f"{name} predictions cannot be written as JSON: give those of a family of calibrant's own")
        return {"family": name, "fields": {part: to_plain(getattr(value, part)) for part in field_names(value)}}
    if is_array(value):
        host = to_numpy(value)
        return {"values": host.tolist(), "dtype": str(host.dtype), "shape": list(host.shape)}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(part) for part in value]}
    if value is None or isinstance(value, str | int | float):
        return value
    raise InputError(f"{value!r} cannot be written as JSON: give predictions of a family of calibrant's own")


def from_plain(data: Any) -> Any:
    """What :func:`to_plain` was given.

    >>> from calibrant import Normal
    >>> from_plain(to_plain(Normal([0.0, 1.0], [1.0, 2.0]))).scale
    array([1., 2.])
    """
    if not isinstance(data, dict):
        return data
    if "family" in data:
        return families()[data["family"]](**{name: from_plain(value) for name, value in data["fields"].items()})
    if "tuple" in data:
        return tuple(map(from_plain, data["tuple"]))
    return np.array(data["values"], dtype=data["dtype"]).reshape(data["shape"])


@cache
def families() -> dict[str, type[Distribution]]:
    """The families by name."""
    found: dict[str, type[Distribution]] = {}
    for module in iter_modules(distributions.__path__):
        home = import_module(f"{distributions.__name__}.{module.name}")
        found |= {
            name: kind
            for name, kind in vars(home).items()
            if isinstance(kind, type) and issubclass(kind, Distribution) and is_dataclass(kind)
        }
    return found
