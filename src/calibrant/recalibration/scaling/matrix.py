"""Many classes put right by a linear map of their logits: vector, matrix, structured and Dirichlet calibration."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from calibrant._array import as_double_rows, constant, matched, namespace, row_sums, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Searching, shares
from calibrant.recalibration.maps import ClassMap, Map, check_classes, check_least, least_probability
from calibrant.recalibration.scaling.softmax_regression import (
    DiagonalForm,
    Form,
    FullForm,
    Minimum,
    Point,
    SoftmaxLoss,
    minimised,
)
from calibrant.recalibration.scaling.temperature import fitted_power
from calibrant.typing import Array

MIN_PROBABILITY = 1e-12
"""Smaller probabilities count as this one."""


@dataclass(frozen=True)
class VectorScaling(Searching):
    """A slope and an intercept a class: ``softmax(w_c z_c + b_c)``, by maximum likelihood.

    The logits z are ``log p`` less its mean over classes, which is all that probabilities tell of them. A probability of 0
    counts as half the smallest other one, at least 1e-12, in the fit and when the map is applied. No penalty: for few
    classes or many rows; a class that never happens gets about one half of a row, as no maximum exists. Convex;
    Newton's method by conjugate gradients to a gradient of 1e-10, O(n k) a product.
    Guo et al. (2017).

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5_000, 3)) * 3
    >>> from scipy.special import softmax
    >>> p = softmax(z, axis=1)
    >>> true = softmax(z * [0.5, 0.5, 1.0] + [0.0, 0.5, -0.5], axis=1)
    >>> VectorScaling().fit([rng.choice(3, p=row) for row in true], p).map.weights.round(1)
    array([0.5, 0.5, 0.9])
    """

    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """Logistic regression on each logit less its mean, so that a constant one keeps its slope of 1."""
        problem = _problem(targets, predictions, weights, "VectorScaling")
        z = _centred(problem.log_p)
        there = problem.w @ z
        rest, means = _cleaned(z - there), to_numpy(there)
        level = np.stack([-1.0 * to_numpy(namespace(rest).any(rest != 0, axis=0)), -means], axis=1)
        start = None
        if isinstance(known, LinearLogits):
            slopes = known.weights - 1
            start = np.stack([slopes, known.intercepts + slopes * means], axis=1)
        fit = problem.fitted(DiagonalForm(rest), z, np.zeros((z.shape[1], 2)), level, start)
        slopes, intercepts = fit.coefficients.T
        linear = LinearLogits(z.shape[1], 1 + slopes, intercepts - slopes * means, is_centred=True, least=problem.least)
        return fit.found(linear)


@dataclass(frozen=True)
class MatrixScaling(Searching):
    """A matrix and an intercept: ``softmax(W z + b)``, off-diagonals of W and b kept small.

    Minimises ``mean log loss + penalty/n (k(k - 1) |offdiag W|^2 + k |b|^2 + |diag W - 1|^2)``, with the logits z of
    :class:`VectorScaling`; of weighted rows n is their effective number. Off-diagonals and intercepts are penalised
    (ODIR), the diagonal only so much that it stays finite where classes are separable or never happen. Strictly convex,
    O(n k^2) a product. Guo et al. (2017); penalty by Kull et al. (2019), sizes as in :class:`StructuredMatrix`.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5_000, 3)) * 3
    >>> from scipy.special import softmax
    >>> true = softmax(z @ [[0.5, 0.0, 0.2], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]], axis=1)
    >>> fitted = MatrixScaling().fit([rng.choice(3, p=row) for row in true], softmax(z, axis=1))
    >>> bool(fitted.scores["change"][0] < 0)
    True
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        _check_penalty(self.penalty)

    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """Penalised logistic regression on centred logits."""
        problem = _problem(targets, predictions, weights, "MatrixScaling")
        return problem.penalised(_centred(problem.log_p), self.penalty, self.penalty, _beyond(known)).found_matrix(
            is_centred=True
        )


@dataclass(frozen=True)
class DirichletScaling(Searching):
    """Dirichlet calibration: ``softmax(W log p + b)``, off-diagonals of W and b kept small.

    Exact, but for the penalty, where the predictions given each class have Dirichlet distributions. Objective, cost and
    small probabilities as for :class:`MatrixScaling`; the difference is that ``log p`` keeps its mean over classes, which
    tells sure rows from unsure ones. On two classes it is beta calibration. Kull et al. (2019).

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=5_000)
    >>> p = np.array([rng.dirichlet(1 + 2 * np.eye(3)[c]) for c in y])
    >>> DirichletScaling(penalty=0.01).fit(y, p).map.weights.round(1) + 0.0
    array([[ 1.8, -0.1, -0.1],
           [-0.1,  2. , -0.1],
           [ 0. ,  0. ,  2.1]])
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        _check_penalty(self.penalty)

    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """Penalised logistic regression on logarithms."""
        problem = _problem(targets, predictions, weights, "DirichletScaling")
        return problem.penalised(problem.log_p, self.penalty, self.penalty, _beyond(known)).found_matrix()


@dataclass(frozen=True)
class StructuredMatrix(Searching):
    """Structured matrix scaling: a temperature, then ``softmax(x + D x + b)`` with x the logarithm of the result.

    Minimises ``mean log loss + k/n |b|^2 + k/n |diag D|^2 + k(k - 1)/n |offdiag D|^2``: the fewer rows, the
    closer to a temperature. ``diagonal=True`` leaves out the off-diagonals (structured vector scaling) and costs O(n k) a
    product instead of O(n k^2). Strictly convex. Small probabilities as for :class:`VectorScaling`, n as for
    :class:`MatrixScaling`. ``mixed=True`` mixes the tempered probabilities with the uniform distribution, which counts as one
    row of n + 1, before x is taken: published numbers of this method do so. Berta et al. (2025).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = StructuredMatrix().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> round(fitted.map.temperature, 1), fitted([[0.8, 0.1, 0.1]]).round(2)
    (2.0, array([[0.59, 0.23, 0.18]]))
    """

    diagonal: bool = False
    mixed: bool = False

    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """A temperature, and a penalised logistic regression on top of it."""
        problem = _problem(targets, predictions, weights, "StructuredMatrix")
        power = 1 / known.temperature if isinstance(known, LinearLogits) else 1.0
        first = fitted_power(problem.log_p, targets, problem.w, problem.rows, power)
        temperature, k = 1 / first.power, problem.log_p.shape[1]
        uniform = 1 / (problem.rows + 1) if self.mixed else 0.0
        x = _mixed(_log_softmax(problem.log_p / temperature), uniform)
        if self.diagonal:
            penalty, level = np.full((k, 2), k / problem.rows), np.tile([-1.0, 0.0], (k, 1))
            fit = problem.fitted(DiagonalForm(x), x, penalty, level, _beyond(known))
            slopes, intercepts = 1 + fit.coefficients[:, 0], fit.coefficients[:, 1]
            linear = LinearLogits(k, slopes, intercepts, temperature, least=problem.least, uniform=uniform)
            found = fit.found(linear)
        else:
            fit = problem.penalised(x, 1.0, diagonal=float(k), known=_beyond(known))
            found = fit.found_matrix(temperature, uniform=uniform)
        return Found(found.map, found.is_converged and first.is_converged, (*first.notes, *found.notes))


def _mixed(log_p: Array, uniform: float) -> Array:
    """Logarithms of probabilities of which a share is spread evenly."""
    if not uniform:
        return log_p
    xp = namespace(log_p)
    return xp.log((1 - uniform) * xp.exp(log_p) + uniform / log_p.shape[1])


def _beyond(known: Map | None) -> np.ndarray | None:
    """The coefficients of a known map, less those of the identity."""
    if not isinstance(known, LinearLogits):
        return None
    weights = known.weights - (1 if known.weights.ndim == 1 else np.eye(known.n_classes))
    return np.column_stack([weights, known.intercepts])


class _Fit(NamedTuple):
    """Coefficients beyond the identity, ``(k, m)``, the intercept last; convergence; what is to be said."""

    coefficients: np.ndarray
    is_converged: bool
    notes: tuple[str, ...]
    least: float

    def found(self, map_: ClassMap) -> Found:
        return Found(map_, self.is_converged, self.notes)

    def found_matrix(self, temperature: float = 1.0, *, is_centred: bool = False, uniform: float = 0.0) -> Found:
        k = len(self.coefficients)
        matrix = np.eye(k) + self.coefficients[:, :k]
        return self.found(
            LinearLogits(k, matrix, self.coefficients[:, k], temperature, is_centred, self.least, uniform)
        )


class _Problem(NamedTuple):
    """Logarithms of probabilities, finite, ``(n, k)``; targets; weights that sum to 1, and for how many rows they stand."""

    log_p: Array
    targets: np.ndarray
    w: Array
    rows: float
    least: float

    def penalised(self, x: Array, penalty: float, diagonal: float, known: np.ndarray | None) -> _Fit:
        """A full matrix beyond the identity, its off-diagonals, intercepts and diagonal penalised each in its own way."""
        k = x.shape[1]
        sizes = np.full((k, k + 1), penalty * k * (k - 1) / self.rows)
        sizes[:, k] = penalty * k / self.rows
        np.fill_diagonal(sizes, diagonal / self.rows)
        return self.fitted(FullForm(x, self.w), x, sizes, -np.eye(k, k + 1), known)

    def fitted(
        self, form: Form, offset: Array, penalty: np.ndarray, level: np.ndarray, known: np.ndarray | None
    ) -> _Fit:
        """The search from known coefficients, or from the identity on, or from ``level``, whose logits are 0, where that is better.

        Predictions that are sure and wrong have a likelihood without curvature, in which Newton's method is lost. Where the
        optimum is at infinity, the point that is taken would depend on a known start, which is given up.
        """
        objective = SoftmaxLoss(form, offset, self.targets, self.w, penalty)
        if known is not None:
            end = _searched(objective, known, self.rows)
            if end.is_converged and not end.is_infinite:
                return _Fit(end.x, end.is_converged, end.notes, self.least)
        start = np.zeros(penalty.shape)
        here = objective.at(start)
        if np.log(len(level)) + (penalty * level**2).sum() < here.loss:
            start, here = level, objective.at(level)
        end = _searched(objective, start, self.rows, here)
        return _Fit(end.x, end.is_converged, end.notes, self.least)


def _searched(objective: SoftmaxLoss, start: np.ndarray, rows: float, here: Point | None = None) -> Minimum:
    """The minimum; where steps of single precision lead nowhere, those of double precision go on."""
    end = minimised(objective, start, rows, here)
    return end if end.is_converged else minimised(replace(objective, is_exact=True), end.x, rows)


def _problem(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, asker: str) -> _Problem:
    check_classes(predictions, asker)
    assert isinstance(predictions, Categorical)
    p = constant(as_double_rows(predictions.matrix))
    w, rows = shares(weights, len(targets))
    least = max(least_probability(p, rows), MIN_PROBABILITY)
    return _Problem(_log_rows(p, least), targets, matched(w, p), rows, least)


def _log_rows(p: Array, least: float) -> Array:
    """Logarithms of rows that sum to 1, from the least probability on."""
    xp = namespace(p)
    found: Array = xp.log(xp.clip(p / row_sums(p)[:, None], least, None))
    return found


def _centred(log_p: Array) -> Array:
    return log_p - namespace(log_p).mean(log_p, axis=1, keepdims=True)


def _log_softmax(logits: Array) -> Array:
    xp = namespace(logits)
    logits = logits - xp.max(logits, axis=1, keepdims=True)
    logits -= xp.log(row_sums(xp.exp(logits)))[:, None]
    return logits


def _cleaned(deviations: Array) -> Array:
    """Columns that only rounding keeps from being constant, made so."""
    xp = namespace(deviations)
    varies = xp.max(xp.abs(deviations), axis=0) > 1e-9
    return xp.where(varies, deviations, xp.zeros_like(deviations))


def _check_penalty(penalty: float) -> None:
    if not isinstance(penalty, Real) or isinstance(penalty, bool) or not 0 <= penalty < np.inf:
        raise InputError(f"penalty must be a number of at least 0; got {penalty!r}")


@dataclass(frozen=True, eq=False)
class LinearLogits(ClassMap):
    """``softmax(weights x + intercepts)`` with x the logarithm of ``p^(1/temperature)``, normalised, or centred.

    A share ``uniform`` of what x is the logarithm of is spread evenly. ``weights`` is a matrix ``(k, k)``, or its diagonal
    ``(k,)``. Probabilities below ``least`` count as that.
    """

    n_classes: int
    weights: np.ndarray
    intercepts: np.ndarray
    temperature: float = 1.0
    is_centred: bool = False
    least: float = MIN_PROBABILITY
    uniform: float = 0.0
    stays: ClassVar[bool] = True

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
        if not 0 <= self.uniform < 1:
            raise InputError(f"uniform must be a share of at least 0 and below 1; got {self.uniform!r}")

    def probabilities(self, p: Array) -> Array:
        """A linear map of the logits."""
        log_p, weights = _log_rows(p, self.least), matched(self.weights, p)
        x = _centred(log_p) if self.is_centred else _mixed(_log_softmax(log_p / self.temperature), self.uniform)
        moved = x * weights if weights.ndim == 1 else x @ namespace(p).permute_dims(weights, (1, 0))
        moved += matched(self.intercepts, p)
        moved -= namespace(p).max(moved, axis=1, keepdims=True)
        odds = namespace(p).exp(moved)
        odds /= row_sums(odds)[:, None]
        return odds
