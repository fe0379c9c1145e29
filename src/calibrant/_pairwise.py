"""The matrix that is never stored: reductions of ``form(rows_i, columns_j)`` over all pairs, in tiles."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

from calibrant._array import namespace, rematerialised
from calibrant._softmax import Softmax, softmax_of_panel
from calibrant.typing import Array, Engine

TILE = 512
"""Rows and columns of a tile: large enough for matrix products, small enough for the cache."""

CALL = 64
"""Rows of a tile below which calling costs more than computing: smaller blocks share a tile."""


class Rows(Protocol):
    """Anything with rows that can be cut: arrays, distributions, residuals, and tuples of those in a class."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def __getitem__(self, rows: slice) -> Self:
        """Some of them."""
        ...


@dataclass(frozen=True, eq=False)
class Moments:
    """One pass over a symmetric matrix: sums over pairs i != j, by row and squared, and the diagonal."""

    row_sums: Array
    sum_of_squares: Array
    diagonal: Array

    @property
    def total(self) -> Array:
        """The sum over all ordered pairs i != j."""
        return namespace(self.row_sums).sum(self.row_sums)


@dataclass(frozen=True, eq=False)
class Pairwise:
    """The symmetric matrix ``H_ij = form(rows_i, rows_j)``, evaluated in tiles of one triangle.

    Panels of rows are tasks for an engine; each task carries its slices of the data, and results are added in the order of
    the tasks, so the digits do not depend on the engine. O(n^2) time, O(n) memory, also under automatic differentiation:
    tiles are made again on the way back.

    >>> import numpy as np
    >>> outer = Pairwise(lambda a, b: a[:, None] * b[None, :], np.array([1.0, 2.0, 3.0]))
    >>> float(outer.moments().total), outer.diagonal().tolist()
    (22.0, [1.0, 4.0, 9.0])
    """

    form: Callable[[Any, Any], Array]
    rows: Any
    tile: int = TILE
    engine: Engine | None = None

    def moments(self) -> Moments:
        """Row sums and sum of squares over i != j, and the diagonal, in one pass."""
        n = len(self.rows)
        starts = range(0, n, self.tile)
        tasks = [self.rows[start:n] for start in starts]
        parts = list(self._map(partial(_panel, self.form, self.tile), tasks))
        xp = namespace(parts[0].row_sums)
        sums = parts[0].row_sums
        for start, part in zip(starts[1:], parts[1:], strict=True):
            sums = xp.concat([sums[:start], sums[start:] + part.row_sums])
        squares = parts[0].sum_of_squares
        for part in parts[1:]:
            squares = squares + part.sum_of_squares
        return Moments(sums, squares, xp.concat([part.diagonal for part in parts]))

    def diagonal(self) -> Array:
        """``H_ii``, from small blocks on the diagonal."""
        blocks = [self.rows[cut] for cut in _cuts(len(self.rows), 16)]
        values = [_diagonal(self.form(block, block)) for block in blocks]
        return namespace(values[0]).concat(values)

    def block_sums(self, size: int) -> Array:
        """Sums over pairs i != j within consecutive blocks of so many rows; an incomplete last block is left out."""
        whole = len(self.rows) // size * size
        groups = [self.rows[cut] for cut in _cuts(whole, max(CALL // size, 1) * size)]
        values = list(self._map(partial(_block_sums, self.form, self.tile, size), groups))
        return namespace(values[0]).concat(values)

    def matmul(self, v: Array, *, diagonal: bool = True) -> Array:
        """``H @ v`` for v ``(n, q)``, with or without the diagonal."""
        tasks = [self.rows[cut] for cut in _cuts(len(self.rows), self.tile)]
        parts = list(self._map(partial(_panel_product, self.form, self.tile, self.rows, v), tasks))
        xp = namespace(parts[0])
        product = xp.concat(parts)
        return product if diagonal else product - self.diagonal()[:, None] * v

    def logmatmul(self, v: Array, *, diagonal: bool = True) -> Softmax:
        """Averages of the rows of v ``(n, q)`` with weights proportional to ``exp(H_ij)``, and their log-sum-exp.

        Here H holds logarithms of weights and need not be symmetric: row i weighs the columns j. A weight of zero has
        the logarithm ``-inf``; a row with no other has a log-sum of ``-inf`` and averages of 0.

        >>> import numpy as np
        >>> log_weights = Pairwise(lambda a, b: -abs(a[:, None] - b[None, :]), np.log(np.array([1.0, 2.0, 4.0])))
        >>> log_weights.logmatmul(np.array([[6.0], [0.0], [3.0]]), diagonal=False).mean[:, 0].round(12).tolist()
        [1.0, 4.5, 2.0]
        """
        tasks = [(cut, self.rows[cut]) for cut in _cuts(len(self.rows), self.tile)]
        panel = partial(softmax_of_panel, self.form, _cuts(len(self.rows), self.tile), self.rows, v, diagonal)
        return Softmax.concat(list(self._map(panel, tasks)))

    def _map(self, fn: Callable[[Any], Any], tasks: list[Any]) -> Iterator[Any]:
        return map(fn, tasks) if self.engine is None else self.engine.map(fn, tasks)


def _cuts(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most so many rows, none beyond the end."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _diagonal(square: Array) -> Array:
    return namespace(square).linalg.diagonal(square)


def _panel(form: Callable[[Any, Any], Array], tile: int, rows: Any) -> Moments:
    """The first ``tile`` rows against themselves and all that follow."""
    own, *others = _cuts(len(rows), tile)
    witness = form(rows[:1], rows[:1])
    first = rows[own]
    along, squares, diagonal = rematerialised(lambda: _reduced_square(form(first, first)), witness)
    below = []
    for cut in others:
        other = rows[cut]
        right, under, square = rematerialised(lambda other=other: _reduced(form(first, other)), witness)  # type: ignore[misc]
        along = along + right
        below.append(under)
        squares = squares + 2 * square
    return Moments(namespace(along).concat([along, *below]), squares, diagonal)


def _reduced(values: Array) -> tuple[Array, Array, Array]:
    """Sums along rows and columns, and of squares."""
    xp = namespace(values)
    return xp.sum(values, axis=1), xp.sum(values, axis=0), xp.sum(values * values)


def _reduced_square(values: Array) -> tuple[Array, Array, Array]:
    """Sums along rows and of squares without the diagonal, and the diagonal."""
    xp = namespace(values)
    diagonal = _diagonal(values)
    return xp.sum(values, axis=1) - diagonal, xp.sum(values * values) - xp.sum(diagonal * diagonal), diagonal


def _block_sums(form: Callable[[Any, Any], Array], tile: int, size: int, rows: Any) -> Array:
    """The sum of one large block, or of several small ones from the tile that holds them all."""
    if len(rows) == size:
        total = Pairwise(form, rows, tile).moments().total
        return namespace(total).reshape(total, (1,))
    return rematerialised(lambda: _sums_of_blocks(form(rows, rows), size), form(rows[:1], rows[:1]))


def _sums_of_blocks(square: Array, size: int) -> Array:
    xp = namespace(square)
    blocks = square.shape[0] // size
    sums = _diagonal(xp.sum(xp.reshape(square, (blocks, size, blocks, size)), axis=(1, 3)))
    return sums - xp.sum(xp.reshape(_diagonal(square), (blocks, size)), axis=1)


def _panel_product(form: Callable[[Any, Any], Array], tile: int, columns: Any, v: Array, rows: Any) -> Array:
    witness = form(rows[:1], columns[:1])

    def product(cut: slice) -> Array:
        return rematerialised(lambda: form(rows, columns[cut]) @ v[cut, :], witness)

    first, *others = _cuts(len(columns), tile)
    return sum((product(cut) for cut in others), start=product(first))
