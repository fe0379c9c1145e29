"""The unnormalised calibration mean embedding: the calibration error as seen from a few test locations, in linear time."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import as_number, matched, namespace, to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.base import BaseEstimator, EachDraw, Statistic
from calibrant.estimators.kernel_errors.kernel_problem import coordinates, resolve_kernels
from calibrant.kernels import Exponential, Kernel
from calibrant.residuals.embedding import seen_from
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike

Problem = tuple[Array, Distribution]
"""Targets and predictions."""


class Locations(ABC):
    """A rule that gives test locations; subclasses are frozen dataclasses."""

    @abstractmethod
    def choose(self, measure: "UCME", targets: Array, predictions: Distribution) -> tuple[Problem, Problem]:
        """Test locations, and the rows that are left to evaluate them on."""


@dataclass(frozen=True, eq=False)
class GivenLocations(Locations):
    """Test locations of the caller: predictions and targets of J rows.

    >>> GivenLocations([0, 1], [[0.9, 0.1], [0.3, 0.7]]).y_true
    [0, 1]
    """

    y_true: ArrayLike
    y_pred: ArrayLike

    def choose(self, measure: "UCME", targets: Array, predictions: Distribution) -> tuple[Problem, Problem]:
        """As given; all rows are left."""
        places, batch = as_problem(self.y_true, self.y_pred)
        if type(batch) is not type(predictions):
            raise InputError(
                f"locations are {type(batch).__name__} predictions; the data are {type(predictions).__name__}"
            )
        return (places, batch), (targets, predictions)


@dataclass(frozen=True)
class SampledLocations(Locations):
    """``count`` rows of the data themselves, drawn with a seed.

    >>> SampledLocations(5)
    SampledLocations(count=5, seed=0)
    """

    count: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.count, "count")

    def choose(self, measure: "UCME", targets: Array, predictions: Distribution) -> tuple[Problem, Problem]:
        """Rows drawn without replacement; all rows are left."""
        rows = np.random.default_rng(self.seed).permutation(len(predictions))[: self.count]
        return _taken(targets, predictions, rows), (targets, predictions)


@dataclass(frozen=True)
class OptimisedLocations(Locations):
    """The rows of one half that see the largest error there, relative to its spread; evaluated on the other half.

    >>> OptimisedLocations(count=3).candidates
    200
    """

    count: int = 10
    candidates: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.count, "count")
        check_count(self.candidates, "candidates", least=self.count)

    def choose(self, measure: "UCME", targets: Array, predictions: Distribution) -> tuple[Problem, Problem]:
        """The best candidates of the first half; the second half is left."""
        n = len(predictions)
        if n < 4:
            raise InputError(f"optimised locations need at least 4 rows; got {n}")
        order = np.random.default_rng(self.seed).permutation(n)
        first, second = order[: n // 2], order[n // 2 :]
        tried = first[: self.candidates]
        problems = _taken(targets, predictions, tried), _taken(targets, predictions, first)
        values = to_numpy(measure.values(*problems))
        signal = np.abs(values.mean(axis=1)) / (values.std(axis=1) + 1e-12)
        best = tried[np.argsort(-signal, kind="stable")[: self.count]]
        return _taken(targets, predictions, best), _taken(targets, predictions, second)


def _taken(targets: Array, predictions: Distribution, rows: np.ndarray) -> Problem:
    """Some rows of a problem."""
    index = matched(rows, targets)
    return namespace(targets).take(targets, index, axis=0), predictions[index]


@dataclass(frozen=True)
class UCME(BaseEstimator):
    """Unnormalised calibration mean embedding.

    ``(1/J) sum_j (1/n sum_i k(S_j, P_i) [l(t_j, y_i) - E l(t_j, Z_i)])^2`` at test locations ``(S_j, t_j)``. Never
    negative, biased upwards by O(1/n); O(nJ). Widmann, Lindsten & Zachariah (2021).

    >>> from calibrant.estimators import UCME
    >>> round(UCME()([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).value, 4)
    0.0042
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None
    locations: Locations = SampledLocations()  # frozen

    least = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.locations, Locations):
            raise InputError(f"locations must be such as SampledLocations(10); got {self.locations!r}")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The embedding's mean square over the locations."""
        resolved = self.resolve(predictions)
        places, rows = self.locations.choose(resolved, targets, predictions)
        if weights is not None and len(rows[1]) != len(predictions):
            raise InputError("optimised locations take no sample_weight")
        values = resolved.values(places, rows)
        xp = namespace(values)
        w = xp.ones_like(values[0, :]) if weights is None else matched(weights, values)
        means = values @ w / xp.sum(w)
        return Estimate("UCME", as_number(xp.mean(means**2)), len(predictions), resolved)

    def resolve(self, predictions: Distribution) -> "UCME":
        """Both kernels with their numbers fixed."""
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        return replace(self, on_predictions=on_predictions, on_targets=on_targets)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Resamples share the kernels."""
        return EachDraw(self.resolve(predictions), predictions, weights)

    def values(self, places: Problem, rows: Problem) -> Array:
        """``k(S_j, P_i) [l(t_j, y_i) - E l(t_j, Z_i)]``, ``(J, n)``, of a resolved estimator."""
        assert self.on_targets is not None
        (targets, predictions), (y, spread) = places, rows
        seen = seen_from(self.on_targets, targets, y, spread)
        kernel = self.on_predictions(
            coordinates(predictions, self.on_predictions, self.on_targets, spread),
            coordinates(spread, self.on_predictions, self.on_targets, predictions),
        )
        return kernel * seen
