"""A small reliability diagram for every class, or for those that are worst."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.estimators.binned.binning import EqualMass
from calibrant.inference.monte_carlo import as_seed_sequence
from calibrant.lenses.class_lenses import ClassWise, Event, MultiLabel
from calibrant.plots.base import Drawing, Layout, PredictionDisplay, Tables, plotter
from calibrant.plots.classification.reliability import (
    Axis,
    Band,
    Curves,
    Method,
    draw_curve,
    floor_for,
    legend_of,
    on_host,
    settings_of,
)
from calibrant.plots.style import Palette, dress, frame_probabilities, inches_of, limits_of, scaled, shortened
from calibrant.results import Table, number
from calibrant.typing import Array, ArrayLike, Engine, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
"""Panels side by side."""

LABEL_INCHES = 0.4
"""How far apart labels of an axis of log-odds are, at least."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """Panels side by side and in lines, within the axes."""
    classes, curve, settings = tables["classes"], tables["curve"], settings_of(tables)
    shown, across = classes.n_rows, columns_of(tables)
    values = np.concatenate([curve[name] for name in ("predicted", "observed", "low", "high") if name in curve])
    limits = limits_of(values, settings["floor"])
    axes.set_axis_off()
    width, height = inches_of(axes)
    for i, name in enumerate(classes["name"].tolist()):
        place = _place(i, across, -(-shown // across))
        panel = axes.inset_axes(place)
        dress(panel, palette)
        draw_curve(panel, _part(curve, name), settings, palette, size=0.55)
        frame_probabilities(panel, limits, limits, settings["floor"], apart=LABEL_INCHES / (width * place[2]))
        if settings["floor"] is None:
            panel.locator_params(nbins=3, steps=[1, 2, 5, 10])
        panel.set_title(shortened(name, 22), fontsize=10.5, color=palette.ink, pad=4)
        panel.tick_params(labelsize=9, labelbottom=i + across >= shown, labelleft=i % across == 0)
    words = scaled("Predicted probability", settings["floor"]) + _choice(tables)
    axes.text(0.5, -0.3 / height, words, ha="center", va="top", transform=axes.transAxes)
    axes.text(
        -0.46 / width,
        0.5,
        scaled("Observed frequency", settings["floor"]),
        ha="right",
        va="center",
        rotation=90,
        transform=axes.transAxes,
    )


def columns_of(tables: Tables) -> int:
    """Panels side by side: no line is left with one alone where that can be helped."""
    shown = tables["classes"].n_rows
    return min(shown, 2 if shown in (2, 4) else COLUMNS)


def _place(i: int, across: int, down: int) -> tuple[float, float, float, float]:
    """Left and lower end, width and height of the i-th panel."""
    width, height = 1 / (across + 0.1 * (across - 1)), 1 / (down + 0.16 * (down - 1))
    return 1.1 * width * (i % across), 1 - height - 1.16 * height * (i // across), width, height


def _part(curve: Table, name: str) -> Table:
    """The rows of one event."""
    return Table({column: values[curve["event"] == name] for column, values in curve.items() if column != "event"})


def _choice(tables: Tables) -> str:
    shown, total = tables["classes"].n_rows, int(tables["settings"]["classes"][0])
    return "" if shown == total else f", {shown} of {number(total)} classes"


def layout_of(tables: Tables) -> Layout:
    """Panels are about square."""
    across = columns_of(tables)
    down = -(-tables["classes"].n_rows // across)
    width = {1: 4.2, 2: 6.0, 3: 7.8}[across]
    side = (width - 0.85) / (across + 0.1 * (across - 1))
    return Layout((width, side * (down + 0.16 * (down - 1)) + 0.95), (0.75, 0.1, 0.6, 0.35))


class ClasswiseDisplay(PredictionDisplay):
    """A small reliability diagram for every class or label, or for the few with the strongest evidence against them.

    Evidence is the sum over ten groups of equally many rows of ``(sum (p - y))^2 / (1 + sum p (1 - p))``, which does not
    favour rare classes for their noise. ``tables`` hold ``curve`` with a column ``event``, ``classes`` with every class shown
    and its evidence, and ``settings``. Bands are those of :class:`~calibrant.ReliabilityCurve`, of each class by itself.

    >>> p = np.random.default_rng(0).dirichlet(np.ones(20), 400)
    >>> display = ClasswiseDisplay.from_predictions(p.argmax(axis=1), p, max_classes=4, n_resamples=199)
    >>> display.tables["classes"].n_rows, display.tables["settings"]["classes"][0]
    (4, np.int64(20))
    """

    drawing = Drawing(draw, is_wide=True, layout_of=layout_of, legend_of=legend_of, raised=0.25)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        max_classes: int = 6,
        order: Sequence[int] | None = None,
        method: Method = "binned",
        band: Band = "consistency",
        axis: Axis = "probability",
        level: float = 0.95,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Self:
        """At most ``max_classes`` panels, the first in ``order`` (numbers of classes) or those with the strongest evidence.

        The other settings are those of :class:`ReliabilityDisplay`.
        """
        check_count(max_classes, "max_classes")
        targets, predictions, weights, together = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        if not isinstance(predictions, Categorical | Bernoulli):
            raise InputError(f"classes are shown one by one, and these are {type(predictions).__name__} predictions")
        events = (MultiLabel() if isinstance(predictions, Bernoulli) else ClassWise()).events(predictions)
        evidence = np.array([evidence_of(event, targets, weights) for event in events])
        strongest = np.argsort(-evidence, kind="stable") if order is None else _checked_order(order, len(events))
        chosen = strongest[:max_classes] if len(events) > max_classes else np.arange(len(events))
        seeds = as_seed_sequence(rng).spawn(len(chosen))
        floor = floor_for(axis, np.concatenate([events[i].probability for i in chosen]), len(predictions))
        curves = Curves(method, band, level, n_resamples, floor, n_curves=len(chosen))
        parts = [
            curves.of(on_host(events[i], targets), weights, seed, engine, together)
            for i, seed in zip(chosen, seeds, strict=True)
        ]
        names = [events[i].name for i in chosen]
        return cls(
            {
                "curve": stacked(names, parts),
                "classes": Table(name=names, evidence=evidence[chosen]),
                "settings": Table({**curves.settings(), "classes": [len(events)]}),
            }
        )


def _checked_order(order: Sequence[int], total: int) -> np.ndarray:
    found = np.asarray(order)
    if found.ndim != 1 or sorted(found.tolist()) != list(range(total)):
        raise InputError(f"order must have each number from 0 to {total - 1} once; got {order!r}")
    return found


def evidence_of(event: Event, targets: Array, weights: np.ndarray | None) -> float:
    """How much speaks against one event's probabilities."""
    p = event.probability.astype(np.float64)
    w = np.ones(len(p)) if weights is None else weights / weights.mean()
    which = EqualMass(10).bins(p).index(p)
    gap = np.bincount(which, w * (p - event.observed(targets)))
    return float((gap**2 / (1 + np.bincount(which, w**2 * p * (1 - p)))).sum())


def stacked(names: list[str], parts: list[Table]) -> Table:
    """The curves of several events in one table."""
    columns = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    return Table({"event": np.repeat(names, [part.n_rows for part in parts]), **columns})


classwise = plotter(ClasswiseDisplay.from_predictions, "classwise")
