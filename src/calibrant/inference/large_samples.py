"""Whether there are enough rows for a law that holds for large n."""

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.residuals import Route
from calibrant.results import Estimate

MOST_UNEVENTFUL, SOME_UNEVENTFUL = 0.1, 1e-3
"""Chances that nothing unlikely happens in any row: above the first a law for large n fails, above the second it is doubtful.

Residuals then are all small and all lean to one side, which such laws take for an error: at 5 %, calibrated data sets were
rejected in as many cases as nothing happened, 80 % and 35 % for 16 and 100 rows with events of 0.1 to 2 %.
"""

FEW_ROWS = 16
"""With fewer rows than this the level of other predictions is off, too: up to 15 % instead of 5 at 4 rows."""


APPROXIMATE = (
    "expectations by quantiles are approximate, and this test takes their error for one of the model as n grows: ExactTest, "
    "whose redraws share it, is exact"
)


def route_notes(estimate: Estimate) -> tuple[str, ...]:
    """Whether expectations behind an estimate are approximate: then its mean is not 0 under the hypothesis."""
    return (APPROXIMATE,) if estimate.route == Route.QUANTILE.value else ()


def chance_of_nothing(predictions: Categorical, weights: np.ndarray | None = None) -> float:
    """The chance that every row with weight is of its most likely class, ``prod_i max_k p_ik``.

    >>> chance_of_nothing(Categorical([0.5, 0.2, 1.0]))
    0.4
    """
    favoured = to_numpy(predictions.matrix).astype(np.float64).max(axis=1)
    return float(np.exp(np.sum(np.log(favoured if weights is None else favoured[weights > 0]))))


def check_large(test: object, predictions: Distribution, weights: np.ndarray | None = None) -> tuple[str, ...]:
    """A note where the law is doubtful, a refusal where it is known to fail; certain predictions leave nothing to chance."""
    name, n = type(test).__name__, len(predictions)
    if not isinstance(predictions, Categorical):
        few = f"{name} holds its level for large n only, and {n:,} rows are few: ExactTest holds it at every n"
        return (few,) if n < FEW_ROWS else ()
    chance = chance_of_nothing(predictions, weights)
    if MOST_UNEVENTFUL < chance < 1:
        raise InputError(
            f"{name} has no level here, as its law is for large n: by y_pred all {n:,} rows are of their most likely class with "
            f"a chance of {chance:.2g}, and it would call that an error: use ExactTest(SKCE()), which is exact"
        )
    few = f"few unlikely events are expected: {name}, whose law is for large n, may reject calibrated predictions two or three"
    return (f"{few} times as often as it says; ExactTest is exact",) if SOME_UNEVENTFUL < chance < 1 else ()
