"""Predictions of vectors, one coordinate at a time."""

from functools import singledispatch

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.mixture import Mixture
from calibrant.distributions.mvnormal import MultivariateNormal
from calibrant.distributions.normal import Normal


def dimensions(predictions: Distribution) -> int:
    """How many coordinates targets have; 0 of targets that are numbers.

    >>> dimensions(Normal([0.0], 1.0)), dimensions(MultivariateNormal([[0.0, 1.0]], 1.0))
    (0, 2)
    """
    shape = predictions[:1].sample(np.random.default_rng(0), 1).shape
    return 0 if len(shape) == 2 else int(shape[2])


@singledispatch
def coordinate(predictions: Distribution, index: int) -> Distribution:
    """What is predicted of one coordinate alone; other families join with ``coordinate.register``.

    >>> coordinate(MultivariateNormal([[0.0, 1.0]], [[2.0, 3.0]]), 1).coords
    array([[1., 3.]])
    """
    raise InputError(
        f"{type(predictions).__name__} does not say what it predicts of coordinate {index} alone: give an Ensemble of draws"
    )


@coordinate.register
def _members(predictions: Ensemble, index: int) -> Distribution:
    return Ensemble(predictions.members[:, :, index], predictions.weights)


@coordinate.register
def _normal(predictions: MultivariateNormal, index: int) -> Distribution:
    return Normal(predictions.mean[:, index], predictions.std[:, index])


@coordinate.register
def _mixed(predictions: Mixture, index: int) -> Distribution:
    return Mixture(tuple(coordinate(c, index) for c in predictions.components), predictions.weights)
