"""The calibration mean embedding at given locations, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_problem
from calibrant.estimators.exact_sums import UNIT, from_text, to_text, total
from calibrant.estimators.ucme import UCME, GivenLocations, Problem, SampledLocations
from calibrant.results import Estimate
from calibrant.streams.base import SumState, family_of
from calibrant.streams.kernels import check_kernels, check_target_kernel
from calibrant.streams.rows import from_plain, to_plain
from calibrant.typing import Array

ROWS = 1 << 14
"""Rows at a time, whose values at all locations fit into little memory."""


@dataclass(frozen=True, eq=False)
class LocationState(SumState):
    """What :class:`UCME` needs to know of the rows so far: one sum a test location, without rounding.

    >>> from calibrant import UCME
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
        seen, (weight,) = from_text(sums["seen"]), from_text(sums["weight"])
        return cls(replace(estimator, locations=places), n, family, seen, weight)
