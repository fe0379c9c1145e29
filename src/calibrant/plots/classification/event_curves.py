"""Reliability curves of one event per row, prepared by one of three methods, and how its probabilities are spread."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import Binning, EqualMass, EqualWidth
from calibrant.estimators.smooth.fitted_curves import Curve, IsotonicCurve, KernelSmooth
from calibrant.inference.reliability_curve import ReliabilityCurve
from calibrant.lenses.class_lenses import Event, Lens, default_lens
from calibrant.results import Table
from calibrant.typing import Array, Engine, Seed

NARROW = 0.3
"""Probabilities with a smaller range than this are looked at close up."""

CROWDED = 0.5
"""From this share of probabilities on that lie within 5 % of 0 or 1, log-odds show more."""

Claims = tuple[Array, Categorical, np.ndarray | None]
"""Targets, probabilities of one event, and weights."""


def claims_of(targets: Array, predictions: Distribution, weights: np.ndarray | None, lens: Lens | None) -> Claims:
    """One event a row: that of the lens, else the favoured class of several, and each label as a row of its own.

    >>> y, p, _ = claims_of(np.array([[1, 0], [1, 1]]), Bernoulli([[0.9, 0.2], [0.4, 0.7]]), None, None)
    >>> y, p.probs
    (array([1, 0, 1, 1]), array([0.9, 0.2, 0.4, 0.7]))
    """
    if lens is None and isinstance(predictions, Bernoulli):
        w = None if weights is None else np.repeat(weights, predictions.n_labels)
        return to_numpy(targets).reshape(-1), Categorical.trusted(to_numpy(predictions.probs).reshape(-1)), w
    if lens is None:
        lens = default_lens(predictions)
    events = lens.events(predictions)
    if len(events) > 1:
        raise InputError(
            f"a reliability diagram shows one event, and {lens!r} has {len(events)}: "
            "see calibrant.plots.classwise, or pick one with PositiveClass(label)"
        )
    return *on_host(events[0], targets), weights


def on_host(event: Event, targets: Array) -> tuple[np.ndarray, Categorical]:
    """The binary problem of an event in NumPy, which pictures are made of."""
    return event.observed(targets).astype(np.uint8), Categorical.trusted(event.probability)


def floor_of(n: int) -> float:
    """The least probability on an axis of log-odds: fewer than half a row of n would show nothing; smaller ones go there.

    >>> [floor_of(n) for n in (10, 5_000, 10**8)]
    [0.01, 0.0001, 1e-06]
    """
    return float(np.clip(0.5 / n, 1e-6, 0.01))


def is_crowded(scores: np.ndarray, weights: np.ndarray | None = None) -> bool:
    """Whether most probabilities lie close to 0 or 1."""
    return float(np.average(np.minimum(scores, 1 - scores) <= 0.05, weights=weights)) >= CROWDED


def histogram_of(scores: np.ndarray, weights: np.ndarray | None, floor: float | None = None) -> Table:
    """How probabilities are spread over forty equal parts of [0, 1], or of the range they fill where it is narrow.

    With a ``floor`` the parts are equal in log-odds, and what is nearer to 0 or 1 than the floor goes to the outermost.
    """
    low, high = float(scores.min()), float(scores.max())
    if floor is not None:
        scores = np.clip(scores, floor, 1 - floor)
        ends = np.clip([low, high], floor, 1 - floor)
        low, high = np.log(ends / (1 - ends)) + (np.array([-0.5, 0.5]) if ends[0] == ends[1] else 0)
        edges = 1 / (1 + np.exp(-np.linspace(low, high, 41)))
        edges[[0, -1]] = min(edges[0], scores.min()), max(edges[-1], scores.max())
    elif high - low > NARROW or high == low:
        edges = np.linspace(0, 1, 41)
    else:
        edges = np.linspace(low, high, 41)
    return Table(lower=edges[:-1], upper=edges[1:], weight=np.histogram(scores, edges, weights=weights)[0])


Method: TypeAlias = Literal["binned", "isotonic", "smooth"]
"""How frequencies are found."""

Band: TypeAlias = Literal["consistency", "confidence"] | None
"""What a calibrated model would show, or where the truth may lie."""

Axis: TypeAlias = Literal["probability", "logit", "auto"]
"""Probabilities, or their log-odds; "auto" takes these where most probabilities lie close to 0 or 1."""

CURVES: dict[Method, Curve | None] = {"binned": None, "isotonic": IsotonicCurve(), "smooth": KernelSmooth()}
"""What the methods fit."""

WORK: dict[Method, int] = {"binned": 200_000_000, "isotonic": 20_000_000, "smooth": 40_000_000}
"""Resampled targets that bands may cost in all before they make do with fewer resamples."""


@dataclass(frozen=True)
class Curves:
    """How curves are made: the method, the band and its level, resamples, the least probability in log-odds, and how many."""

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
            n_resamples=resamples(self.n_resamples, len(predictions) * self.n_curves, WORK[self.method]),
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


def resamples(wanted: int | None, n: int, work: int) -> int:
    """As many as wanted; else 999, or fewer where rows are many: not fewer than 99.

    >>> [resamples(None, n, 200_000_000) for n in (10, 500_000, 10**8)]
    [999, 400, 99]
    """
    if wanted is None:
        return min(999, max(99, work // n))
    check_count(wanted, "n_resamples")
    return wanted
