"""Sums over pairs with plain torch in large tiles: where Triton is not installed, and for very many columns.

Tiles are computed in single precision and added up in double precision. Products of matrices are in IEEE arithmetic whatever
torch is set to (``torch.backends.cuda.matmul``); squared distances of rows that are close to each other lose digits in
products, and come from differences. Where the memory of the device does not hold a tile, it is halved, with a warning.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import torch

from calibrant._compiled.cuda_memory import in_smaller, scaled

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


DIRECT = 16
"""Up to so many coordinates, distances come from differences."""

TILE, MIN_TILE = 8192, 64
"""Rows and columns of a tile, and the fewest where memory is short."""

NEAR = 0.01
"""Squared distances below this part of the squared lengths lose too many digits in products."""

MAX_DIFFERENCES = 1 << 26
"""Differences of coordinates that are made at a time."""

Tile = Callable[[slice, slice], torch.Tensor]


def feature_moments(
    x: torch.Tensor, r: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype, first: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of ``h`` over ``j != i`` of each row, and of ``h^2`` over ``i != j``, in double precision.

    Where ``first`` is not zero, of pairs between so many rows and all after them.
    """
    points, residuals = scaled(x, lengthscale, gaussian, dtype), r.to(dtype)

    def tile(rows: slice, columns: slice) -> torch.Tensor:
        return torch.exp2(_logarithm(points, rows, columns, gaussian)) * (residuals[rows] @ residuals[columns].T)

    return _moments(tile, len(x), first, x.device)


def normal_moments(
    x: torch.Tensor, mu: torch.Tensor, s: torch.Tensor, y: torch.Tensor, lengthscale: float, gaussian: bool,
    target_lengthscale: float, dtype: torch.dtype, first: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The same for normal predictions, as in :func:`calibrant._compiled.cpu.normal_moments`."""
    d, points = mu.shape[1], scaled(x, lengthscale, gaussian, dtype)
    both = scaled(torch.cat([mu, y]), target_lengthscale, True, dtype)
    means, targets = both[: len(mu)], both[len(mu) :]
    v = ((s.double() / target_lengthscale) ** 2).to(dtype)

    def expected(log: torch.Tensor, a: torch.Tensor, b: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        return torch.exp2(log - distances(a, b) ** 2 / spread) * spread ** (-d / 2)

    def tile(rows: slice, columns: slice) -> torch.Tensor:
        log, left, right = _logarithm(points, rows, columns, gaussian), v[rows][:, None], v[columns][None, :]
        h = expected(log, targets[rows], targets[columns], torch.ones_like(left))
        h -= expected(log, means[rows], targets[columns], 1 + left)
        h -= expected(log, targets[rows], means[columns], 1 + right)
        return h + expected(log, means[rows], means[columns], 1 + left + right)

    return _moments(tile, len(x), first, x.device)


def matmul(x: torch.Tensor, v: torch.Tensor, lengthscale: float, gaussian: bool, dtype: torch.dtype) -> torch.Tensor:
    """``K @ v`` for v ``(n, q)``, with the diagonal, in double precision."""
    n, points, values = len(x), scaled(x, lengthscale, gaussian, dtype), v.to(dtype)

    def product(size: int) -> torch.Tensor:
        out = torch.zeros(v.shape, dtype=torch.float64, device=x.device)
        cuts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        for rows in cuts:
            for columns in cuts:
                out[rows] += torch.exp2(_logarithm(points, rows, columns, gaussian)) @ values[columns]
        return out

    with ieee_products():
        return in_smaller(product, min(TILE, n), min(MIN_TILE, n), "tiles of {:,} rows")


def _logarithm(x: torch.Tensor, rows: slice, columns: slice, gaussian: bool) -> torch.Tensor:
    """To base two."""
    distance = distances(x[rows], x[columns])
    return -(distance**2) if gaussian else -distance


def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Distances ``(n, m)``: from differences of few coordinates; of many, from products where rows are not near each other."""
    if a.shape[1] <= DIRECT:
        squares = torch.zeros((len(a), len(b)), dtype=a.dtype, device=a.device)
        for c in range(a.shape[1]):
            difference = a[:, c, None] - b[None, :, c]
            squares.addcmul_(difference, difference)
        return squares.sqrt_()
    squares, near = _by_products(a, b)
    for pairs in torch.split(near.nonzero(), max(1, MAX_DIFFERENCES // a.shape[1])):
        i, j = pairs.T
        squares[i, j] = (a[i] - b[j]).square_().sum(dim=1)
    return squares.sqrt_()


def near_pairs(x: torch.Tensor, some: int = 1024) -> float:
    """The part of pairs of rows that are near each other, from some of the rows."""
    rows = x[:: max(1, len(x) // some)].double()
    near = _by_products(*2 * [rows - rows.mean(dim=0)])[1]
    return float(near.fill_diagonal_(False).double().mean())


def _by_products(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared distances, and where they have lost digits."""
    size = (a * a).sum(dim=1)[:, None] + (b * b).sum(dim=1)[None, :]
    squares = torch.addmm(size, a, b.T, alpha=-2)
    return squares, squares <= NEAR * size


def _moments(tile: Tile, n: int, first: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """One triangle of tiles; again with smaller ones where the device has no memory for them."""
    size = min(TILE, 1 << max(0, math.ceil(math.log2(max(n, 1)))))
    with ieee_products():
        return in_smaller(partial(_in_tiles, tile, n, first, device), size, min(size, MIN_TILE), "tiles of {:,} rows")


def _in_tiles(tile: Tile, n: int, first: int, device: torch.device, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    sums = torch.zeros(n, dtype=torch.float64, device=device)
    squares = torch.zeros((), dtype=torch.float64, device=device)
    for start in range(0, first or n, size):
        rows = slice(start, min(start + size, first or n))
        for other in range(first or start, n, size):
            columns = slice(other, min(other + size, n))
            h = tile(rows, columns)
            if rows == columns:
                h.fill_diagonal_(0.0)
            else:
                sums[columns] += h.sum(dim=0, dtype=torch.float64)
            sums[rows] += h.sum(dim=1, dtype=torch.float64)
            squares += (1 if rows == columns else 2) * (h * h).sum(dtype=torch.float64)
    return sums, squares
