"""Kernels on pairs of a prediction and a target that are no product of two kernels: sums of products, and any function."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._pairwise import Pairwise
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.kernel_errors.kernel_problem import KernelRows, form_of, resolve_problem, unit_weights
from calibrant.estimators.kernel_errors.kernel_sums import spread_of_pairs, tile_of
from calibrant.estimators.kernel_errors.skce import SKCE, PairLimits, entries, step_of
from calibrant.kernels.base import as_points
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike, Engine

PairKernel: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""``(p, y, q, z)`` to ``k((p_i, y_i), (q_j, z_j))``, ``(n, m)``: coordinates ``(n, c)``, targets ``(n, d)``, and m others."""


def mean_over_pairs(
    estimator: BaseEstimator,
    form: Callable[[Any, Any], Array],
    rows: Any,
    tile: int,
    problem: tuple[Distribution, np.ndarray | None],
    engine: Engine | None,
) -> Estimate:
    """The U-statistic of a matrix of pairs with its interval."""
    predictions, weights = problem
    n = len(predictions)
    if n < 2:
        raise InputError(f"{type(estimator).__name__} needs at least two rows")
    pairs = float(n * (n - 1)) if weights is None else n**2 - float(np.sum(unit_weights(weights, n) ** 2))
    moments = Pairwise(form, rows, tile, engine).moments()
    value, spread = float(to_numpy(moments.total)) / pairs, spread_of_pairs(moments, n)
    limits = None if spread is None else PairLimits(value, spread, step_of(predictions))
    error = None if spread is None else spread.standard_error
    return Estimate("SKCE", value, n, estimator, standard_error=error, limits=limits)


@dataclass(frozen=True, eq=False)
class _Terms:
    """Rows of several kernel problems."""

    parts: tuple[KernelRows, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return type(self)(tuple(part[rows] for part in self.parts))


@dataclass(frozen=True)
class _SumForm:
    """The sum of their tiles."""

    forms: tuple[Callable[[KernelRows, KernelRows], Array], ...]

    def __call__(self, a: _Terms, b: _Terms) -> Array:
        return sum(form(x, y) for form, x, y in zip(self.forms, a.parts, b.parts, strict=True))


@dataclass(frozen=True)
class SumSKCE(BaseEstimator):
    """Squared kernel calibration error of a sum of products of kernels, ``sum_t k_t(P, P') l_t(y, y')``.

    One :class:`SKCE` for each product; a factor belongs to one of its kernels. Unbiased, as the sum of the terms is, with the
    interval of the sum. O(n^2). Widmann, Lindsten & Zachariah (2021).

    >>> from calibrant.kernels import Exponential, Gaussian
    >>> near, far = SKCE(Exponential(0.1)), SKCE(0.5 * Gaussian(1.0))
    >>> y, p = [0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.4, 0.1]
    >>> round(SumSKCE((near, far))(y, p).value - near(y, p).value - far(y, p).value, 12)
    0.0
    """

    terms: tuple[SKCE, ...]

    bias_cancels = True

    def __post_init__(self) -> None:
        terms = tuple(self.terms) if isinstance(self.terms, tuple | list) else ()
        if not terms or not all(isinstance(t, SKCE) and t.unbiased and t.block is None for t in terms):
            raise InputError(
                f"terms must be a list of SKCE estimators with unbiased=True and block=None; got {self.terms!r}"
            )
        object.__setattr__(self, "terms", terms)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The sum."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same by an engine."""
        settled, form, rows = self._problem(targets, predictions, weights)
        tile = min(tile_of(part) for part in rows.parts)
        return mean_over_pairs(settled, form, rows, tile, (predictions, weights), engine)

    def _problem(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[Self, _SumForm, _Terms]:
        found = [
            resolve_problem(t.on_predictions, t.on_targets, t.route, targets, predictions, weights) for t in self.terms
        ]
        settled = [
            replace(t, on_predictions=k, on_targets=kernel) for t, (k, kernel, _) in zip(self.terms, found, strict=True)
        ]
        form = _SumForm(tuple(form_of(k, rows) for k, _, rows in found))
        return replace(self, terms=tuple(settled)), form, _Terms(tuple(rows for _, _, rows in found))

    def matrix(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> np.ndarray:
        """``h_ij`` of all pairs of rows, ``(n, n)``."""
        _, form, rows = self._problem(*as_problem(y_true, y_pred, Classes(labels, pos_label)), None)
        return entries(form, rows, min(tile_of(part) for part in rows.parts))


@dataclass(frozen=True, eq=False)
class _Atoms:
    """Residuals as signed points: those of a row are targets ``(n, A, d)`` with weights ``(n, A)`` of total zero."""

    coords: np.ndarray
    points: np.ndarray
    signed: np.ndarray

    def __len__(self) -> int:
        return len(self.coords)

    def __getitem__(self, rows: slice | Array) -> Self:
        return type(self)(self.coords[rows], self.points[rows], self.signed[rows])

    @property
    def tile(self) -> int:
        """Rows of a tile of at most some hundred thousand pairs of atoms."""
        return max(1, 512 // self.points.shape[1])

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and points of all atoms."""
        n, count, width = self.points.shape
        return np.repeat(self.coords, count, axis=0), self.points.reshape(n * count, width)


@dataclass(frozen=True)
class _PairForm:
    """``sum_ab w_ia w_jb k((P_i, z_ia), (P_j, z_jb))``."""

    kernel: PairKernel

    def __call__(self, a: _Atoms, b: _Atoms) -> np.ndarray:
        values = np.asarray(self.kernel(*a.flat(), *b.flat()), dtype=np.float64)
        shape = (*a.signed.shape, *b.signed.shape)
        if values.shape != (shape[0] * shape[1], shape[2] * shape[3]):
            raise InputError(
                f"kernel(p, y, q, z) must give one number for each pair, an array {len(a.flat()[1]), len(b.flat()[1])}; "
                f"it gave {values.shape}"
            )
        return np.einsum("ia,iajb,jb->ij", a.signed, values.reshape(shape), b.signed)


@dataclass(frozen=True)
class PairSKCE(BaseEstimator):
    """Squared kernel calibration error of any kernel on pairs of a prediction and a target.

    ``kernel(p, y, q, z)`` gives ``k((p_i, y_i), (q_j, z_j))``, ``(n, m)``, of coordinates of predictions ``(n, c)`` (the
    probabilities of classes), targets ``(n, d)`` (class labels as 0, 1, ...), and m others. It must be positive semi-definite;
    ``K(p, q)_{yz}`` is the matrix-valued kernel of classifiers.

    Unbiased: expectations are sums over classes, of other families means over ``draws`` draws for each row, which are always
    the same, so that tests stay exact. O(n^2 K^2) calls of K classes, or draws. Widmann, Lindsten & Zachariah (2021), appendix E.

    >>> def kernel(p, y, q, z):  # the distance of pairs, which is no product
    ...     pairs, others = np.concatenate([p, y], axis=1), np.concatenate([q, z], axis=1)
    ...     return np.exp(-np.linalg.norm(pairs[:, None] - others[None, :], axis=2))
    >>> round(PairSKCE(kernel)([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).value, 4)
    -0.0055
    """

    kernel: PairKernel
    draws: int = 16
    seed: int = 0

    bias_cancels = True

    def __post_init__(self) -> None:
        if not callable(self.kernel):
            raise InputError(f"kernel must be a function kernel(p, y, q, z) of two sets of pairs; got {self.kernel!r}")
        check_count(self.draws, "draws", least=2)

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over pairs."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same by an engine."""
        form, rows = self._problem(targets, predictions, weights)
        found = mean_over_pairs(self, form, rows, rows.tile, (predictions, weights), engine)
        return replace(found, route="features" if isinstance(predictions, Categorical) else "sampled")

    def _problem(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[_PairForm, _Atoms]:
        coords, y = predictions.coords, to_numpy(as_points(targets)).astype(np.float64)
        if coords is NotImplemented:
            raise InputError(f"PairSKCE needs predictions with coordinates; {type(predictions).__name__} have none")
        if isinstance(predictions, Categorical):
            coords = predictions.matrix
            p = to_numpy(coords).astype(np.float64)
            points = np.tile(np.arange(p.shape[1], dtype=np.float64)[None, :, None], (len(p), 1, 1))
            signed = (points[:, :, 0] == y) - p
        else:
            drawn = np.moveaxis(predictions.sample(np.random.default_rng(self.seed), self.draws), 0, 1)
            drawn = drawn.reshape(len(y), self.draws, -1)
            points = np.concatenate([y[:, None, :], drawn], axis=1)
            signed = np.tile(np.r_[1.0, np.full(self.draws, -1 / self.draws)], (len(y), 1))
        w = unit_weights(weights, len(y))
        return _PairForm(self.kernel), _Atoms(to_numpy(coords).astype(np.float64), points, signed * w[:, None])

    def matrix(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> np.ndarray:
        """``h_ij`` of all pairs of rows, ``(n, n)``; without bias off its diagonal."""
        form, rows = self._problem(*as_problem(y_true, y_pred, Classes(labels, pos_label)), None)
        return entries(form, rows, rows.tile)
