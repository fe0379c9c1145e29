"""Calibration errors in scikit-learn's spelling: a function, and scorers for cross-validation."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_probabilities, check_one_of
from calibrant.estimators.binned.binning import Binning, Bins, check_bins, unit_of, with_ends
from calibrant.estimators.binned.ece import ECE
from calibrant.sklearn.scoring import scorer
from calibrant.typing import ArrayLike

NORMS = {"l1": 1.0, "l2": 2.0, "max": math.inf}


@dataclass(frozen=True)
class CurveBins(Binning):
    """The bins of scikit-learn's ``calibration_curve``: of equal width, or between percentiles of the probabilities.

    ``"cube_root"`` makes ``ceil(n^(1/3))`` of them. Of weights only ratios matter: a row with twice the smallest weight counts as
    two.
    """

    n_bins: int | Literal["cube_root"] = "cube_root"
    strategy: Literal["uniform", "quantile"] = "quantile"

    def __post_init__(self) -> None:
        check_one_of(self.strategy, ("uniform", "quantile"), "strategy")
        if isinstance(self.n_bins, str):
            check_one_of(self.n_bins, ("cube_root",), "n_bins, if not a number,")
        else:
            check_bins(self.n_bins)

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """The bins for these scores."""
        n_bins = math.ceil(len(scores) ** (1 / 3)) if isinstance(self.n_bins, str) else self.n_bins
        levels = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
        inner = levels if self.strategy == "uniform" else _quantiles(scores, weights, levels)
        return Bins(with_ends(np.unique(inner.astype(scores.dtype))))


def _quantiles(scores: np.ndarray, weights: np.ndarray | None, levels: np.ndarray) -> np.ndarray:
    """Quantiles on straight lines between the sorted scores, each as often as its weight says."""
    if weights is None or weights.min() == weights.max():
        return np.percentile(scores, 100 * levels)
    order = np.argsort(scores)
    ordered, reached = scores[order], np.cumsum(weights[order]) / (unit_of(weights) or weights.min())
    at = levels * (reached[-1] - 1)
    low, high = (
        ordered[np.minimum(np.searchsorted(reached, whole * (1 + 1e-12), side="right"), len(ordered) - 1)]
        for whole in (np.floor(at), np.ceil(at))
    )
    found: np.ndarray = low + (high - low) * (at - np.floor(at))
    return found


def calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    norm: Literal["l1", "l2", "max"] = "l1",
    squared: bool = False,
    n_bins: int | Literal["cube_root"] = "cube_root",
    strategy: Literal["uniform", "quantile"] = "quantile",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """The calibration error of the probabilities of one class, in bins of scikit-learn's ``calibration_curve``, as a plain number.

    With ``w_k`` the weight of the rows in bin k, ``y_k`` the share of them that are positive and ``p_k`` their mean probability,
    ``sum_k w_k |y_k - p_k|`` for ``norm="l1"``, the root of ``sum_k w_k (y_k - p_k)^2`` for "l2" (``squared=True`` leaves out the
    root), and the largest ``|y_k - p_k|`` for "max". ``pos_label`` is needed where ``y_true`` holds names.

    Never negative, hence biased upwards: a calibrated model has an error, too. What it would show, intervals, several classes
    and other bins: :class:`calibrant.ExactTest` and :class:`calibrant.ECE`. The signature is that of scikit-learn's open proposal,
    34261.

    >>> y_true, y_proba = ["no", "yes", "yes", "no"], [0.1, 0.4, 0.8, 0.3]
    >>> round(calibration_error(y_true, y_proba, pos_label="yes", n_bins=2), 4)
    0.3
    """
    if norm not in NORMS:
        raise InputError(f"norm must be 'l1', 'l2' or 'max'; got {norm!r}")
    if squared and norm != "l2":
        raise InputError(f"squared=True is the square of norm='l2'; got norm={norm!r}")
    scores = as_probabilities(y_proba, "y_proba")
    if scores.ndim != 1:
        raise InputError(
            f"y_proba must be one column, the probability of the positive class, such as y_proba[:, 1]; got shape {scores.shape}. "
            "Several classes have calibrant.ECE()"
        )
    error = ECE(CurveBins(n_bins, strategy), NORMS[norm])
    value = float(error(y_true, to_numpy(scores).astype(np.float64), sample_weight=sample_weight, pos_label=pos_label))
    return value**2 if squared else value


def _squared(*data: Any, **options: Any) -> float:
    return float(ECE(CurveBins(), 2)(*data, **options)) ** 2


neg_l1_calibration_error = scorer(ECE(CurveBins()))
"""Minus the error of ``calibration_error``, for ``scoring=``: larger is better."""

neg_l2_calibration_error = scorer(ECE(CurveBins(), 2))
"""The same with ``norm="l2"``."""

neg_l2_squared_calibration_error = scorer(_squared)
"""The same with ``norm="l2", squared=True``."""

neg_max_calibration_error = scorer(ECE(CurveBins(), math.inf))
"""The same with ``norm="max"``."""
