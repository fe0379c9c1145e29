"""The kernel error by random features, and the calibration mean embedding at given locations, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._numerics.exact_sums import UNIT, dot, from_text, sum_any, to_float, to_text, total
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.kernel_errors.random_features import RandomFeatureSKCE
from calibrant.estimators.kernel_errors.ucme import UCME, GivenLocations, Problem, SampledLocations
from calibrant.kernels import Identity
from calibrant.results import Estimate
from calibrant.streams.base import SumState, check_kernels, check_target_kernel, exact_sums, family_of
from calibrant.streams.block_state import from_plain, to_plain
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class RandomFeatureState(SumState):
    """What :class:`RandomFeatureSKCE` needs to know of the rows so far: one sum per random feature and class, and three numbers.

    ``(|sum_i w_i phi(P_i) r_i|^2 - sum_i w_i^2 |r_i|^2) / ((sum_i w_i)^2 - sum_i w_i^2)``: the same seed gives the same
    features phi in every state. Of class probabilities; features of numbers depend on the range of all predictions.

    >>> from calibrant.kernels import Exponential
    >>> state = RandomFeatureState(RandomFeatureSKCE(Exponential(0.5))).update([1, 0], [0.8, 0.4]).update([1], [0.5])
    >>> whole = RandomFeatureSKCE(Exponential(0.5))([1, 0, 1], [0.8, 0.4, 0.5])
    >>> bool(abs(state.finalize().value - whole.value) < 1e-12)
    True
    """

    kind = "random features"

    estimator: RandomFeatureSKCE
    n: int = 0
    family: str | None = None
    features: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=object), repr=False)
    others: tuple[int, int, int] = field(default=(0, 0, 0), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, RandomFeatureSKCE):
            raise InputError(f"estimator must be a RandomFeatureSKCE; got {self.estimator!r}")
        check_kernels(self.estimator)

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        if not isinstance(predictions, Categorical):
            raise InputError(
                f"a stream of RandomFeatureSKCE takes class probabilities; got {type(predictions).__name__} predictions: "
                "use SKCE(block=100), or UCME with GivenLocations"
            )
        w, n = np.ones(len(predictions)) if weights is None else weights, len(predictions)
        statistic = replace(self.estimator.given(predictions, None), weights=w)
        sums, diagonal = statistic.sums(to_numpy(targets))
        exact = sum_any(sums.ravel(), np.arange(sums.size), sums.size).reshape(sums.shape)
        others = (total(np.array([diagonal])), total(w), dot(w, w))
        return replace(self, n=n, family=family_of(predictions), features=exact, others=others)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        if self.features.shape != other.features.shape:
            raise InputError(
                f"states of {self.features.shape} and {other.features.shape} features cannot be merged: one was not written by a "
                "state of these predictions"
            )
        others: Any = tuple(a + b for a, b in zip(self.others, other.others, strict=True))
        return replace(self, n=self.n + other.n, features=self.features + other.features, others=others)

    def result(self) -> Estimate:
        """The error, unbiased."""
        if self.n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; the state has seen 1")
        diagonal, weight, squares = to_float(np.array(self.others, dtype=object))
        value = ((to_float(self.features.ravel()) ** 2).sum() - diagonal) / (weight**2 - squares)
        settled = self.estimator.settled(self.estimator.on_predictions, self.estimator.on_targets or Identity())
        return settled.of_value(float(value), self.n)

    def sums(self) -> dict[str, Any]:
        """Sums in the order of features and classes."""
        features = [to_text(row) for row in self.features]
        return {"features": features, "others": to_text(self.others)}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        features = np.array([from_text(row) for row in sums["features"]], dtype=object).reshape(
            len(sums["features"]), -1
        )
        others: Any = exact_sums(sums["others"], 3)
        return cls(estimator, n, family, features, others)


ROWS = 1 << 14
"""Rows at a time, whose values at all locations fit into little memory."""


@dataclass(frozen=True, eq=False)
class LocationState(SumState):
    """What :class:`UCME` needs to know of the rows so far: one sum a test location, without rounding.

    >>> from calibrant.estimators import UCME
    >>> from calibrant.kernels import Exponential
    >>> ucme = UCME(Exponential(0.5), locations=GivenLocations([0, 1], [0.3, 0.6]))
    >>> state = LocationState(ucme).update([1, 0], [0.8, 0.4]).update([1], [0.5])
    >>> bool(abs(state.finalize().value - ucme([1, 0, 1], [0.8, 0.4, 0.5]).value) < 1e-12)
    True
    """

    kind = "locations"

    estimator: UCME
    n: int = 0
    family: str | None = None
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=object), repr=False)
    weight: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, UCME):
            raise InputError(f"estimator must be a UCME; got {self.estimator!r}")
        if not isinstance(self.estimator.locations, GivenLocations):
            raise InputError(
                f"locations={self.estimator.locations!r} are rows of the data, which a stream does not know yet: give them, "
                "locations=GivenLocations(y_true, y_pred), or take them from a first sample, state(..., like=(y_true, y_pred))"
            )
        check_kernels(self.estimator)

    @property
    def text(self) -> str:
        """The kernels; locations are written beside the sums."""
        return repr(replace(self.estimator, locations=SampledLocations(1)))

    @property
    def settings(self) -> str:
        """Kernels and locations, digit by digit."""
        return f"{self.text} at {to_plain(self.places)}"

    @property
    def places(self) -> Problem:
        """Targets and predictions of the locations."""
        locations: Any = self.estimator.locations
        return as_problem(locations.y_true, locations.y_pred)

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        check_target_kernel(self.estimator, predictions)
        resolved = self.estimator.resolve(predictions[:1])
        places, _ = self.estimator.locations.choose(resolved, targets, predictions)  # which checks that they match
        seen = np.zeros(len(places[1]), dtype=object)
        for start in range(0, len(predictions), ROWS):
            rows = slice(start, min(start + ROWS, len(predictions)))
            values = to_numpy(resolved.values(places, (targets[rows, ...], predictions[rows]))).astype(np.float64)
            values = values if weights is None else values * weights[rows]
            for j, row in enumerate(values):
                seen[j] += total(row)
        weight = len(predictions) << UNIT if weights is None else total(weights)
        return replace(self, n=len(predictions), family=family_of(predictions), seen=seen, weight=weight)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        return replace(self, n=self.n + other.n, seen=self.seen + other.seen, weight=self.weight + other.weight)

    def result(self) -> Estimate:
        """The embedding's mean square over the locations."""
        means = np.array([x / self.weight for x in self.seen])
        return Estimate("UCME", float((means**2).mean()), self.n, self.estimator.resolve(self.places[1]))

    def sums(self) -> dict[str, Any]:
        """One sum a location, with the locations."""
        return {"locations": to_plain(self.places), "seen": to_text(self.seen), "weight": to_text([self.weight])}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        targets, predictions = from_plain(sums["locations"])
        places = GivenLocations(targets, predictions.checked())
        seen = np.array(exact_sums(sums["seen"], len(predictions)), dtype=object)
        return cls(replace(estimator, locations=places), n, family, seen, *exact_sums(sums["weight"], 1))
