"""The reliability diagram, and curves of one event per row, prepared by one of three methods."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.binned.binning import Binning, Bins, EqualMass, EqualWidth, with_ends
from calibrant.estimators.smooth.fitted_curves import Curve, IsotonicCurve, KernelSmooth
from calibrant.inference.reliability_curve import ReliabilityCurve, beyond_chance
from calibrant.lenses.class_lenses import Event, Lens, default_lens
from calibrant.plots.base import Drawing, Legend, PredictionDisplay, Tables, level_in, plotter, resamples
from calibrant.plots.style import (
    Palette,
    dress,
    frame_probabilities,
    has_room_left,
    inches_of,
    limits_of,
    scaled,
    share_of_rows,
)
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MIN_RANGE = 0.3
"""Probabilities with a smaller range than this are looked at close up."""

CROWDED = 0.5
"""From this share of probabilities on that lie within 5 % of 0 or 1, log-odds show more."""

Claims = tuple[Array, Categorical, np.ndarray | None]
"""Targets, probabilities of one event, and weights."""


def claims_of(targets: Array, predictions: Distribution, weights: np.ndarray | None, lens: Lens | None) -> Claims:
    """One event per row: that of the lens, else the favoured class of several, and each label as a row of its own.

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
    elif high - low > MIN_RANGE or high == low:
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


@dataclass(frozen=True)
class MergedEnds(Binning):
    """The bins of another rule, but for edges so near to 0 or 1 that marks on both sides would lie at one place of log-odds.

    >>> MergedEnds(EqualMass(3), 0.01).bins(np.array([0.5, 0.995, 0.999])).edges
    array([0. , 0.5, 1. ])
    """

    rule: Binning
    floor: float

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """Those whose edges are at least twice the floor from the ends."""
        inner = self.rule.bins(scores, weights, observed).edges[1:-1]
        return Bins(with_ends(inner[(inner >= 2 * self.floor) & (inner <= 1 - 2 * self.floor)]))


@dataclass(frozen=True)
class Spaced(Binning):
    """A group at either end of log-odds where a thirtieth of the rows or more lie, and up to fifteen of equal mass between.

    >>> Spaced(0.01).bins(np.repeat([0.001, 0.3, 0.6, 0.999], 25)).edges
    array([0.  , 0.02, 0.3 , 0.98, 1.  ])
    """

    floor: float

    def bins(self, scores: np.ndarray, weights: np.ndarray | None = None, observed: np.ndarray | None = None) -> Bins:
        """Groups between have fifty rows or more, or are five."""
        low, high = 2 * self.floor, 1 - 2 * self.floor
        inside = (scores > low) & (scores <= high)
        ends = [end for end, beyond in ((low, scores <= low), (high, scores > high)) if beyond.mean() >= 1 / 30]
        rows = int(inside.sum())
        if rows == 0:
            return Bins(with_ends(np.array(ends[:1], scores.dtype) if len(ends) > 1 else np.zeros(0, scores.dtype)))
        rule = EqualMass(max(min(15, rows // 50), min(5, rows // 10), 1))
        inner = rule.bins(scores[inside], None if weights is None else weights[inside]).edges[1:-1]
        return Bins(with_ends(np.unique(np.concatenate([inner, np.array(ends)]).astype(scores.dtype))))


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
        self,
        problem: tuple[Array, Categorical],
        weights: np.ndarray | None,
        rng: Seed,
        engine: Engine | None,
        clusters: Clusters | None = None,
    ) -> Table:
        """The curve of one event, without a band if there is to be none."""
        targets, predictions = problem
        if self.bins is None or self.floor is None:
            bins = self.bins or bins_of(predictions.probs, self.floor)
        else:
            bins = MergedEnds(self.bins, self.floor)
        curve = ReliabilityCurve(
            bins=bins,
            level=self.level,
            n_resamples=resamples(self.n_resamples, len(predictions) * self.n_curves, WORK[self.method]),
            curve=CURVES[self.method],
            band=self.band or "confidence",
        )
        together = None if clusters is None or self.band is None else clusters.codes
        table = curve(targets, predictions, sample_weight=weights, clusters=together, rng=rng, engine=engine)
        if self.method != "binned":
            table = self._drawn(table)
        return table if self.band else Table({k: v for k, v in table.items() if k not in ("low", "high")})

    def _drawn(self, table: Table) -> Table:
        """The places of a curve that lie apart on the axis: those beyond its ends are left out."""
        if self.floor is None:
            return table
        inside = (table["predicted"] >= self.floor) & (table["predicted"] <= 1 - self.floor)
        return Table({name: column[inside] for name, column in table.items()}) if inside.sum() > 1 else table

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
    if floor is not None:
        return Spaced(floor)
    low, high = np.quantile(scores, [0.01, 0.99])
    return EqualWidth(15) if high - low > MIN_RANGE else EqualMass(15)


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Observed against predicted, with the band and the spread of the predictions below.

    Axes are wide enough for the curve of the table ``beside``, too, where there is one.
    """
    from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

    draw_pair(axes, make_axes_locatable(axes).append_axes("bottom", size="21%", pad=0.12, sharex=axes), tables, palette)


def draw_pair(axes: "Axes", below: "Axes", tables: Tables, palette: Palette) -> None:
    """The curve on the first axes, the spread of the predictions on the second, which share the first one's x."""
    curve, settings = tables["curve"], settings_of(tables)
    for part in (axes, below):
        dress(part, palette)
    draw_curve(axes, curve, settings, palette)
    share_of_rows(below, tables["histogram"], palette)
    spans = [_span(one) for one in (curve, tables.get("beside", curve))]
    claims, outcomes = (np.concatenate(parts) for parts in zip(*spans, strict=True))
    floor = settings["floor"]
    frame_probabilities(axes, limits_of(claims, floor), limits_of(outcomes, floor), floor)
    width, height = inches_of(axes)
    axes.set(ylabel=scaled("Observed frequency", floor, height))
    axes.tick_params(labelbottom=False)
    below.set(xlabel=scaled("Predicted probability", floor, width))
    left = -(0.5 if floor is None else 0.57) / width  # 0.999 is wider than 0.8
    for part in (axes, below):
        part.yaxis.set_label_coords(left, 0.5)
        if not has_room_left(axes):  # the picture beside it has the same words
            part.set_ylabel("")


def draw_curve(axes: "Axes", curve: Table, settings: dict[str, Any], palette: Palette, *, size: float = 1.0) -> None:
    """One curve with its band and the diagonal; marks may be smaller."""
    floor = settings["floor"]
    x, observed = (_within(curve[name], floor) for name in ("predicted", "observed"))
    outside = beyond_of(curve, settings)
    ends = _within(np.linspace(0, 1, 101), floor)
    axes.plot(ends, ends, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=1)
    if "low" in curve:
        low, high = _within(curve["low"], floor), _within(curve["high"], floor)
        axes.fill_between(x, low, high, color=palette.band, alpha=0.25, linewidth=0, zorder=2)
        if "weight" in curve:
            axes.vlines(x, low, high, color=palette.band, alpha=0.55, linewidth=3, zorder=3)
    line = _joined(x, observed, floor) if "weight" in curve else (x, observed)
    axes.plot(*line, color=palette.accent, linewidth=1.6, zorder=4)
    if "weight" not in curve:
        wrong = np.where(outside, observed, np.nan)
        every = max(1, len(x) // 12)
        axes.plot(x, wrong, color=palette.bad, linewidth=2.4, marker="D", markersize=5, markevery=every, zorder=5)
        return
    area = size * (26 + 60 * np.sqrt(curve["weight"] / curve["weight"].max()))
    for chosen, colour, marker in ((~outside, palette.accent, "o"), (outside, palette.bad, "D")):
        axes.scatter(x[chosen], observed[chosen], s=area[chosen], color=colour, marker=marker, linewidth=0, zorder=5)


SAME_PLACE = 0.008
"""Marks nearer to each other than this share of the axis are not joined: the line would be a vertical one."""


def _joined(x: np.ndarray, observed: np.ndarray, floor: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The line from mark to mark, with gaps between marks at one place."""
    place = x if floor is None else np.log(x / (1 - x))
    close = np.flatnonzero(np.diff(place) < SAME_PLACE * np.ptp(place)) + 1
    return np.insert(x, close, np.nan), np.insert(observed, close, np.nan)


def settings_of(tables: Tables) -> dict[str, Any]:
    """How the curve was made; bins with a consistency band where nothing is said."""
    given = next(tables["settings"].rows()) if "settings" in tables else {}
    floor = float(given.get("floor", np.nan))
    return {"band": "consistency", **given, "floor": None if np.isnan(floor) else floor}


def beyond_of(curve: Table, settings: dict[str, Any]) -> np.ndarray:
    """Which points chance does not explain: those outside the consistency band, or with a claim outside the confidence band."""
    if "low" not in curve:
        return np.zeros(curve.n_rows, dtype=bool)
    if settings["band"] == "consistency":
        return beyond_chance(curve)
    return (curve["predicted"] < curve["low"] - 1e-9) | (curve["predicted"] > curve["high"] + 1e-9)


def _within(values: np.ndarray, floor: float | None) -> np.ndarray:
    return values if floor is None else np.clip(values, floor, 1 - floor)


def _span(curve: Table) -> tuple[np.ndarray, np.ndarray]:
    """All that is drawn of a curve, along the two axes."""
    names = [name for name in ("predicted", "observed", "low", "high") if name in curve]
    return curve["predicted"], np.concatenate([curve[name] for name in names])


def legend_of(tables: Tables) -> Legend:
    """Marks and words, which depend on the band."""
    settings, curve = settings_of(tables), tables["curve"]
    level = level_in(tables)
    words = {"consistency": f"{level} band if calibrated", "confidence": f"{level} confidence band"}
    band: Legend = (("band", words[settings["band"]]),) if "low" in curve else ()
    beyond: Legend = (("diamond", "beyond chance"),) if "low" in curve else ()
    if "weight" in curve:
        return (("dot", "within chance" if beyond else "a group of rows"), *beyond, *band)
    return (("line", "observed"), *beyond, *band)


class ReliabilityDisplay(PredictionDisplay):
    """The reliability diagram: observed frequency against predicted probability, with the spread of the predictions.

    ``tables`` hold ``curve`` (:class:`~calibrant.ReliabilityCurve`), ``histogram`` and ``settings``. Of several classes it
    shows the confidence in the favoured one, of several labels all labels together; ``lens`` picks another event.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions((rng.random(500) < p**2) * 1, p, n_resamples=199)
    >>> display.tables["curve"]["observed"].round(1)[[0, 7, 14]]
    array([0. , 0.3, 0.9])
    """

    drawing = Drawing(draw, size=(5.2, 6.1), margins=(0.8, 0.12, 0.56, 0.1), legend_of=legend_of)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        method: Method = "binned",
        band: Band = "consistency",
        axis: Axis = "probability",
        bins: Binning | None = None,
        lens: Lens | None = None,
        level: float = 0.95,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """The curve in bins, isotonic (CORP) or smooth, with a band that holds at every point by itself.

        The "consistency" band holds what a calibrated model would show, the "confidence" band the truth. An axis of
        log-odds ("logit") shows probabilities that crowd at 0 and 1; "auto" takes it where most do. Without ``bins``,
        there are 15 of equal width, or of equal mass where those would leave the picture empty. ``n_resamples`` is 999, or less
        where rows are many. ``clusters`` has one label per row, for bands that allow for rows which belong together.
        """
        targets, predictions, w, together = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        y, p, weights = claims_of(targets, predictions, w, lens)
        together = together if together is None else together[np.arange(len(y)) // (len(y) // len(targets))]
        floor = floor_for(axis, p.probs, len(p), weights)
        curves = Curves(method, band, level, n_resamples, floor, bins)
        return cls(
            {
                "curve": curves.of((y, p), weights, rng, engine, together),
                "histogram": histogram_of(to_numpy(p.probs), weights, floor),
                "settings": Table(curves.settings()),
            }
        )


reliability = plotter(ReliabilityDisplay.from_predictions, "reliability")
