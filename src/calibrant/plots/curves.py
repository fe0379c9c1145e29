"""Reliability curves of one event, prepared by one of three methods."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.binning import Binning, EqualMass, EqualWidth
from calibrant.estimators.curves import Curve, Isotonic, KernelSmooth
from calibrant.inference.reliability import ReliabilityCurve
from calibrant.plots.claims import NARROW, floor_of, is_crowded
from calibrant.results import Table
from calibrant.typing import Array, Engine, Seed

Method: TypeAlias = Literal["binned", "isotonic", "smooth"]
"""How frequencies are found."""

Band: TypeAlias = Literal["consistency", "confidence"] | None
"""What a calibrated model would show, or where the truth may lie."""

Axis: TypeAlias = Literal["probability", "logit", "auto"]
"""Probabilities, or their log-odds; "auto" takes these where most probabilities lie close to 0 or 1."""

CURVES: dict[Method, Curve | None] = {"binned": None, "isotonic": Isotonic(), "smooth": KernelSmooth()}
"""What the methods fit."""

WORK: dict[Method, int] = {"binned": 200_000_000, "isotonic": 20_000_000, "smooth": 40_000_000}
"""Redrawn targets that bands may cost in all before they make do with fewer redraws."""


@dataclass(frozen=True)
class Curves:
    """How curves are made: the method, the band and its level, redraws, the least probability in log-odds, and how many."""

    method: Method
    band: Band
    level: float
    n_resamples: int | None
    floor: float | None
    bins: Binning | None = None
    n_curves: int = 1

    def __post_init__(self) -> None:
        check_one_of(self.method, tuple(CURVES), "method")
        if self.band is not None:
            check_one_of(self.band, ("consistency", "confidence"), "band")
        if self.bins is not None and self.method != "binned":
            raise InputError(f"bins go with method='binned'; method={self.method!r} needs none")

    def of(
        self, problem: tuple[Array, Categorical], weights: np.ndarray | None, rng: Seed, engine: Engine | None
    ) -> Table:
        """The curve of one event, without a band if there is to be none."""
        targets, predictions = problem
        curve = ReliabilityCurve(
            bins=self.bins or bins_of(predictions.probs, self.floor),
            level=self.level,
            n_resamples=redraws(self.n_resamples, len(predictions) * self.n_curves, WORK[self.method]),
            curve=CURVES[self.method],
            band=self.band or "confidence",
        )
        table = curve(targets, predictions, sample_weight=weights, rng=rng, engine=engine)
        return table if self.band else Table({k: v for k, v in table.items() if k not in ("low", "high")})

    def settings(self) -> dict[str, Any]:
        """What a picture must know of them, as columns of a table with one row."""
        floor = np.nan if self.floor is None else self.floor
        return {"method": [self.method], "band": [self.band or ""], "level": [self.level], "floor": [floor]}


def floor_for(axis: Axis, scores: np.ndarray, n: int, weights: np.ndarray | None = None) -> float | None:
    """The least probability of an axis of log-odds of n rows; none where probabilities are drawn as they are."""
    check_one_of(axis, ("probability", "logit", "auto"), "axis")
    return floor_of(n) if axis == "logit" or (axis == "auto" and is_crowded(scores, weights)) else None


def bins_of(scores: np.ndarray, floor: float | None) -> Binning:
    """Equal widths spread marks over the picture; probabilities close together, or close to an end, need equal mass."""
    low, high = np.quantile(scores, [0.01, 0.99])
    return EqualWidth(15) if floor is None and high - low > NARROW else EqualMass(15)


def redraws(wanted: int | None, n: int, work: int) -> int:
    """As many as wanted; else 999, or fewer where rows are many: not fewer than 99.

    >>> [redraws(None, n, 200_000_000) for n in (10, 500_000, 10**8)]
    [999, 400, 99]
    """
    if wanted is None:
        return min(999, max(99, work // n))
    check_count(wanted, "n_resamples")
    return wanted
