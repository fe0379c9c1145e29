"""The seam to array libraries: the one file that asks which library an array belongs to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_jax_array, is_torch_array

from calibrant.typing import Array

Result = TypeVar("Result")


def is_array(x: object) -> bool:
    """Whether ``x`` is an array of a library we can compute with (NumPy, torch, JAX, ...)."""
    return isinstance(x, np.ndarray) or bool(is_array_api_obj(x))


def namespace(*arrays: Array) -> Any:
    """The array-API namespace of these arrays."""
    return NUMPY if len(arrays) == 1 and type(arrays[0]) is np.ndarray else array_namespace(*arrays)


NUMPY = array_namespace(np.zeros(0))
"""That of most calls, which need not ask."""


def row_sums(x: Array) -> Array:
    """The sum of each row; NumPy's own is slow where rows are short."""
    return np.einsum("ij->i", x) if isinstance(x, np.ndarray) else namespace(x).sum(x, axis=1)


def row_products(x: Array, y: Array) -> Array:
    """The inner product of each row of one array with that of another."""
    return np.einsum("ij,ij->i", x, y) if isinstance(x, np.ndarray) else namespace(x).sum(x * y, axis=1)


def column_products(x: Array, y: Array) -> Array:
    """The inner product of each column of one array with that of another."""
    return np.einsum("ij,ij->j", x, y) if isinstance(x, np.ndarray) else namespace(x).sum(x * y, axis=0)


def rows_of(x: Array, rows: slice | Array) -> Array:
    """Some rows: those of a slice, of row numbers, or of truth values; numbers of the host do for every library."""
    if isinstance(x, np.ndarray) or not isinstance(rows, np.ndarray):
        return x[rows, ...]
    return namespace(x).take(x, matched(np.flatnonzero(rows) if rows.dtype == bool else rows, x), axis=0)


def picked(x: Array, columns: np.ndarray) -> Array:
    """One entry of each row ``(n, k)``, that of its own column ``(n,)``, or those of a stack of columns ``(..., n)``.

    >>> picked(np.array([[0.2, 0.8], [0.4, 0.6]]), np.array([1, 0]))
    array([0.8, 0.4])
    """
    if isinstance(x, np.ndarray):
        return x[np.arange(len(x)), columns]
    xp, (n, k) = namespace(x), x.shape
    places = matched((np.arange(n) * k + columns).reshape(-1), x)
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), places, axis=0), columns.shape)


def add_to_picked(x: Array, columns: np.ndarray, values: Array) -> Array:
    """The array with numbers ``(n,)`` added to one entry of each row ``(n, k)``, in place where arrays can be changed.

    >>> add_to_picked(np.zeros((2, 2)), np.array([1, 0]), np.array([3.0, 4.0]))
    array([[0., 3.],
           [4., 0.]])
    """
    if isinstance(x, np.ndarray):
        x[np.arange(len(x)), columns] += values
        return x
    xp, classes = namespace(x), matched(np.arange(x.shape[1]), x)
    x += xp.where(matched(columns, x)[:, None] == classes, values[:, None], xp.zeros_like(x))
    return x


CACHED, HELD = 1 << 16, 1 << 26
"""Numbers that stay in the cache of a processor, and numbers that a GPU holds beside others."""


def row_slices(x: Array) -> Iterator[slice]:
    """Parts of the rows ``(n, k)`` that are worked on at a time: on the host they stay in the cache.

    >>> [rows.start for rows in row_slices(np.ones((40_000, 4)))]
    [0, 16384, 32768]
    """
    n, k = x.shape
    size = max((CACHED if isinstance(x, np.ndarray) else HELD) // k, 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def row_maxima(x: Array) -> tuple[Array, Array]:
    """The largest value of each row, and the first place where it stands.

    NumPy is faster at this than torch is on the CPU, by its places alone.

    >>> row_maxima(np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]]))
    (array([0.5, 0.4]), array([1, 0]))
    """
    host = looked_at(x)
    if not isinstance(host, np.ndarray):
        return namespace(x).max(x, axis=1), namespace(x).argmax(x, axis=1)
    place = host.argmax(axis=1)
    if is_recorded(x):
        return namespace(x).max(x, axis=1), matched(place, x)
    return matched(host[np.arange(len(host)), place], x), matched(place, x)


def detached(x: Array) -> Array:
    """The array without the record of how it was made, for checks."""
    return x.detach() if is_torch_array(x) else x


def looked_at(x: Array) -> Array:
    """The same values to look at: of tensors on the CPU those that NumPy sees, which asks faster for few numbers."""
    if isinstance(x, np.ndarray):
        return x
    return to_numpy(x) if is_torch_array(x) and x.device.type == "cpu" else detached(x)


def constant(x: Array) -> Array:
    """The array as a constant, through which no gradient passes."""
    if is_jax_array(x):
        from jax.lax import stop_gradient

        return stop_gradient(x)
    return detached(x)


def on_gpu(*arrays: Array) -> bool:
    """Whether all are tensors of torch on a GPU, through which no gradients are recorded."""
    return all(is_torch_array(x) and x.is_cuda and not x.requires_grad for x in arrays)


def as_tensor(x: np.ndarray, device: str) -> Array:
    """A tensor of torch with these numbers, on a device of torch."""
    import torch

    return torch.from_numpy(x).to(device)


def to_numpy(x: Array) -> np.ndarray:
    """The array on the host, as NumPy: without a copy where the memory already is there."""
    if isinstance(x, np.ndarray):
        return x
    if is_torch_array(x):
        return np.asarray(common(x.detach()).cpu().resolve_neg())
    return common(np.asarray(x))


def common(x: Array) -> Array:
    """The same numbers in a type that is computed with: short floats in single precision, what is quantised as it is meant.

    >>> common(np.array([1.5])).dtype
    dtype('float64')
    """
    if isinstance(x, np.ndarray):
        return _common_of_numpy(x)
    if not is_torch_array(x):
        return x
    import torch

    if x.is_quantized:
        return x.dequantize()
    name = str(x.dtype).removeprefix("torch.")
    if name in SHORT:
        return x.to(torch.float32)
    return x.to(torch.int64) if name in ("uint16", "uint32", "uint64") else x


def _common_of_numpy(x: np.ndarray) -> np.ndarray:
    """Short floats, which are extensions of NumPy, made longer, long ones shorter, and counts without a sign given one."""
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # infinite, as checks say
            return x.astype(np.float64)
    if x.dtype == np.uint64 and x.size and x.max() < 2**63:
        return x.astype(np.int64)  # with other integers it would become floating
    return x.astype(np.float32) if x.dtype.kind == "V" and x.dtype.name in SHORT else x


SHORT = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3",
    "float8_e8m0fnu",
)
"""Floats that libraries store but hardly compute with."""


def unreadable(x: Array) -> str | None:
    """Why the numbers of a tensor cannot be looked at one by one, and what to do; ``None`` where they can.

    >>> unreadable(np.array([1.0]))
    """
    if not is_torch_array(x):
        return None
    import torch

    if x.is_nested:
        return "a nested tensor: give one tensor with as many values in each row"
    if x.layout != torch.strided:
        return "a sparse tensor: give its to_dense()"
    return "a tensor on the device 'meta', which has no values: give one with data" if x.is_meta else None


def matched(x: Array, to: Array) -> Array:
    """Numbers of the host, such as lists and draws, in the library and on the device of another array.

    >>> import numpy as np
    >>> matched([1, 2], np.zeros(3))
    array([1, 2])
    """
    if isinstance(to, np.ndarray):
        return to_numpy(x)
    if not isinstance(x, np.ndarray):
        return x
    return namespace(to).asarray(x, device=getattr(to, "device", None))  # what JAX traces is nowhere yet


def alike(x: Array, to: Array) -> Array:
    """The same and, elsewhere than in NumPy, in the precision of that array."""
    there = matched(x, to)
    return there if isinstance(there, np.ndarray) else namespace(there).astype(there, to.dtype)


def is_traced(x: Array) -> bool:
    """Whether ``x`` stands for values to come, inside a JAX transformation: it cannot be looked at."""
    if not is_jax_array(x):
        return False
    from jax.core import Tracer

    return isinstance(x, Tracer)


def is_jax(x: object) -> bool:
    """Whether ``x`` is an array of JAX."""
    return bool(is_jax_array(x))


def is_recorded(x: Array) -> bool:
    """Whether its library records gradients through it."""
    return is_traced(x) or bool(is_torch_array(x) and x.requires_grad)


def as_number(x: Array) -> Any:
    """A plain float; the array itself where its library records gradients through it."""
    return x if is_recorded(x) else float(x)


def is_floating(x: Array) -> bool:
    """Whether the elements are real floating-point numbers."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f"
    return bool(namespace(x).isdtype(x.dtype, "real floating"))


def is_integer(x: Array) -> bool:
    """Whether the elements are integers or booleans."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iub"
    return bool(namespace(x).isdtype(x.dtype, ("integral", "bool")))


def as_double(x: Array) -> Array:
    """The array in double precision, where its library has that switched on."""
    xp = namespace(x)
    if is_jax_array(x):
        from jax.dtypes import canonicalize_dtype

        return xp.astype(x, canonicalize_dtype(np.float64), copy=False)
    return xp.astype(x, xp.float64, copy=False)


def as_double_rows(x: Array) -> Array:
    """The same with each row in one piece, so that sums over rows are fast, and their digits do not depend on how x was made."""
    found = as_double(x)
    return np.ascontiguousarray(found) if isinstance(found, np.ndarray) else found


def erfcx(x: Array) -> Array:
    """``exp(x^2) erfc(x)`` for x >= 0, in the array's own library."""
    if is_torch_array(x):
        import torch

        return torch.special.erfcx(x)
    if is_jax_array(x):
        return _erfcx_of_jax(x)
    from scipy.special import erfcx as on_host

    return on_host(x) if isinstance(x, np.ndarray) else namespace(x).asarray(on_host(np.asarray(x)))


def _erfcx_of_jax(x: Array) -> Array:
    """JAX has no erfcx: the product below 10, the asymptotic series above, where eight terms leave 1e-16."""
    import jax.numpy as jnp
    from jax.scipy.special import erfc

    near = jnp.minimum(x, 10.0)
    far = jnp.maximum(x, 10.0)
    term, total = jnp.ones_like(far), jnp.ones_like(far)
    for k in range(1, 9):
        term = term * -(2 * k - 1) / (2 * far**2)
        total = total + term
    return jnp.where(x < 10, jnp.exp(near**2) * erfc(near), total / (far * jnp.pi**0.5))


def gammaln(x: Array) -> Array:
    """Logarithm of the gamma function for x > 0, in the array's own library."""
    if is_torch_array(x):
        import torch

        return torch.special.gammaln(x)
    if is_jax_array(x):
        from jax.scipy.special import gammaln as of_jax

        return of_jax(x)
    from scipy.special import gammaln as on_host

    return on_host(x) if isinstance(x, np.ndarray) else namespace(x).asarray(on_host(np.asarray(x)))


def rematerialised(function: Callable[[], Result], witness: Array) -> Result:
    """``function()``; where gradients are recorded through ``witness``, inner values are made again instead of kept."""
    if is_traced(witness):
        import jax

        return jax.checkpoint(function)()
    if not is_torch_array(witness) or not witness.requires_grad:
        return function()
    from torch.utils.checkpoint import checkpoint

    return checkpoint(function, use_reentrant=False, preserve_rng_state=False)


@contextmanager
def seeded(like: Array | None, rng: np.random.Generator) -> Iterator[None]:
    """Where the library of an array draws from a state of its own: seeded inside, as it was outside."""
    if like is None or not is_torch_array(like):
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63 - 1)))
        yield


def random_key(rng: np.random.Generator) -> Any:
    """A key of JAX."""
    import jax

    return jax.random.PRNGKey(int(rng.integers(2**31 - 1)))
