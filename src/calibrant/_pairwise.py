"""The matrix that is never stored: reductions of ``form(rows_i, columns_j)`` over all pairs, in tiles."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Protocol, Self

from calibrant._array import alike, namespace, rematerialised
from calibrant._softmax import Softmax, softmax_of_panel
from calibrant._tasks import MAX_PIECE_ROWS, cuts, mapping, pieces, sharing
from calibrant.typing import Array, Engine

TILE = 512
"""Rows and columns of a tile: large enough for matrix products, small enough for the cache."""

PANELS = 16
"""Panels whose pairs are tasks: so many, or more where they would have too many rows."""

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
class Corner:
    """Sums over the pairs of two panels: along rows, down columns, and twice the squares; or over ``i != j`` of one panel."""

    along: Array
    down: Array | None
    squares: Array
    diagonal: Array | None = None


@dataclass(frozen=True, eq=False)
class Pairwise:
    """The symmetric matrix ``H_ij = form(rows_i, rows_j)``, evaluated in tiles of one triangle.

    Pairs of panels of rows are tasks for an engine; each carries its two slices of the data, or references to them, and
    results are added in the order of the tasks, so the digits do not depend on the engine. O(n^2) time, O(n) memory, also
    under automatic differentiation: tiles are made again on the way back.

    >>> import numpy as np
    >>> outer = Pairwise(lambda a, b: a[:, None] * b[None, :], np.array([1.0, 2.0, 3.0]))
    >>> float(outer.moments().total), outer.moments().diagonal.tolist()
    (22.0, [1.0, 4.0, 9.0])
    """

    form: Callable[[Any, Any], Array]
    rows: Any
    tile: int = TILE
    engine: Engine | None = None

    def moments(self) -> Moments:
        """Row sums and sum of squares over i != j, and the diagonal, in one pass."""
        return moments_of_panels(partial(tiled_corner, self.form, self.tile), self.rows, self.tile, self.engine)

    def block_sums(self, size: int) -> Array:
        """Sums over pairs i != j within consecutive blocks of so many rows; an incomplete last block is left out."""
        whole = len(self.rows) // size * size
        groups = [self.rows[cut] for cut in cuts(whole, max(CALL // size, 1) * size)]
        values = list(self._map(partial(_block_sums, self.form, self.tile, size), groups))
        return namespace(values[0]).concat(values)

    def matmul(self, v: Array) -> Array:
        """``H @ v`` for v ``(n, q)``; an engine that can ``share`` gets the rows once for all v."""
        some, there = pieces(len(self.rows), self.tile), sharing(self.engine)(v)
        work = partial(_product_of_piece, self.form, self.tile)
        parts = list(mapping(self.engine)(work, [self._everywhere] * len(some), [there] * len(some), some))
        return namespace(parts[0]).concat(parts)

    @cached_property
    def _everywhere(self) -> Any:
        """All rows, or what stands for them among the tasks of an engine."""
        return sharing(self.engine)(self.rows)

    def logmatmul(self, v: Array, *, diagonal: bool = True) -> Softmax:
        """Averages of the rows of v ``(n, q)`` with weights proportional to ``exp(H_ij)``, and their log-sum-exp.

        Here H holds logarithms of weights and need not be symmetric: row i weighs the columns j. A weight of zero has
        the logarithm ``-inf``; a row with no other has a log-sum of ``-inf`` and averages of 0.

        >>> import numpy as np
        >>> log_weights = Pairwise(lambda a, b: -abs(a[:, None] - b[None, :]), np.log(np.array([1.0, 2.0, 4.0])))
        >>> log_weights.logmatmul(np.array([[6.0], [0.0], [3.0]]), diagonal=False).mean[:, 0].round(12).tolist()
        [1.0, 4.5, 2.0]
        """
        tasks = [(cut, self.rows[cut]) for cut in cuts(len(self.rows), self.tile)]
        panel = partial(softmax_of_panel, self.form, cuts(len(self.rows), self.tile), self.rows, v, diagonal)
        return Softmax.concat(list(self._map(panel, tasks)))

    def _map(self, fn: Callable[[Any], Any], tasks: list[Any]) -> Iterator[Any]:
        return mapping(self.engine)(fn, tasks)


def _diagonal(square: Array) -> Array:
    return namespace(square).linalg.diagonal(square)


def moments_of_panels(corner: Callable[[Any, Any], Corner], rows: Any, tile: int, engine: Engine | None) -> Moments:
    """The moments of all pairs of rows from the corners of all pairs of panels, which are the tasks of an engine.

    ``corner(a, b)`` is given two panels, or one and ``None``. An engine that can ``share`` gets each panel once; one that has
    a ``panel`` says by it how many rows are not too many.
    """
    some = pieces(len(rows), tile, PANELS, getattr(engine, "panel", MAX_PIECE_ROWS))
    panels = [sharing(engine)(rows[cut]) for cut in some]
    places = _triangle(len(panels))
    others = [None if i == j else panels[j] for i, j in places]
    return _added(places, mapping(engine)(corner, [panels[i] for i, _ in places], others), len(panels))


def tiled_corner(form: Callable[[Any, Any], Array], tile: int, rows: Any, columns: Any | None) -> Corner:
    """The sums over the pairs of two panels, or of one with itself, tile by tile."""
    witness = form(rows[:1], rows[:1])
    own = [rows[cut] for cut in cuts(len(rows), tile)]
    if columns is None:
        places = _triangle(len(own))
        moments = _added(places, (_tile(form, witness, own[i], own[j] if i < j else None) for i, j in places), len(own))
        return Corner(moments.row_sums, None, moments.sum_of_squares, moments.diagonal)
    others = [columns[cut] for cut in cuts(len(columns), tile)]
    tiles = [[_tile(form, witness, a, b) for b in others] for a in own]
    along = [_sum(part.along for part in line) for line in tiles]
    down = [_sum(line[j].down for line in tiles) for j in range(len(others))]
    xp = namespace(along[0])
    return Corner(xp.concat(along), xp.concat(down), _sum(part.squares for line in tiles for part in line))


def _triangle(count: int) -> list[tuple[int, int]]:
    """Places on and above the diagonal, in the order of tasks."""
    return [(i, j) for i in range(count) for j in range(i, count)]


def _tile(form: Callable[[Any, Any], Array], witness: Array, a: Any, b: Any | None) -> Corner:
    if b is None:
        along, squares, diagonal = rematerialised(lambda: _reduced_square(form(a, a)), witness)
        return Corner(along, None, squares, diagonal)
    along, down, square = rematerialised(lambda: _reduced(form(a, b)), witness)
    return Corner(along, down, 2 * square)


def _added(places: list[tuple[int, int]], corners: Iterable[Corner], count: int) -> Moments:
    """The moments from corners in their order."""
    sums: list[list[Array]] = [[] for _ in range(count)]
    squares: list[Array] = []
    diagonal: list[Array] = []
    for (i, j), corner in zip(places, corners, strict=True):
        sums[i] = [_sum([*sums[i], corner.along])]
        if corner.diagonal is None:
            sums[j] = [_sum([*sums[j], corner.down])]
        else:
            diagonal.append(corner.diagonal)
        squares = [_sum([*squares, corner.squares])]
    xp = namespace(diagonal[0])
    return Moments(xp.concat([total for (total,) in sums]), squares[0], xp.concat(diagonal))


def _sum(parts: Iterable[Array]) -> Array:
    """From left to right, whatever the library."""
    return reduce(add, parts)


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


def _product_of_piece(form: Callable[[Any, Any], Array], tile: int, rows: Any, v: Array, piece: slice) -> Array:
    """The rows of ``H @ v`` in a piece, a tile of them at a time, where the rows are: engines move those, and not v."""
    own = rows[piece]
    there = alike(v, form(own[:1], own[:1]))
    parts = [_product_of_tile(form, tile, own[cut], rows, there) for cut in cuts(len(own), tile)]
    return namespace(parts[0]).concat(parts)


def _product_of_tile(form: Callable[[Any, Any], Array], tile: int, rows: Any, columns: Any, v: Array) -> Array:
    witness = form(rows[:1], columns[:1])

    def product(cut: slice) -> Array:
        return rematerialised(lambda: form(rows, columns[cut]) @ v[cut, :], witness)

    first, *others = cuts(len(columns), tile)
    return sum((product(cut) for cut in others), start=product(first))
