"""A complete estimator: the gap between the mean prediction and the mean outcome. Copy, rename, change.

>>> import numpy as np
>>> from calibrant import Bootstrap, ExactTest
>>> rng = np.random.default_rng(0)
>>> y_pred = rng.random(400)
>>> y_true = (rng.random(400) < y_pred**2) * 1
>>> round(MeanGap()(y_true, y_pred).value, 3)
0.166
>>> ExactTest(MeanGap(), alternative="two-sided")(y_true, y_pred).pvalue
0.002
>>> Bootstrap(MeanGap(), n_resamples=99)(y_true, y_pred).interval.low > 0.05
True
"""

from dataclasses import dataclass

import numpy as np

from calibrant.distributions import Distribution
from calibrant.estimators import BaseEstimator, Statistic
from calibrant.lenses import Lens, default_lens
from calibrant.results import Estimate
from calibrant.typing import Array


@dataclass(frozen=True)
class MeanGap(BaseEstimator):
    """``mean f - mean y`` of one event. O(n)."""

    lens: Lens | None = None

    resampling = None  # a mean over rows: the bootstrap suits it

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The gap."""
        value = float(self.given(predictions, weights)(np.asarray(targets)[None])[0])
        return Estimate("MeanGap", value, len(predictions), self)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """What depends on the predictions is computed once."""
        event = (self.lens or default_lens(predictions)).events(predictions)[0]
        w = np.full(len(predictions), 1 / len(predictions)) if weights is None else weights / weights.sum()
        predicted = event.probability @ w
        return lambda targets: predicted - event.observed(targets) @ w
