"""The length scale that needs no choice: the median distance."""

import numpy as np

from calibrant._array import is_traced, to_numpy
from calibrant._validate import InputError
from calibrant.kernels.metrics import Metric
from calibrant.typing import Array

MOST_ROWS = 2000
"""Larger samples are thinned to so many rows."""

SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near the golden section of 2^64: products with it spread over all bits."""

COARSE = np.uint32(0xFFFFE000)
"""The leading bits of a float32, about three digits."""


def median_distance(points: Array, metric: Metric) -> float:
    """The median of the distances between different rows, ``(n, d)``; it does not depend on their order.

    Where more than half of the pairs coincide, the mean of the positive distances; where all do, 1.

    >>> from calibrant.kernels import Euclidean
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]), Euclidean())
    2.0
    """
    from scipy.spatial.distance import pdist

    if is_traced(points):
        raise InputError("give a length scale: the median distance of values that are being traced is not known yet")
    host = to_numpy(points).astype(np.float64)
    if len(host) > MOST_ROWS:
        host = host[thinned(host)]
    distances = pdist(host, metric.name)
    if not distances.any():
        return 1.0
    median = float(np.median(distances))
    return median if median > 0 else float(distances[distances > 0].mean())


def thinned(host: np.ndarray) -> np.ndarray:
    """At most ``MOST_ROWS`` row numbers, as good as random, in an order that does not depend on that of the rows.

    Rows are taken by their digits: the leading ones decide, so that float32 and float64 take much the same rows, the others
    put rows in order that agree in those.
    """
    values = host.reshape(len(host), -1) + 0.0  # no negative zeros
    coarse = _hashed((values.astype(np.float32).view(np.uint32) & COARSE).astype(np.uint64))
    order = np.lexsort((_hashed(values.astype(np.float64).view(np.uint64)), coarse))
    keys = coarse[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    copy = np.arange(len(keys)) - np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))
    return order[np.argsort(_mixed(keys ^ _mixed(copy.astype(np.uint64))), kind="stable")[:MOST_ROWS]]


def _hashed(bits: np.ndarray) -> np.ndarray:
    """One number a row, from whole numbers only: the same wherever the row stands."""
    hashed = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        hashed = _mixed(hashed ^ column)
    return hashed


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x + SPREAD) * SPREAD
    return (x ^ (x >> np.uint64(29))) * SPREAD
