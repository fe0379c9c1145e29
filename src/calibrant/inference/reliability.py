"""The reliability curve: what was claimed, what happened, and what chance alone would show."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._validate import check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Binning, EqualMass
from calibrant.estimators.counts import EventCounts
from calibrant.inference.draws import draw
from calibrant.lenses import Lens, default_lens
from calibrant.results import Table
from calibrant.typing import ArrayLike, Engine, Seed


@dataclass(frozen=True)
class ReliabilityCurve:
    """Observed frequency against predicted probability, with the consistency band of every bin.

    A table with columns ``predicted``, ``observed``, ``low`` and ``high`` (and the bin's edges and weight). In each bin
    by itself, targets drawn from the predictions put the observed frequency between ``low`` and ``high`` with at least
    the given probability. Broecker & Smith (2007).

    >>> curve = ReliabilityCurve(EqualMass(2))([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    >>> curve["observed"].round(2), curve["high"].round(2)
    (array([0.33, 0.67]), array([0.67, 1.  ]))
    """

    bins: Binning = EqualMass(15)  # noqa: RUF009  # frozen
    lens: Lens | None = None
    level: float = 0.95
    n_resamples: int = 999

    def __post_init__(self) -> None:
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Table:
        """The curve of the lens's events, one after the other."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        ece = ECE(self.bins, lens=self.lens or default_lens(predictions))
        table = ece.estimate(targets, predictions, weights).table
        ece, targets, predictions = ece.reduce(targets, predictions)
        assert table is not None
        assert ece.lens is not None
        events = ece.lens.events(predictions)
        counts = tuple(EventCounts.of(e, self.bins.bins(e.probability, weights), weights) for e in events)
        redraw = partial(_frequencies, counts, predictions)
        drawn = draw(redraw, self.n_resamples, width=int(np.prod(targets.shape)), rng=rng, engine=engine)
        tail = (1 - self.level) / 2
        # Whole draws, rounded outwards: frequencies are discrete, and the band may only be too wide.
        low = np.quantile(drawn, tail, axis=0, method="lower")
        high = np.quantile(drawn, 1 - tail, axis=0, method="higher")
        return Table({**table, "low": low, "high": high})


def beyond_chance(curve: Table) -> np.ndarray:
    """Which bins of a curve lie outside their band, rounding aside."""
    return (curve["observed"] < curve["low"] - 1e-9) | (curve["observed"] > curve["high"] + 1e-9)


def _frequencies(
    counts: tuple[EventCounts, ...], predictions: Distribution, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """Observed frequency in every bin that has rows, ``(size, bins of all events)``."""
    targets = predictions.sample(np.random.default_rng(seed), size)
    parts = [c.happened(targets)[:, c.weight > 0] / c.weight[c.weight > 0] for c in counts]
    return np.concatenate(parts, axis=1)
