"""The kernel error by random waves, of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.exact_sums import dot, from_text, sum_any, to_float, to_text, total
from calibrant.estimators.random_features import RandomFeatureSKCE
from calibrant.kernels import Identity
from calibrant.results import Estimate
from calibrant.streams.base import SumState, family_of
from calibrant.streams.kernels import check_kernels
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class WaveState(SumState):
    """What :class:`RandomFeatureSKCE` needs to know of the rows so far: one sum a wave and class, and three numbers.

    ``(|sum_i w_i phi(P_i) r_i|^2 - sum_i w_i^2 |r_i|^2) / ((sum_i w_i)^2 - sum_i w_i^2)``: the same seed gives the same
    waves phi in every state. Of class probabilities; features of numbers depend on the range of all predictions.

    >>> from calibrant.kernels import Exponential
    >>> state = WaveState(RandomFeatureSKCE(Exponential(0.5))).update([1, 0], [0.8, 0.4]).update([1], [0.5])
    >>> whole = RandomFeatureSKCE(Exponential(0.5))([1, 0, 1], [0.8, 0.4, 0.5])
    >>> bool(abs(state.finalize().value - whole.value) < 1e-12)
    True
    """

    kind = "waves"

    estimator: RandomFeatureSKCE
    n: int = 0
    family: str | None = None
    waves: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=object), repr=False)
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
        return replace(self, n=n, family=family_of(predictions), waves=exact, others=others)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        others: Any = tuple(a + b for a, b in zip(self.others, other.others, strict=True))
        return replace(self, n=self.n + other.n, waves=self.waves + other.waves, others=others)

    def result(self) -> Estimate:
        """The error, unbiased."""
        if self.n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; the state has seen 1")
        diagonal, weight, squares = to_float(np.array(self.others, dtype=object))
        value = ((to_float(self.waves.ravel()) ** 2).sum() - diagonal) / (weight**2 - squares)
        settled = self.estimator.settled(self.estimator.on_predictions, self.estimator.on_targets or Identity())
        return settled.of_value(float(value), self.n)

    def sums(self) -> dict[str, Any]:
        """Sums in the order of waves and classes."""
        waves = [to_text(row) for row in self.waves]
        return {"waves": waves, "others": to_text(self.others)}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        waves = np.array([from_text(row) for row in sums["waves"]], dtype=object).reshape(len(sums["waves"]), -1)
        others: Any = tuple(int(x) for x in from_text(sums["others"]))
        return cls(estimator, n, family, waves, others)
