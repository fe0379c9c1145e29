"""Signed errors of single rows: numbers that average to zero wherever the model is calibrated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.lenses import Event, Lens
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class Signal:
    """A name, the axis ``(n,)`` along which rows are neighbours, and the error ``(n,)`` of each row's target."""

    name: str
    axis: np.ndarray
    of: Callable[[Array], np.ndarray]


def event_signals(lens: Lens, predictions: Distribution) -> tuple[Signal, ...]:
    """Whether each event happened, minus its probability, along the probability.

    >>> from calibrant import Categorical, PositiveClass
    >>> (signal,) = event_signals(PositiveClass(), Categorical([0.25, 0.5]))
    >>> signal.of(np.array([1, 0]))
    array([ 0.75, -0.5 ])
    """
    return tuple(Signal(e.name, e.probability, partial(_event_error, e)) for e in lens.events(predictions))


def _event_error(event: Event, y: Array) -> np.ndarray:
    return event.happened(y) - event.probability


def forecast_signals(predictions: Distribution) -> tuple[Signal, ...]:
    """Level and spread of real targets, from ``F(y)``, which is uniform where the model is calibrated.

    >>> from calibrant import Normal
    >>> level, spread = forecast_signals(Normal([0.0, 0.0], 1.0))
    >>> level.of(np.array([0.0, 9.0])).round(3), spread.of(np.array([0.0, 9.0])).round(3)
    (array([0. , 0.5]), array([-0.5,  0.5]))
    """
    median = predictions.quantile(np.array([0.5]))
    if median is NotImplemented or predictions.cdf(median[:, 0]) is NotImplemented:
        raise InputError(f"{type(predictions).__name__} predictions have no distribution function to see errors by")
    axis = to_numpy(median)[:, 0]
    return Signal("level", axis, partial(_level, predictions)), Signal("spread", axis, partial(_spread, predictions))


def _level(predictions: Distribution, y: Array) -> np.ndarray:
    return predictions.cdf(to_numpy(y)) - 0.5


def _spread(predictions: Distribution, y: Array) -> np.ndarray:
    return 2 * np.abs(_level(predictions, y)) - 0.5
