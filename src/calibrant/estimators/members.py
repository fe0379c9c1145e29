"""Members of an ensemble, or draws that stand for them."""

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble

ROWS = 512
"""Rows at a time, few enough to stay in the cache."""


def shares_of(predictions: Distribution) -> np.ndarray | None:
    """The probabilities of the members of an ensemble that has weights."""
    return predictions.shares if isinstance(predictions, Ensemble) and predictions.weights is not None else None


def members_of(predictions: Distribution, n_draws: int, seed: int) -> np.ndarray:
    """The members of an ensemble, or as many draws of another family, ``(n, m)`` or ``(n, m, d)``."""
    if isinstance(predictions, Ensemble):
        return to_numpy(predictions.members).astype(np.float64)
    return np.moveaxis(predictions.sample(np.random.default_rng(seed), n_draws), 0, 1).astype(np.float64)


def even_members(predictions: Distribution, n_draws: int, seed: int) -> np.ndarray:
    """The same, all equally likely: draws of ensembles that have weights, too."""
    if shares_of(predictions) is None:
        return members_of(predictions, n_draws, seed)
    return np.moveaxis(predictions.sample(np.random.default_rng(seed), n_draws), 0, 1)


def check_fair(predictions: Distribution) -> None:
    """Refuse what a fair score has no meaning for."""
    if not isinstance(predictions, Ensemble):
        raise InputError(
            f"fair=True corrects for the number of members of an Ensemble; got {type(predictions).__name__} predictions"
        )
    if predictions.coincidence.max() > 1 - 1e-12:
        row = int(predictions.coincidence.argmax())
        raise InputError(f"fair=True needs at least 2 members a row; got 1 in row {row}")
