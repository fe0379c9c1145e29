"""Lists of members: checked, counted, and made of one length."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._array import is_floating, is_traced, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import as_numbers
from calibrant.typing import Array, ArrayLike


def check_members(members: Array) -> None:
    """Refuse members that are not finite, naming row and member."""
    if is_traced(members) or members.ndim < 2 or 0 in members.shape or not is_floating(members):
        return
    host = to_numpy(members)
    bad = ~np.isfinite(host.reshape(*host.shape[:2], -1)).all(axis=2)
    if bad.any():
        row, member = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"members has NaN or infinite values in {int(bad.sum()):,} places, first in row {row}, member {member}: "
            "drop them; rows with different numbers of members go to Ensemble.from_ragged"
        )


def padded(rows: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as members and weights ``(n, m)``: the last member is repeated, without weight.

    >>> padded([[1.0, 3.0], [2.0]])[0]
    array([[1., 3.],
           [2., 2.]])
    """
    parts = [to_numpy(as_numbers(row, f"rows[{i}]")) for i, row in enumerate(rows)]
    if not parts or len({part.shape[1:] for part in parts}) > 1 or parts[0].ndim not in (1, 2):
        shapes = [part.shape for part in parts[:5]]
        raise InputError(f"rows must be lists of numbers, or of vectors of one length; got shapes {shapes}")
    sizes = np.array([len(part) for part in parts])
    index = np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
    weights = (np.arange(sizes.max()) < sizes[:, None]) / sizes[:, None]
    return np.stack([part[i] for part, i in zip(parts, index, strict=True)]), weights


def counted(values: np.ndarray, y: np.ndarray, compare: Any) -> np.ndarray:
    """How many values ``(n, m)`` of each row stand before y ``(..., n)``, by this comparison, ``(..., n)``.

    >>> counted(np.array([[1.0, 2.0, 3.0]]), np.array([2.0]), np.less_equal)
    array([2])
    """
    found = np.zeros(np.broadcast_shapes(y.shape, values.shape[:1]), dtype=np.intp)
    for column in values.T:  # one after the other, so that memory does not grow with them
        found += compare(column, y)
    return found
