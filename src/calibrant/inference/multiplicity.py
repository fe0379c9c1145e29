"""Several tests at once: p-values that stay honest."""

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_array, as_real
from calibrant.inference.monte_carlo import rounding_of
from calibrant.typing import ArrayLike


def holm(pvalues: ArrayLike, *, hypotheses: int | None = None) -> np.ndarray:
    """Holm's adjusted p-values: reject those below alpha, and no true hypothesis falls with more than that chance.

    ``hypotheses`` counts all that were considered, if more than those tested; the others count as not rejected.
    Holm (1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p, m = _checked(pvalues, hypotheses)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (m - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def benjamini_hochberg(pvalues: ArrayLike, *, hypotheses: int | None = None) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values: among those below alpha, at most that share is expected to be true.

    Holds for independent tests and for positively dependent ones. ``hypotheses`` as for :func:`holm`.
    Benjamini & Hochberg (1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p, m = _checked(pvalues, hypotheses)
    order = np.argsort(-p, kind="stable")
    stepped = np.minimum.accumulate(p[order] * m / np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def _checked(pvalues: ArrayLike, hypotheses: int | None) -> tuple[np.ndarray, int]:
    """P-values ``(n,)``, of which there may be none, and how many were considered."""
    values = as_array(pvalues, "pvalues")
    if tuple(values.shape) == (0,):
        return np.zeros(0), hypotheses or 0
    p = to_numpy(as_real(values, "pvalues")).astype(np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise InputError(f"pvalues must be numbers from 0 to 1 in one row; got shape {p.shape}, {p.min()} to {p.max()}")
    if hypotheses is not None and hypotheses < len(p):
        raise InputError(f"hypotheses must count all that were tested, {len(p)}; got {hypotheses}")
    return p, len(p) if hypotheses is None else hypotheses


def westfall_young(statistics: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Adjusted p-values of many statistics: ``(1 + #{max T* >= T}) / (m + 1)``, with the largest of all in each of m resamples.

    Reject those up to alpha, and no true hypothesis falls with more than that chance where all are true, exactly for every n;
    dependence between statistics costs nothing. Westfall & Young (1993).

    >>> westfall_young(np.array([0.5, 3.0]), np.array([1.0, 2.0, 0.8]))
    array([1.  , 0.25])
    """
    t, top = (to_numpy(as_real(x, n)) for x, n in ((statistics, "statistics"), (largest, "largest")))
    if top.ndim != 1:
        raise InputError(f"largest must be one number per resample; got shape {top.shape}")
    top = np.sort(top)
    slack = rounding_of(np.append(top, t.ravel()))
    return (1 + len(top) - np.searchsorted(top, t - slack, side="left")) / (len(top) + 1)
