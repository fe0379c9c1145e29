"""The length scale that needs no choice: the median distance."""

import numpy as np

from calibrant._array import is_traced, to_numpy
from calibrant._validate import InputError
from calibrant.kernels.metrics import Metric
from calibrant.typing import Array

MOST_ROWS = 2000
"""Larger samples are thinned to so many rows, drawn with a fixed seed."""


def median_distance(points: Array, metric: Metric) -> float:
    """The median of the distances between different rows, ``(n, d)``.

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
        host = host[np.random.default_rng(0).choice(len(host), MOST_ROWS, replace=False)]
    distances = pdist(host, metric.name)
    if not distances.any():
        return 1.0
    median = float(np.median(distances))
    return median if median > 0 else float(distances[distances > 0].mean())
