"""What falls into each bin under random signs of clusters, instead of resampled targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._clusters import Clusters
from calibrant.estimators.binned.binning import Bins
from calibrant.estimators.signs import SignedSums
from calibrant.lenses.class_lenses import Event


@dataclass(frozen=True, eq=False)
class SignedCounts:
    """Counts of one event whose resamples are signs of clusters instead of targets; predicted sums are zero."""

    flipped: SignedSums
    weight: np.ndarray

    @classmethod
    def of(
        cls, event: Event, bins: Bins, targets: np.ndarray, weights: np.ndarray | None, clusters: Clusters
    ) -> "SignedCounts":
        """From what happened."""
        p = event.probability.astype(np.float64)
        w, cell = np.ones(len(p)) if weights is None else weights, bins.of_rows(event.probability, slice(None))
        residuals = w * (event.observed(targets) - p)
        flipped = SignedSums.of(residuals, cell, len(bins), clusters, p * (1 - p) == 0)
        return cls(flipped, np.bincount(cell, w, len(bins))[None])

    @property
    def predicted(self) -> np.ndarray:
        """Nothing: what is counted are residuals."""
        return np.zeros_like(self.weight)

    def observed(self, signs: np.ndarray) -> np.ndarray:
        """Observed less predicted events under signs ``(m, C)``, ``(m, 1, bins)``."""
        return self.flipped(signs)[:, None, :]


def signed_counts(
    events: Sequence[Event],
    bins: Sequence[Bins],
    targets: np.ndarray,
    weights: np.ndarray | None,
    clusters: Clusters,
) -> tuple[SignedCounts, ...]:
    """Those of several events."""
    return tuple(SignedCounts.of(e, b, targets, weights, clusters) for e, b in zip(events, bins, strict=True))
