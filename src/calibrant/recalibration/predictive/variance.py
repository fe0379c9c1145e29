"""Variance scaling: one factor for the scales of all predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Laplace, Normal
from calibrant.distributions.multivariate import MultivariateNormal
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.maps import Map

MIN_FACTOR = 1e-6
"""The smallest factor: targets that all equal the means would ask for zero, which is no distribution."""

FAMILIES = {family.__name__: family for family in (Normal, Laplace, MultivariateNormal)}


@dataclass(frozen=True)
class VarianceScaling(Recalibrator):
    """All scales times the factor s of largest likelihood; with ``bias=True`` all means plus one shift b.

    In closed form, O(n). Normal: ``s^2 = mean ((y - m - b) / scale)^2``, b the mean of ``y - m`` with weights
    ``1 / scale^2``. Multivariate: ``s^2 = mean (y - m - b)' S^-1 (y - m - b) / d``, b the vector of generalised least
    squares. Laplace: ``s = mean |y - m - b| / scale``, b the median with weights ``1 / scale``. Without a shift it is what
    temperature scaling finds. Levi et al. (2022); Laves et al. (2020).

    >>> rng = np.random.default_rng(0)
    >>> fitted = VarianceScaling(bias=True).fit(rng.normal(1.0, 3.0, 2_000), Normal(np.zeros(2_000), 1.0))
    >>> round(fitted.map.factor, 1), fitted.map.shift.round(1)
    (3.0, array([0.9]))
    """

    bias: bool = False

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The maximum of the likelihood."""
        w = np.ones(len(targets)) if weights is None else weights
        w = w / w.sum()
        y = targets.astype(np.float64)
        if isinstance(predictions, MultivariateNormal):
            shift, factor = _vectors(y, predictions, w, bias=self.bias)
        elif isinstance(predictions, Normal | Laplace):
            shift, factor = _numbers(y, predictions, w, bias=self.bias)
        else:
            raise InputError(
                f"VarianceScaling takes {', '.join(FAMILIES)}; got {type(predictions).__name__} predictions"
            )
        notes = (
            ()
            if factor > MIN_FACTOR
            else (f"targets equal the means: the factor is the smallest considered, {MIN_FACTOR:g}",)
        )
        return Found(ScaledMap(type(predictions).__name__, max(factor, MIN_FACTOR), shift), notes=notes)


def _numbers(y: np.ndarray, predictions: Normal | Laplace, w: np.ndarray, *, bias: bool) -> tuple[np.ndarray, float]:
    """Shift ``(1,)`` and factor for targets that are numbers."""
    loc, scale = predictions.host
    off = y - loc
    if isinstance(predictions, Laplace):
        shift = _median(off, w / scale) if bias else 0.0
        return np.array([shift]), float(w @ (np.abs(off - shift) / scale))
    shift = float(w @ (off / scale**2) / (w @ scale**-2.0)) if bias else 0.0
    return np.array([shift]), float(np.sqrt(w @ ((off - shift) / scale) ** 2))


def _median(x: np.ndarray, w: np.ndarray) -> float:
    """The weighted median; halfway between two where both are."""
    order = np.argsort(x, kind="stable")
    x, share = x[order], np.cumsum(w[order]) / w.sum()
    low, high = np.minimum(np.searchsorted(share, [0.5 - 1e-12, 0.5 + 1e-12]), len(x) - 1)
    return float((x[low] + x[high]) / 2)


def _vectors(y: np.ndarray, predictions: MultivariateNormal, w: np.ndarray, *, bias: bool) -> tuple[np.ndarray, float]:
    """Shift ``(d,)`` and factor for targets that are vectors."""
    off = y - to_numpy(predictions.loc).astype(np.float64)
    d = off.shape[1]
    if predictions.scale is not None:
        precise = to_numpy(predictions.scale).astype(np.float64) ** -2.0
        shift = (w @ (precise * off)) / (w @ precise) if bias else np.zeros(d)
        return shift, float(np.sqrt(w @ (precise * (off - shift) ** 2).sum(axis=1) / d))
    inverse = np.linalg.inv(np.linalg.cholesky(to_numpy(predictions.covariance).astype(np.float64)))
    shift = np.zeros(d)
    if bias:
        precision = np.einsum("n,nji,njk->ik", w, inverse, inverse)
        shift = np.linalg.solve(precision, np.einsum("n,nji,njk,nk->i", w, inverse, inverse, off))
    white = np.einsum("nij,nj->ni", inverse, off - shift)
    return shift, float(np.sqrt(w @ (white**2).sum(axis=1) / d))


@dataclass(frozen=True, eq=False)
class ScaledMap(Map):
    """Scales times a factor, means plus a shift, ``(d,)``."""

    family: str
    factor: float
    shift: np.ndarray

    def __post_init__(self) -> None:
        shift = np.asarray(self.shift, dtype=np.float64)
        if self.family not in FAMILIES:
            raise InputError(f"family must be one of {', '.join(FAMILIES)}; got {self.family!r}")
        if not 0 < self.factor < np.inf:
            raise InputError(f"factor must be a positive number; got {self.factor!r}")
        if (
            shift.ndim != 1
            or not np.all(np.isfinite(shift))
            or (self.family != "MultivariateNormal" and len(shift) != 1)
        ):
            raise InputError(f"shift must be one finite number a dimension; got {self.shift!r}")
        object.__setattr__(self, "shift", shift)

    def apply(self, predictions: Distribution) -> Distribution:
        """The same family."""
        old: Any = predictions
        loc = old.loc + namespace(old.loc).astype(matched(self.shift, old.loc), old.loc.dtype)
        if isinstance(predictions, MultivariateNormal) and predictions.scale is None:
            return MultivariateNormal(loc, covariance=old.covariance * self.factor**2)
        return FAMILIES[self.family](loc, old.scale * self.factor)

    def check(self, predictions: Distribution) -> None:
        """Refuse other families, and other dimensions."""
        if type(predictions).__name__ != self.family:
            raise InputError(f"this map was fitted on {self.family} predictions; got {type(predictions).__name__}")
        if isinstance(predictions, MultivariateNormal) and predictions.loc.shape[1] != len(self.shift):
            raise InputError(
                f"this map was fitted in {len(self.shift)} dimensions and y_pred has {predictions.loc.shape[1]}"
            )
