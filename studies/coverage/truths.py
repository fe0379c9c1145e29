"""What estimators would find in endless data of a world."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import rel_entr
from scipy.stats.qmc import Sobol

from calibrant import ECE, KCE, KDE, SKCE, Brier, Categorical, DebiasedECE, LogLoss, Variational
from calibrant._validate import InputError
from calibrant.distributions import Distribution
from calibrant.estimators import MMCE, UCME, CanonicalECE, Lp, PITError, Score, TangentKDE, ZVariance
from calibrant.estimators.base import View
from studies.coverage.worlds import Setting

POINTS = 2**16
"""Rows that stand for all rows of a world of classes, times classes."""

PAIRED_POINTS = 2**12
"""The same where all pairs of rows are looked at."""

DRAWN_ROWS = 2**19
"""Rows of the data set that stands for all forecasts of numbers."""

KERNEL_ERRORS = (SKCE, KCE, MMCE, UCME)


def truth_of(setting: Setting, estimator: object) -> float | None:
    """What the estimator would find in endless data; ``None`` where that is not known.

    Binned and smoothed errors have the truth of their own bins or curve, which is at most the calibration error; debiased
    ones that of the plain one; kernel errors, kernel regressions and variational errors what they stand for.
    """
    try:
        found = _truth(setting, estimator)
    except InputError:  # a slope of equal scores
        return None
    return None if found is None or not np.isfinite(found) else found


@lru_cache(maxsize=512)
def _truth(setting: Setting, estimator: Any) -> float | None:
    if setting.kind == "labels" and not isinstance(estimator, Score):
        return 0.0 if setting.is_calibrated else None
    if setting.n_classes == 0:
        return _of_numbers(setting, estimator)
    if isinstance(estimator, KERNEL_ERRORS):
        return 0.0 if setting.is_calibrated else _kernel_error(setting, estimator)
    if isinstance(estimator, KDE | TangentKDE | Variational | CanonicalECE):
        return 0.0 if setting.is_calibrated else _distance(setting, estimator)
    predictions, truth, weights = population(setting, POINTS // setting.n_classes)
    if isinstance(estimator, DebiasedECE):
        estimator = ECE(estimator.bins, norm=estimator.norm, lens=estimator.lens)
    rows, classes = np.repeat(np.arange(len(predictions)), setting.n_classes), np.arange(setting.n_classes)
    chance = np.asarray(truth.matrix).ravel() * weights[rows]  # type: ignore[attr-defined]
    kept = chance > 0
    targets = np.tile(classes, len(predictions))[kept]
    return float(estimator(targets, predictions[rows[kept]], sample_weight=chance[kept]))


def population(setting: Setting, points: int) -> tuple[Distribution, Distribution, np.ndarray]:
    """Predictions and truths at points spread evenly over the features, with their weights, which sum to 1."""
    count = int(np.log2(points))
    if setting.world.features == 1:
        u = (np.arange(2**count)[:, None] + 0.5) / 2**count
    else:
        u = Sobol(setting.world.features, rng=0).random_base2(count)
        u = np.clip(u, 2.0**-40, 1 - 2.0**-40)
    predictions, truth = setting.world.given(u)
    weights = setting.weights_of(predictions)
    weights = np.ones(len(u)) if weights is None else weights
    return predictions, truth, weights / weights.sum()


def _of_numbers(setting: Setting, estimator: Any) -> float | None:
    """Means over a large data set; errors of calibrated forecasts are zero."""
    if (
        isinstance(estimator, KERNEL_ERRORS) and setting.kind == "ensembles"
    ):  # members are draws: not what they are drawn from
        return _of_members(setting, estimator)
    if isinstance(estimator, PITError) and setting.is_calibrated:
        return 0.0
    if not isinstance(estimator, Score | ZVariance | PITError):
        return 0.0 if setting.is_calibrated and isinstance(estimator, KERNEL_ERRORS) else None
    data = replace(setting, n=DRAWN_ROWS // max(setting.world.features, 1)).draw(np.random.default_rng(0))
    return float(estimator(data.targets, data.predictions))


def _of_members(setting: Setting, estimator: Any) -> float | None:
    """The mean over large data sets, whose kernels must not depend on the rows."""
    if (
        not isinstance(estimator, SKCE)
        or estimator.on_predictions.is_open
        or getattr(estimator.on_targets, "is_open", True)
    ):
        return None
    rng, large = np.random.default_rng(0), replace(setting, n=PAIRED_POINTS)
    sets = [large.draw(rng) for _ in range(8)]
    return float(np.mean([float(estimator(data.targets, data.predictions)) for data in sets]))


def _kernel_error(setting: Setting, estimator: Any) -> float | None:
    """``E k(P, P') <Q - P, Q' - P'>`` of classes, whose kernel is the identity."""
    squared = estimator if isinstance(estimator, SKCE) else getattr(estimator, "skce", None)
    if squared is None or squared.on_predictions.is_open:
        return None
    predictions, truth, w = population(setting, PAIRED_POINTS)
    p, q = np.asarray(predictions.matrix), np.asarray(truth.matrix)  # type: ignore[attr-defined]
    kernel = squared.on_predictions(p, p)
    gap = (q - p) * w[:, None]
    return float((gap * (kernel @ gap)).sum())


def _distance(setting: Setting, estimator: Any) -> float | None:
    """The mean distance of the truth from the prediction, of an event or of all classes."""
    predictions, truth, w = population(setting, POINTS)
    p, q = np.asarray(predictions.matrix), np.asarray(truth.matrix)  # type: ignore[attr-defined]
    if setting.n_classes == 2:
        p, q = p[:, 1:], q[:, 1:]
    elif getattr(estimator, "lens", None) is not None:
        (event,) = View.of(estimator.lens, predictions).events
        assert isinstance(predictions, Categorical)
        p, q = event.probability[:, None], q[np.arange(len(q)), p.argmax(axis=1)][:, None]
    return float(_mean_distance(estimator, p, q, w))


def _mean_distance(estimator: Any, p: np.ndarray, q: np.ndarray, w: np.ndarray) -> float:
    if isinstance(estimator, Variational):
        loss = estimator.loss
        if isinstance(loss, Brier):
            return float(w @ ((q - p) ** 2).sum(axis=1))
        if isinstance(loss, LogLoss):
            whole = [(p, q), (1 - p, 1 - q)] if p.shape[1] == 1 else [(p, q)]
            return float(w @ sum(rel_entr(b, a).sum(axis=1) for a, b in whole))
        assert isinstance(loss, Lp)
        return float(w @ np.linalg.norm(q - p, loss.p, axis=1))
    power = estimator.norm if isinstance(estimator, CanonicalECE) else estimator.p
    mean = float(w @ (np.abs(q - p) ** power).sum(axis=1))
    return mean ** (1 / power)
