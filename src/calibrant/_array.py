"""The seam to array libraries: the one file that asks which library an array belongs to."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array

from calibrant.typing import Array


def is_array(x: object) -> bool:
    """Whether ``x`` is an array of a library we can compute with (NumPy, torch, JAX, ...)."""
    return isinstance(x, np.ndarray) or bool(is_array_api_obj(x))


def namespace(*arrays: Array) -> Any:
    """The array-API namespace of these arrays."""
    return array_namespace(*arrays)


def to_numpy(x: Array) -> np.ndarray:
    """The array on the host, as NumPy: without a copy where the memory already is there."""
    if isinstance(x, np.ndarray):
        return x
    if is_torch_array(x):
        return np.asarray(x.detach().cpu())
    return np.asarray(x)


def is_floating(x: Array) -> bool:
    """Whether the elements are real floating-point numbers."""
    return bool(namespace(x).isdtype(x.dtype, "real floating"))


def is_integer(x: Array) -> bool:
    """Whether the elements are integers or booleans."""
    return bool(namespace(x).isdtype(x.dtype, ("integral", "bool")))
