"""The reliability curve: what was claimed, what happened, and what chance alone would show."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.distributions.quantiles import check_whole
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Binning, EqualMass
from calibrant.estimators.curves import Curve
from calibrant.inference.bands import BinnedLine, CurveLine, Line, Resampling, consistency
from calibrant.lenses import Lens, PositiveClass, default_lens
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed


@dataclass(frozen=True)
class ReliabilityCurve:
    """Observed frequency against predicted probability, with a band at every point by itself.

    A table with columns ``predicted``, ``observed``, ``low`` and ``high``: in bins (with their edges and weight), or on a
    ``curve`` fitted to the rows, at most 200 points along the scores; ``Isotonic()`` is the CORP diagram.

    ``band="consistency"`` lies around what was predicted: targets drawn from the predictions, all else done again, put the
    observed frequency between ``low`` and ``high`` with at least the given probability. Broecker & Smith (2007).
    ``band="confidence"`` lies around what was observed, and holds with that probability

    * in bins the mean true frequency there (Clopper-Pearson);
    * on ``KernelSmooth(h)`` the mean of the truth under the same kernel (Clopper-Pearson with as many rows as the kernel
      sees); some 92 to 98 % instead of 95 % where the bandwidth was chosen by the same rows;
    * on ``Isotonic()`` the truth itself if it does not decrease (Clopper-Pearson of the rows next to each point, for every n);
    * on curves of your own what a bootstrap of the rows holds, which is too little wherever all outcomes nearby agree: for
      the two above it held 58 to 94 % at 200 rows.

    Weights are importance: each row stays one independent outcome. Dimitriadis, Gneiting & Jordan (2021).

    >>> curve = ReliabilityCurve(EqualMass(2))([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    >>> curve["observed"].round(2), curve["high"].round(2)
    (array([0.33, 0.67]), array([0.67, 1.  ]))
    """

    bins: Binning = EqualMass(15)  # noqa: RUF009  # frozen
    lens: Lens | None = None
    level: float = 0.95
    n_resamples: int = 999
    curve: Curve | None = None
    band: Literal["consistency", "confidence"] = "consistency"

    def __post_init__(self) -> None:
        if not isinstance(self.bins, Binning) or self.bins.is_adaptive:
            raise InputError(
                "bins must be a binning that does not depend on what happened, such as EqualMass(15), or give a curve "
                f"such as Isotonic(), which chooses its own; got {self.bins!r}"
            )
        check_fraction(self.level, "level")
        check_count(self.n_resamples, "n_resamples")
        if self.curve is not None and not isinstance(self.curve, Curve):
            raise InputError(f"curve must be None for bins, or a curve such as Isotonic(); got {self.curve!r}")
        if self.band not in ("consistency", "confidence"):
            raise InputError(f"band must be 'consistency' or 'confidence'; got {self.band!r}")

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
        check_whole(predictions, self)
        lens = self.lens or default_lens(predictions)
        if len(lens.events(predictions)) == 1:  # redraws of one event need no classes
            lens, (targets, predictions) = PositiveClass(), lens(targets, predictions)
        how = Resampling(self.level, self.n_resamples, rng, engine)
        if self.curve is None:
            table, lines = self._binned(lens, targets, predictions, weights)
        else:
            table, lines = self._fitted(lens, targets, predictions, weights)
        if self.band == "consistency":
            low, high = consistency(lines, predictions, int(np.prod(targets.shape)), how)
        else:
            bands = [line.confidence(targets, how) for line in lines]
            low, high = (np.concatenate(ends) for ends in zip(*bands, strict=True))
        return Table({**table, "low": low, "high": high})

    def _binned(
        self, lens: Lens, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[Table, tuple[Line, ...]]:
        table = ECE(self.bins, lens=lens).estimate(targets, predictions, weights).table
        assert table is not None
        return table, tuple(BinnedLine.of(event, self.bins, weights) for event in lens.events(predictions))

    def _fitted(
        self, lens: Lens, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> tuple[Table, tuple[Line, ...]]:
        assert self.curve is not None
        events = lens.events(predictions)
        lines = tuple(CurveLine.of(event, self.curve, weights) for event in events)
        observed = [line.redrawn(to_numpy(targets)[None])[0] for line in lines]
        columns = {"predicted": np.concatenate([line.places for line in lines]), "observed": np.concatenate(observed)}
        if len(lines) > 1:
            columns = {"event": np.repeat([e.name for e in events], [len(line.places) for line in lines]), **columns}
        return Table(columns), lines


def beyond_chance(curve: Table) -> np.ndarray:
    """Which points of a curve lie outside their consistency band, rounding aside."""
    return (curve["observed"] < curve["low"] - 1e-9) | (curve["observed"] > curve["high"] + 1e-9)
