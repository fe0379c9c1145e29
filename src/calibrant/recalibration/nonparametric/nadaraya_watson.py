"""Nadaraya-Watson regression: what happened where the model said something similar."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, check_classes

PRIORS = np.array([1000.0, 300, 100, 30, 10, 3, 1])
"""Priors tried, the one that changes least first."""

WIDTHS = np.geomspace(2, 5e-4, 9)
"""Bandwidths tried, the smoothest first: from one that sees the whole simplex to one that sees no neighbour."""

JUDGES = 1_000
"""Rows that are left out, one after the other, to choose a bandwidth; more would not change it by much."""

CELLS = 4_000_000
"""Values of the kernel held at a time."""


@dataclass(frozen=True)
class NadarayaWatson(Recalibrator):
    """Local frequencies of the classes, by a Gaussian kernel on probability vectors; any number of classes.

    ``g(p) = (c p + sum_i w_i K(p, p_i) e_{y_i}) / (c + sum_i w_i K(p, p_i))``,
    ``K(p, q) = exp(-|p - q|^2 / 2 h^2)``. The ``prior`` c counts the prediction itself as so many rows, so that it stays as
    it is where no row is near. The bandwidth h and c are given, or ``"loo"``: those of least leave-one-out log loss (after
    mixing with the uniform distribution, weight ``1 / (n + 1)``, which keeps it finite), from a grid, h then refined.

    The map holds the rows: at most ``most_rows`` of them, evenly spaced in the probability of what happened. O(n m k) for
    m rows kept. The order of classes and of rows does not matter. Nadaraya (1964), Watson (1964).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 1_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = NadarayaWatson().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> bool(fitted.scores["change"][0] < 0)
    True
    """

    bandwidth: float | Literal["loo"] = "loo"
    prior: float | Literal["loo"] = "loo"
    most_rows: int = 5_000

    def __post_init__(self) -> None:
        for name in ("bandwidth", "prior"):
            if getattr(self, name) != "loo":
                _check_positive(getattr(self, name), name, ", or 'loo' to have it chosen")
        check_count(self.most_rows, "most_rows")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The rows kept, with the bandwidth given or chosen."""
        check_classes(predictions, "NadarayaWatson")
        assert isinstance(predictions, Categorical)
        p = to_numpy(predictions.matrix).astype(np.float64)
        p = p / p.sum(axis=1, keepdims=True)
        w = in_rows(weights, len(p))
        kept = _evenly(p[np.arange(len(p)), targets], self.most_rows)
        notes = () if len(kept) == len(p) else (f"the map holds {len(kept):,} of {len(p):,} rows",)
        p, y, w = p[kept], targets[kept].astype(np.int64), w[kept]
        width, prior = _chosen(p, y, w, self)
        return Found(NadarayaWatsonMap(p.shape[1], width, prior, p, y, w), notes=notes)


def _check_positive(value: object, name: str, remedy: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} must be a positive number{remedy}; got {value!r}")


def _evenly(key: np.ndarray, most: int) -> np.ndarray:
    """At most so many row numbers, evenly spaced in the order of the key."""
    n = len(key)
    if n <= most:
        return np.arange(n)
    places = ((np.arange(most) + 0.5) * n / most).astype(np.intp)
    return np.sort(np.argsort(key, kind="stable")[places])


def _chosen(p: np.ndarray, y: np.ndarray, w: np.ndarray, settings: NadarayaWatson) -> tuple[float, float]:
    """Bandwidth and prior of least leave-one-out log loss; of equals the smoothest."""
    from scipy.optimize import minimize_scalar  # slow to import

    losses = _left_out(p, y, w)
    widths = WIDTHS if isinstance(settings.bandwidth, str) else np.array([float(settings.bandwidth)])
    priors = PRIORS if isinstance(settings.prior, str) else np.array([float(settings.prior)])
    grid = np.log(widths)
    table = np.stack([losses(x, priors) for x in grid])
    best, which = np.unravel_index(np.argmax(table <= table.min() + 1e-12), table.shape)
    width, prior = float(widths[best]), priors[which : which + 1]
    if len(grid) > 1:
        ends = grid[min(best + 1, len(grid) - 1)], grid[max(best - 1, 0)]
        finer = minimize_scalar(
            lambda x: float(losses(x, prior)[0]), bounds=ends, method="bounded", options={"xatol": 0.05}
        )
        width = float(np.exp(finer.x)) if finer.fun < table.min() - 1e-12 else width
    return width, float(prior[0])


def _left_out(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> Callable[[float, np.ndarray], np.ndarray]:
    """Leave-one-out log losses, as a function of the logarithm of the bandwidth and of priors."""
    n, k = float(w.sum()), p.shape[1]
    said = p[np.arange(len(p)), y]
    judges = _evenly(said, JUDGES)
    distances = _squared_distances(p[judges], p)
    agree = (y[judges, None] == y) * w
    near = np.empty_like(distances)
    share = w[judges] / w[judges].sum()
    unit = np.minimum(w[judges], 1.0)  # of a weight of 3, which is three rows, one is left out

    def losses(log_width: float, priors: np.ndarray) -> np.ndarray:
        np.exp(np.multiply(distances, -0.5 * np.exp(-2 * log_width), out=near), out=near)
        hits, rows = np.einsum("ij,ij->i", near, agree) - unit, near @ w - unit
        found = (hits + priors[:, None] * said[judges]) / (rows + priors[:, None])
        return -np.log((n * np.clip(found, 0, 1) + 1 / k) / (n + 1)) @ share  # a difference may round below 0

    return losses


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``|a_i - b_j|^2``, ``(n, m)``, from products around the middle of b."""
    a, b = a - b.mean(axis=0), b - b.mean(axis=0)
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    # equal rows are at distance 0, which rounding of the product would hide from small bandwidths
    return np.where(square < 1e-15, 0, square)


@dataclass(frozen=True, eq=False)
class NadarayaWatsonMap(ClassMap):
    """Rows with what happened there, and how far they are heard."""

    n_classes: int
    bandwidth: float
    prior: float
    rows: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        _check_positive(self.bandwidth, "bandwidth")
        _check_positive(self.prior, "prior")
        rows, w = (np.asarray(x, dtype=np.float64) for x in (self.rows, self.weights))
        y = np.asarray(self.targets, dtype=np.int64)
        if rows.ndim != 2 or rows.shape[1] != self.n_classes or not y.shape == w.shape == rows.shape[:1]:
            raise InputError(f"rows must be (m, {self.n_classes}), with a target and a weight each")
        if not np.all((y >= 0) & (y < self.n_classes)) or not np.all(w >= 0) or not np.all((rows >= 0) & (rows <= 1)):
            raise InputError("rows must be probabilities, targets class numbers, weights at least 0")
        for name, value in (("rows", rows), ("targets", y), ("weights", w)):
            object.__setattr__(self, name, value)

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Local frequencies, some rows at a time."""
        p = p / p.sum(axis=1, keepdims=True)
        observed = self.weights[:, None] * (self.targets[:, None] == np.arange(self.n_classes))
        found = np.empty_like(p)
        step = max(1, CELLS // len(self.rows))
        for start in range(0, len(p), step):
            part = p[start : start + step]
            near = np.exp(-_squared_distances(part, self.rows) / (2 * self.bandwidth**2))
            total = near @ observed + self.prior * part
            found[start : start + step] = total / total.sum(axis=1, keepdims=True)
        return found
