"""Averages with weights given by their logarithms, over panels of a matrix that is never stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from calibrant._array import detached, namespace, rematerialised
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class Softmax:
    """Averages over columns j with weights ``w_ij = exp(H_ij) / sum_j exp(H_ij)``, for n rows and q values.

    ``log_sum`` is the logarithm of the divisor, ``mean`` is ``w @ v``, ``squares`` are the sums of ``w^2``, whose inverse
    counts how many columns matter, and ``mean_of_squares`` is ``(w * w) @ v``. Rows without any weight have a log-sum of
    ``-inf`` and zeros elsewhere, never NaN.
    """

    log_sum: Array
    mean: Array
    squares: Array
    mean_of_squares: Array

    @property
    def is_empty(self) -> Array:
        """Which rows have no column of positive weight, ``(n,)``."""
        return namespace(self.log_sum).isinf(self.log_sum)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, in order."""
        xp = namespace(parts[0].log_sum)
        return cls(*(xp.concat([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def softmax_of_panel(
    form: Callable[[Any, Any], Array],
    cuts: list[slice],
    columns: Any,
    v: Array,
    diagonal: bool,
    panel: tuple[slice, Any],
) -> Softmax:
    """Some rows against all columns, tile by tile: the largest logarithm of each row first, then the sums below it.

    Two passes instead of one that rescales: the largest logarithm is a constant to gradients, sums need no state, and so
    nothing of a tile is kept for the way back.
    """
    own, rows = panel
    witness = form(rows[:1], columns[:1])
    xp = namespace(witness)

    def tile(cut: slice) -> Array:
        values = form(rows, columns[cut])
        if diagonal or cut != own:
            return values
        size = values.shape[0]
        index = xp.arange(size, device=getattr(values, "device", None))  # what JAX traces is nowhere yet
        return xp.where(index[:, None] == index[None, :], xp.full_like(values, -xp.inf), values)

    top = _largest([detached(xp.max(tile(cut), axis=1)) for cut in cuts])
    shift = xp.where(xp.isinf(top), xp.zeros_like(top), top)

    def sums(cut: slice) -> tuple[Array, Array, Array, Array]:
        weights = xp.exp(tile(cut) - shift[:, None])
        squares = weights * weights
        return xp.sum(weights, axis=1), xp.sum(squares, axis=1), weights @ v[cut, :], squares @ v[cut, :]

    total, square, product, square_product = rematerialised(lambda: sums(cuts[0]), witness)
    for cut in cuts[1:]:
        parts = rematerialised(lambda cut=cut: sums(cut), witness)  # type: ignore[misc]
        total, square = total + parts[0], square + parts[1]
        product, square_product = product + parts[2], square_product + parts[3]
    return _normalised(top, shift, total, square, product, square_product)


def _largest(parts: list[Array]) -> Array:
    largest = parts[0]
    for part in parts[1:]:
        largest = namespace(part).maximum(largest, part)
    return largest


def _normalised(
    top: Array, shift: Array, total: Array, square: Array, product: Array, square_product: Array
) -> Softmax:
    """Sums of weights divided by what they add up to; rows without weight stay at zero."""
    xp = namespace(total)
    is_empty = xp.isinf(top)
    whole = xp.where(is_empty, xp.ones_like(total), total)
    return Softmax(
        xp.where(is_empty, top, shift + xp.log(whole)),
        product / whole[:, None],
        square / whole**2,
        square_product / (whole**2)[:, None],
    )
