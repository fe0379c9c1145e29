"""Does the choice of estimator change the preferred recalibration? The question of figure 2 of Roelofs et al. (2022).

Half of the rows fit four recalibrations of the confidence, the other half measures what is left. Repeated over splits,
each estimator votes for the recalibration with the smallest error.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from calibrant import ECE, Categorical, DebiasedECE, EqualMass, EqualWidth, LogLoss, SmoothECE, Sweep, TopLabel
from calibrant._validate import check_count
from calibrant.distributions import as_problem
from calibrant.estimators import IsotonicCurve
from calibrant.lab.fits import Likelihood
from calibrant.lab.score_worlds import on_scale
from calibrant.results import Table
from calibrant.typing import ArrayLike

Confidences = tuple[np.ndarray, np.ndarray]
"""Whether the favoured class was right, and its probability."""

ESTIMATORS = {
    "EW 15": ECE(EqualWidth(15)),
    "EM 15": ECE(EqualMass(15)),
    "EM sweep": ECE(Sweep()),
    "EM debiased": DebiasedECE(EqualMass(15), norm=1),
    "smooth": SmoothECE(),
}


def preferred_recalibration(y_true: ArrayLike, y_pred: ArrayLike, *, n_splits: int = 20, seed: int = 0) -> Table:
    """Mean error of the confidence after each recalibration by each estimator, and in how many splits it was smallest.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 600)
    >>> y = (rng.random((600, 1)) > np.cumsum(p**2 / (p**2).sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    >>> table = preferred_recalibration(y, p, n_splits=2)
    >>> table.n_rows, list(table)
    (25, ['estimator', 'recalibration', 'error', 'preferred'])
    """
    check_count(n_splits, "n_splits")
    targets, predictions = as_problem(y_true, y_pred)
    if not isinstance(predictions, Categorical):
        raise TypeError(f"y_pred must hold class probabilities; got {type(predictions).__name__}")
    rng, errors = np.random.default_rng(seed), []
    for _ in range(n_splits):
        fitted, tested = np.array_split(rng.permutation(len(predictions)), 2)
        outcome = _recalibrated(np.asarray(targets), predictions, fitted, tested)
        errors.append([[e(*data).value for data in outcome.values()] for e in ESTIMATORS.values()])
    found = np.array(errors)  # splits, estimators, recalibrations
    votes = np.stack([(found.argmin(axis=2) == i).sum(axis=0) for i in range(found.shape[2])], axis=1)
    return Table(
        estimator=np.repeat(list(ESTIMATORS), found.shape[2]),
        recalibration=np.tile(list(outcome), len(ESTIMATORS)),
        error=found.mean(axis=0).ravel(),
        preferred=votes.ravel(),
    )


def _recalibrated(
    targets: np.ndarray, predictions: Categorical, fitted: np.ndarray, tested: np.ndarray
) -> Mapping[str, Confidences]:
    """The tested rows as they are and after each recalibration."""
    before, after = (_confidences(targets[rows], predictions[rows]) for rows in (fitted, tested))
    cooled = predictions.temper(_temperature(targets[fitted], predictions[fitted]))
    curves: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "logistic": _logistic(*before),
        "isotonic": IsotonicCurve().fit(before[1], before[0]),
        "histogram": _histogram(*before),
    }
    return {
        "none": after,
        "temperature": _confidences(targets[tested], cooled[tested]),
        **{name: (after[0], np.clip(curve(after[1]), 0, 1)) for name, curve in curves.items()},
    }


def _confidences(targets: np.ndarray, predictions: Categorical) -> Confidences:
    hits, binary = TopLabel()(targets, predictions)
    return hits, np.asarray(binary.probability(1), dtype=np.float64)  # type: ignore[union-attr]


def _temperature(targets: np.ndarray, predictions: Categorical) -> float:
    """The temperature with the least log loss."""

    def loss(log_temperature: float) -> float:
        return float(LogLoss()(targets, predictions.temper(float(np.exp(log_temperature)))))

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def _logistic(hits: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """``sigmoid(b0 + b1 logit f)`` by maximum likelihood; scores are kept off the ends."""
    (b0, b1), _ = Likelihood("logit", hits.astype(bool), _log_odds(scores)).both()
    return partial(_sigmoid, b0, b1)


def _sigmoid(b0: float, b1: float, scores: np.ndarray) -> np.ndarray:
    return expit(b0 + b1 * _log_odds(scores))


def _log_odds(scores: np.ndarray) -> np.ndarray:
    inside = np.clip(scores, 1e-7, 1 - 1e-7)
    return on_scale("logit", inside, 1 - inside)


def _histogram(hits: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The frequency of each of fifteen bins of equal mass."""
    bins = EqualMass(15).bins(scores)
    cell = bins.index(scores)
    counts = np.bincount(cell, minlength=len(bins))
    frequency = np.bincount(cell, weights=hits, minlength=len(bins)) / np.maximum(counts, 1)
    return lambda new: frequency[bins.index(new)]
