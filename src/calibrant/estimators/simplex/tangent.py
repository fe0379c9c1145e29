"""The Lp calibration error by smoothed residuals that are tried on each row's own outcome."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._array import detached, is_traced, matched, namespace
from calibrant._validate import InputError
from calibrant.estimators.simplex.dirichlet import Bandwidth, DirichletRows, smoothed, weight_panels
from calibrant.estimators.simplex.kde import ALONE, check_power
from calibrant.estimators.simplex.local import (
    Around,
    LocalEstimator,
    LocalResamples,
    Question,
    shares_of_rows,
    signed_root,
)
from calibrant.lenses.class_lenses import Lens
from calibrant.typing import Array, Engine

GRID = (0.003, 0.008, 0.02, 0.055, 0.15, 0.4, 1.0)
"""Bandwidths that are tried. The value depends little on them, so a coarse grid will do."""


@dataclass(frozen=True)
class TangentKDE(LocalEstimator):
    """Lp calibration error by kernel regression of residuals: on average at most the truth, and far below with many classes.

    Residuals ``r = y - f`` are smoothed by the kernels of :class:`KDE`, ``G_j = sum_{i != j} w_ji r_i``: an estimate of the
    gap ``g = E[y | f] - f``, which is smoother than ``E[y | f]`` itself, and zero for calibrated models. Then ``G_j`` is
    tried on the row's own outcome, which it has not seen: the mean of ``|G|^p + p |G|^(p-1) sign(G) (r - G)``. This is the
    tangent of ``|g|^p`` at G, so it never exceeds ``|g|^p`` in expectation, and misses it only by the square of the error
    of G. For p = 1 it is ``sign(G) r``, for p = 2 ``2 G r - G^2``, where ``G^2`` is freed of its own noise, too
    (``debias=False`` leaves it in). Where nothing can be found the value is near zero, and may be negative.

    It collapses with many classes, as whole vectors then have few neighbours: with probabilities sharpened by a temperature
    of 2, 2,000 rows and 10, 30 and 100 classes it finds .21, .08 and .04 of .31, .33 and .34. Take
    :class:`~calibrant.Variational` with more than a few classes: it finds .29, .32 and .34, with a lower bound. Here there is
    no interval and no standard error: the spread of the rows shows neither the noise of G nor the choice of a bandwidth.

    ``bandwidth="cv"`` takes, of seven, the one whose G predicts residuals best; for squares without noise, which need less
    smoothing, the next narrower. Lenses, roots and zeros are as for KDE.
    O(n^2 K) time, O(n K) memory.
    A variational bound in the sense of Berta et al. (2026), with each row left out in turn.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 500)
    >>> y = [rng.choice(3, p=row**2 / (row**2).sum()) for row in p]
    >>> round(TangentKDE(p=2)(y, p).value, 2)  # the truth is 0.19
    0.2
    """

    p: float = 1
    bandwidth: float | Literal["cv"] = "cv"
    debias: bool = True
    lens: Lens | None = None
    root: bool = True

    name = "TangentKDE"
    no_interval = (
        "the value is on average at most the true error, far below it with many classes, and its spread is not known. "
        "Variational() gives an estimate with a lower bound"
    )
    rules = ("cv",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power(self.p)

    def around(
        self, question: Question, outcomes: Array, weights: np.ndarray | None, engine: Engine | None = None
    ) -> Around:
        """A regression of the residuals at each bandwidth that is tried; the best predicts them best."""
        tried = self.tried()
        if len(tried) > 1 and is_traced(question.points):
            raise InputError("give a bandwidth: none can be found for values that are being traced")
        xp = namespace(question.points)
        residuals = xp.astype(matched(question.observed(outcomes), question.points), question.points.dtype)
        residuals = residuals - question.predicted
        spread = xp.sum(residuals**2, axis=1, keepdims=True)
        rows = (DirichletRows.of(question.points, h, weights) for h in tried)
        found = [smoothed(some, residuals, spread, engine=engine) for some in rows]
        shares = shares_of_rows(found[0].is_empty, weights, spread[:, 0])
        errors = [xp.sum(shares * xp.sum((residuals - local.mean) ** 2, axis=1)) for local in found]
        best = 0 if len(found) == 1 else int(self.chosen(np.array([float(detached(error)) for error in errors])))
        local = found[best]
        terms = self.terms(local.mean, local.squares, local.mean_of_squares[:, 0], residuals)
        return Around(question, Bandwidth(tried[best]), local.is_empty, shares, terms, influence=None)

    def terms(self, gap: Array, squares: Array, noise: Array, residuals: Array) -> Array:
        """The tangents at the smoothed residuals, added up over the outcomes: ``(..., q)`` to ``(...)``."""
        xp = namespace(gap)
        if self.p == 2 and self.debias:
            several = 1 - squares > ALONE
            size = xp.sum(gap**2, axis=-1)
            unbiased = (size - noise) / xp.where(several, 1 - squares, xp.ones_like(squares))
            return 2 * xp.sum(gap * residuals, axis=-1) - xp.where(several, unbiased, size)
        size = xp.abs(gap)
        return xp.sum((1 - self.p) * size**self.p + self.p * size ** (self.p - 1) * xp.sign(gap) * residuals, axis=-1)

    def tried(self) -> tuple[float, ...]:
        """The bandwidths there are to choose from."""
        return GRID if isinstance(self.bandwidth, str) else (float(self.bandwidth),)

    def chosen(self, errors: np.ndarray) -> np.ndarray:
        """Which bandwidth is taken, from the errors ``(bandwidths, ...)`` with which they predict residuals."""
        best = np.argmin(errors, axis=0)
        return np.maximum(best - 1, 0) if self.p == 2 and self.debias else best

    def resamples(self, question: Question, weights: np.ndarray | None) -> LocalResamples:
        """Weights depend on the predictions alone; which bandwidth is best depends on the resample."""
        rows = tuple(DirichletRows.of(question.points, bandwidth, weights) for bandwidth in self.tried())
        return _Tangents(self, question, rows, np.ones(len(rows[0])) if weights is None else weights)

    def finished(self, mean: Array) -> Array:
        """The root, with the sign of the mean."""
        return signed_root(mean, self.p) if self.root and self.p != 1 else mean


@dataclass(frozen=True, eq=False)
class _Tangents(LocalResamples):
    estimator: TangentKDE
    question: Question
    rows: tuple[DirichletRows, ...]
    weights: np.ndarray

    def means(self, outcomes: np.ndarray) -> np.ndarray:
        """Of each resample, the mean at the bandwidth that is chosen for it."""
        residuals = np.moveaxis(self.question.observed(outcomes) - self.question.predicted, 1, 0)  # (n, m, q)
        tried = [self._at(rows, residuals) for rows in self.rows]
        best = self.estimator.chosen(np.array([error for _, error in tried]))
        return np.stack([mean for mean, _ in tried])[best, np.arange(len(best))]

    def _at(self, rows: DirichletRows, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the terms and the mean squared error, ``(m,)`` each."""
        n, m, q = residuals.shape
        flat, spread = residuals.reshape(n, m * q), (residuals**2).sum(axis=2)
        total, error, weight = np.zeros(m), np.zeros(m), 0.0
        for index, weights in weight_panels(rows):
            squared = weights * weights
            squares = squared.sum(axis=1)
            gap = (weights @ flat).reshape(-1, m, q)
            terms = self.estimator.terms(gap, squares[:, None], squared @ spread, residuals[index])
            w = np.where(squares > 0, self.weights[index], 0.0)
            total, error = total + w @ terms, error + w @ ((residuals[index] - gap) ** 2).sum(axis=2)
            weight += w.sum()
        return total / weight, error / weight
