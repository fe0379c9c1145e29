"""What families of positive targets share."""

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError, check_finite
from calibrant.distributions.base import Distribution
from calibrant.typing import Array

SMALLEST, LARGEST = float(np.finfo(np.float64).tiny), 1e300
"""Draws are rounded to these rather than to zero or infinity."""


def as_positive_targets(predictions: Distribution, y: Array) -> Array:
    """The targets, all above zero."""
    low, _ = check_finite(y, "y_true")
    if low <= 0:
        family, row = type(predictions).__name__, int(namespace(y).argmin(y))
        raise InputError(
            f"y_true must be positive, as zero cannot happen under {family} predictions; found {low:g} in row {row}: "
            "leave those rows out, or predict them by another family"
        )
    return y


def log_of_positive(y: np.ndarray) -> np.ndarray:
    """Logarithms; ``-inf`` at zero and below."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(y, 0))
