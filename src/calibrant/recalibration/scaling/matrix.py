"""Many classes put right by a linear map of their logits: vector, matrix, structured and Dirichlet calibration."""

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, shares
from calibrant.recalibration.maps import ClassMap, check_classes, check_least, least_probability
from calibrant.recalibration.scaling.softmax_regression import DiagonalForm, Form, FullForm, SoftmaxLoss, minimised
from calibrant.recalibration.scaling.temperature import Temperature, Tempering

MIN_PROBABILITY = 1e-12
"""Smaller probabilities count as this one."""


@dataclass(frozen=True)
class VectorScaling(Recalibrator):
    """A slope and an intercept a class: ``softmax(w_c z_c + b_c)``, by maximum likelihood.

    The logits z are ``log p`` less its mean over classes, which is all that probabilities tell of them. A probability of 0
    counts as half the smallest other one, at least 1e-12, in the fit and when the map is applied. No penalty: for few
    classes or many rows; a class that never happens gets about one half of a row, as no maximum exists. Convex;
    Newton's method by conjugate gradients to a gradient of 1e-10, O(n k) a product.
    Guo et al. (2017).

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5_000, 3)) * 3
    >>> p = softmax(z, axis=1)
    >>> true = softmax(z * [0.5, 0.5, 1.0] + [0.0, 0.5, -0.5], axis=1)
    >>> VectorScaling().fit([rng.choice(3, p=row) for row in true], p).map.weights.round(1)
    array([0.5, 0.5, 0.9])
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Logistic regression on each logit less its mean, so that a constant one keeps its slope of 1."""
        problem = _problem(targets, predictions, weights, "VectorScaling")
        z = _centred(problem.log_p)
        means = problem.w @ z
        rest = _cleaned(z - means)
        level = np.stack([-1.0 * rest.any(axis=0), -means], axis=1)
        fit = problem.fitted(DiagonalForm(rest), z, np.zeros((z.shape[1], 2)), level)
        slopes, intercepts = fit.coefficients.T
        linear = LinearLogits(z.shape[1], 1 + slopes, intercepts - slopes * means, is_centred=True, least=problem.least)
        return fit.found(linear)


@dataclass(frozen=True)
class MatrixScaling(Recalibrator):
    """A matrix and an intercept: ``softmax(W z + b)``, off-diagonals of W and b kept small.

    Minimises ``mean log loss + penalty/n (k(k - 1) |offdiag W|^2 + k |b|^2 + |diag W - 1|^2)``, with the logits z of
    :class:`VectorScaling`; of weighted rows n is their effective number. Off-diagonals and intercepts are penalised
    (ODIR), the diagonal only so much that it stays finite where classes are separable or never happen. Strictly convex,
    O(n k^2) a product. Guo et al. (2017); penalty by Kull et al. (2019), sizes as in :class:`StructuredMatrix`.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5_000, 3)) * 3
    >>> true = softmax(z @ [[0.5, 0.0, 0.2], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]], axis=1)
    >>> fitted = MatrixScaling().fit([rng.choice(3, p=row) for row in true], softmax(z, axis=1))
    >>> bool(fitted.scores["change"][0] < 0)
    True
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        _check_penalty(self.penalty)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Penalised logistic regression on centred logits."""
        problem = _problem(targets, predictions, weights, "MatrixScaling")
        return problem.penalised(_centred(problem.log_p), self.penalty, self.penalty).found_matrix(is_centred=True)


@dataclass(frozen=True)
class Dirichlet(Recalibrator):
    """Dirichlet calibration: ``softmax(W log p + b)``, off-diagonals of W and b kept small.

    Exact, but for the penalty, where the predictions given each class have Dirichlet distributions. Objective, cost and
    small probabilities as for :class:`MatrixScaling`; the difference is that ``log p`` keeps its mean over classes, which
    tells sure rows from unsure ones. On two classes it is beta calibration. Kull et al. (2019).

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=5_000)
    >>> p = np.array([rng.dirichlet(1 + 2 * np.eye(3)[c]) for c in y])
    >>> Dirichlet(penalty=0.01).fit(y, p).map.weights.round(1) + 0.0
    array([[ 1.8, -0.1, -0.1],
           [-0.1,  2. , -0.1],
           [ 0. ,  0. ,  2.1]])
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        _check_penalty(self.penalty)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Penalised logistic regression on logarithms."""
        problem = _problem(targets, predictions, weights, "Dirichlet")
        return problem.penalised(problem.log_p, self.penalty, self.penalty).found_matrix()


@dataclass(frozen=True)
class StructuredMatrix(Recalibrator):
    """Structured matrix scaling: a temperature, then ``softmax(x + D x + b)`` with x the logarithm of the result.

    Minimises ``mean log loss + k/n |b|^2 + k/n |diag D|^2 + k(k - 1)/n |offdiag D|^2``: the fewer rows, the
    closer to a temperature. ``diagonal=True`` leaves out the off-diagonals (structured vector scaling) and costs O(n k) a
    product instead of O(n k^2). Strictly convex. Small probabilities as for :class:`VectorScaling`, n as for
    :class:`MatrixScaling`. Berta et al. (2025).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = StructuredMatrix().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> round(fitted.map.temperature, 1), fitted([[0.8, 0.1, 0.1]]).round(2)
    (2.0, array([[0.59, 0.23, 0.18]]))
    """

    diagonal: bool = False

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """A temperature, and a penalised logistic regression on top of it."""
        problem = _problem(targets, predictions, weights, "StructuredMatrix")
        first = Temperature().find(targets, Categorical.trusted(softmax(problem.log_p, axis=1)), weights)
        assert isinstance(first.map, Tempering)
        temperature, k = first.map.temperature, problem.log_p.shape[1]
        x = log_softmax(problem.log_p / temperature, axis=1)
        if self.diagonal:
            fit = problem.fitted(DiagonalForm(x), x, np.full((k, 2), k / problem.rows), np.tile([-1.0, 0.0], (k, 1)))
            found = fit.found(
                LinearLogits(k, 1 + fit.coefficients[:, 0], fit.coefficients[:, 1], temperature, least=problem.least)
            )
        else:
            fit = problem.penalised(x, 1.0, diagonal=float(k))
            found = fit.found_matrix(temperature)
        return Found(found.map, found.is_converged and first.is_converged, (*first.notes, *found.notes))


class _Fit(NamedTuple):
    """Coefficients beyond the identity, ``(k, m)``, the intercept last; convergence; what is to be said."""

    coefficients: np.ndarray
    is_converged: bool
    notes: tuple[str, ...]
    least: float

    def found(self, map_: ClassMap) -> Found:
        return Found(map_, self.is_converged, self.notes)

    def found_matrix(self, temperature: float = 1.0, *, is_centred: bool = False) -> Found:
        k = len(self.coefficients)
        matrix = np.eye(k) + self.coefficients[:, :k]
        return self.found(LinearLogits(k, matrix, self.coefficients[:, k], temperature, is_centred, self.least))


class _Problem(NamedTuple):
    """Logarithms of probabilities, finite, ``(n, k)``; targets; weights that sum to 1, and for how many rows they stand."""

    log_p: np.ndarray
    targets: np.ndarray
    w: np.ndarray
    rows: float
    least: float

    def penalised(self, x: np.ndarray, penalty: float, diagonal: float) -> _Fit:
        """A full matrix beyond the identity, its off-diagonals, intercepts and diagonal penalised each in its own way."""
        k = x.shape[1]
        sizes = np.full((k, k + 1), penalty * k * (k - 1) / self.rows)
        sizes[:, k] = penalty * k / self.rows
        np.fill_diagonal(sizes, diagonal / self.rows)
        return self.fitted(FullForm(x, self.w), x, sizes, -np.eye(k, k + 1))

    def fitted(self, form: Form, offset: np.ndarray, penalty: np.ndarray, level: np.ndarray) -> _Fit:
        """The search from the identity on, or from ``level``, whose logits are 0, where the predictions are worse than that.

        Predictions that are sure and wrong have a likelihood without curvature, in which Newton's method is lost.
        """
        objective = SoftmaxLoss(form, offset, self.targets, self.w, penalty)
        start = min(np.zeros(penalty.shape), level, key=lambda x: objective.at(x).loss)
        end = minimised(objective, start, self.rows)
        return _Fit(end.x, end.is_converged, end.notes, self.least)


def _problem(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, asker: str) -> _Problem:
    check_classes(predictions, asker)
    assert isinstance(predictions, Categorical)
    p = to_numpy(predictions.matrix).astype(np.float64)
    w, rows = shares(weights, len(targets))
    least = max(least_probability(p, rows), MIN_PROBABILITY)
    return _Problem(_log_rows(p, least), targets, w, rows, least)


def _log_rows(p: np.ndarray, least: float) -> np.ndarray:
    """Logarithms of rows that sum to 1, from the least probability on."""
    return np.log(np.maximum(p / p.sum(axis=1, keepdims=True), least))


def _centred(log_p: np.ndarray) -> np.ndarray:
    return log_p - log_p.mean(axis=1, keepdims=True)


def _cleaned(deviations: np.ndarray) -> np.ndarray:
    """Columns that only rounding keeps from being constant, made so."""
    return np.where(np.abs(deviations).max(axis=0) > 1e-9, deviations, 0.0)


def _check_penalty(penalty: float) -> None:
    if not isinstance(penalty, Real) or isinstance(penalty, bool) or not 0 <= penalty < np.inf:
        raise InputError(f"penalty must be a number of at least 0; got {penalty!r}")


@dataclass(frozen=True, eq=False)
class LinearLogits(ClassMap):
    """``softmax(weights x + intercepts)`` with x the logarithm of ``p^(1/temperature)``, normalised, or centred.

    ``weights`` is a matrix ``(k, k)``, or its diagonal ``(k,)``. Probabilities below ``least`` count as that.
    """

    n_classes: int
    weights: np.ndarray
    intercepts: np.ndarray
    temperature: float = 1.0
    is_centred: bool = False
    least: float = MIN_PROBABILITY

    def __post_init__(self) -> None:
        check_least(self.least)
        k, shape = self.n_classes, np.shape(self.weights)
        if shape not in ((k,), (k, k)) or np.shape(self.intercepts) != (k,):
            raise InputError(
                f"weights of {k} classes must be ({k},) or ({k}, {k}), intercepts ({k},); got {shape} and "
                f"{np.shape(self.intercepts)}"
            )
        if not (
            np.isfinite(self.weights).all() and np.isfinite(self.intercepts).all() and 0 < self.temperature < np.inf
        ):
            raise InputError("weights and intercepts must be finite, the temperature positive")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """A linear map of the logits."""
        log_p = _log_rows(p, self.least)
        x = _centred(log_p) if self.is_centred else log_softmax(log_p / self.temperature, axis=1)
        moved = x * self.weights if self.weights.ndim == 1 else x @ self.weights.T
        return softmax(moved + self.intercepts, axis=1)
