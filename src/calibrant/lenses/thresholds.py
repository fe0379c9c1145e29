"""Events of forecasts of numbers: that a target exceeds a threshold, or lies within limits.

They turn a forecast into probabilities of yes-or-no events, for everything that looks at those: calibration errors,
reliability curves, exact tests, recalibration.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_real, check_same_length
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import as_problem
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class RangeEvent(Event):
    """That a target lies between ``low`` and ``high``, both included, or that it does not; numbers, or one per row."""

    low: Any = -np.inf
    high: Any = np.inf
    inside: bool = True

    def observed(self, targets: Array) -> np.ndarray:
        """Whether the event took place, ``(..., n)`` on the host, for targets ``(..., n)``."""
        y = to_numpy(targets)
        return ((y >= self.low) & (y <= self.high)) == self.inside

    def problem(self, targets: Array) -> tuple[Array, Categorical]:
        """The binary problem of this event."""
        return self.observed(targets).view(np.uint8), Categorical(self.predicted)


def _event(name: str, predictions: Distribution, low: Any, high: Any, *, inside: bool) -> RangeEvent:
    """The event with its probability: of all values up to ``high`` but for those below ``low``, or of all others."""
    ends = np.broadcast_to(high, len(predictions)), np.broadcast_to(low, len(predictions))
    upto = predictions.cdf(ends[0].astype(np.float64))
    if upto is NotImplemented:
        raise InputError(
            f"events of thresholds need a distribution function, which {type(predictions).__name__} predictions do not have"
        )
    less = 0.0 if np.all(np.isneginf(ends[1])) else to_numpy(predictions.below(ends[1].astype(np.float64)))
    probability = np.clip(to_numpy(upto) - less, 0, 1)
    return RangeEvent(name, probability if inside else 1 - probability, low=low, high=high, inside=inside)


def _numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Finite numbers, ``(m,)``."""
    is_one = not isinstance(values, list | tuple) and np.ndim(values) == 0
    numbers = to_numpy(as_real([values] if is_one else values, name)).astype(np.float64)
    if numbers.ndim != 1:
        raise InputError(f"{name} must be a number or a list of numbers; got shape {numbers.shape}")
    return numbers


def as_thresholds(values: ArrayLike, name: str) -> tuple[float, ...]:
    """Finite numbers, in the order given."""
    return tuple(_numbers(values, name).tolist())


@dataclass(frozen=True)
class Exceeds(Lens):
    """The event that the target is larger than a threshold, ``P(Y > t)``; of several thresholds, one event each.

    A lens for forecasts of numbers. Thresholds hold for all rows; :func:`exceeds` takes one per row.

    >>> from calibrant import ECE, Normal
    >>> from calibrant.lenses import Exceeds
    >>> y_true, forecast = [1.2, -0.3, 0.4], Normal([1.0, 0.0, 0.0], 1.0)
    >>> happened, predicted = Exceeds(0.5)(y_true, forecast)
    >>> happened, predicted.probs.round(2)
    (array([1, 0, 0], dtype=uint8), array([0.69, 0.31, 0.31]))
    >>> round(ECE(lens=Exceeds(0.5))(y_true, forecast).value, 4)
    0.3085
    """

    thresholds: float | tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "thresholds", as_thresholds(self.thresholds, "thresholds"))

    @property
    def name(self) -> str:  # type: ignore[override]  # as long as it is not set
        """The thresholds."""
        return f"exceeds {', '.join(f'{t:g}' for t in np.atleast_1d(self.thresholds))}"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """As many events as thresholds."""
        thresholds = np.atleast_1d(self.thresholds).tolist()
        return tuple(_event(f"> {t:g}", predictions, -np.inf, t, inside=False) for t in thresholds)


@dataclass(frozen=True)
class Within(Lens):
    """The event that the target lies between two numbers, both included, ``P(low <= Y <= high)``.

    >>> from calibrant import Normal
    >>> from calibrant.lenses import Within
    >>> happened, predicted = Within(-1, 1)([1.2, -0.3], Normal([1.0, 0.0], 1.0))
    >>> happened, predicted.probs.round(2)
    (array([0, 1], dtype=uint8), array([0.48, 0.68]))
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            (number,) = _of_rows(getattr(self, name), name, 1).tolist()
            object.__setattr__(self, name, number)
        if self.low > self.high:
            raise InputError(f"low must not exceed high; got {self.low:g} and {self.high:g}")

    @property
    def name(self) -> str:  # type: ignore[override]  # as long as it is not set
        """The limits."""
        return f"within {self.low:g} to {self.high:g}"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """One event."""
        return (_event(self.name, predictions, self.low, self.high, inside=True),)


def exceeds(y_true: ArrayLike, y_pred: ArrayLike, threshold: ArrayLike) -> tuple[Array, Categorical]:
    """Whether each target is larger than the threshold of its row, and the probability of that.

    ``threshold`` is a number or one per row, such as each place's own flood level.

    >>> from calibrant import Normal
    >>> happened, predicted = exceeds([1.2, -0.3], Normal([1.0, 0.0], 1.0), [1.0, 0.0])
    >>> happened, predicted.probs
    (array([1, 0], dtype=uint8), array([0.5, 0.5]))
    """
    targets, predictions = as_problem(y_true, y_pred)
    t = _of_rows(threshold, "threshold", len(predictions))
    return _event("> threshold", predictions, -np.inf, t, inside=False).problem(targets)


def within(y_true: ArrayLike, y_pred: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Array, Categorical]:
    """Whether each target lies between the limits of its row, both included, and the probability of that.

    >>> from calibrant import Normal
    >>> happened, predicted = within([1.2, -0.3], Normal([1.0, 0.0], 1.0), low=[1.0, 0.0], high=9.0)
    >>> happened, predicted.probs
    (array([1, 0], dtype=uint8), array([0.5, 0.5]))
    """
    targets, predictions = as_problem(y_true, y_pred)
    ends = [_of_rows(end, name, len(predictions)) for end, name in ((low, "low"), (high, "high"))]
    if np.any(ends[0] > ends[1]):
        row = int(np.argmax(ends[0] > ends[1]))
        raise InputError(f"low must not exceed high; in row {row} it is {ends[0][row]:g} and high {ends[1][row]:g}")
    return _event("within limits", predictions, *ends, inside=True).problem(targets)


def _of_rows(values: ArrayLike, name: str, n: int) -> np.ndarray:
    """One finite number per row; a single one is repeated."""
    numbers = _numbers(values, name)
    if len(numbers) != 1:
        check_same_length(len(numbers), n, name, "y_true")
    return np.broadcast_to(numbers, n)
