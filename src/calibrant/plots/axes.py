"""Axes of probabilities: whole, close up, or in log-odds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.plots.style import Palette
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOSE = 0.4
"""A smaller range of values than this is drawn close up."""

APART = {"x": 0.13, "y": 0.07}
"""Labels on an axis of log-odds are at least this share of it apart: they are wider than high."""

LABELS = (0.5, *(x for k in range(1, 7) for x in (10.0**-k, 1 - 10.0**-k)), 0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.05, 0.95)
"""Probabilities worth a label, the first ones rather than the last."""


def limits_of(values: np.ndarray, floor: float | None = None) -> tuple[float, float]:
    """All of [0, 1], or a close-up where values lie near each other; in log-odds, all values and a little room."""
    low, high = float(values.min()), float(values.max())
    if floor is not None:
        low, high = logit(np.clip([low, high], floor, 1 - floor)).tolist()
        room = 0.05 * (high - low) or 0.5
        return float(expit(low - room)), float(expit(high + room))
    if high - low > CLOSE:
        return -0.02, 1.02
    room = 0.1 * (high - low) or 0.02
    return max(low - room, -room / 5), min(high + room, 1 + room / 5)


def logit(p: np.ndarray) -> np.ndarray:
    """Log-odds."""
    return np.log(p) - np.log1p(-p)


def expit(x: float) -> float:
    """The probability of log-odds."""
    return float(1 / (1 + np.exp(-x)))


def ticks_of(low: float, high: float, apart: float) -> list[float]:
    """Probabilities to label on an axis of log-odds between these, further apart than a share of it.

    >>> ticks_of(0.0005, 0.9995, 0.1)
    [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
    """
    start, end = logit(np.array([low, high]))
    edge = apart * (end - start) / 4  # half a label must fit between the last one and the end
    chosen: list[float] = []
    for p in LABELS:
        place = logit(np.array(p))
        if start + edge <= place <= end - edge and all(
            abs(place - logit(np.array(q))) > apart * (end - start) for q in chosen
        ):
            chosen.append(p)
    return sorted(chosen)


def frame_probabilities(
    axes: "Axes", x: tuple[float, float], y: tuple[float, float], floor: float | None, *, apart: float | None = None
) -> None:
    """Limits of both axes, and log-odds with a floor, their labels ``apart`` by this share at least."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if floor is not None:
        axes.set(xscale="logit", yscale="logit")
        for name, axis, ends in (("x", axes.xaxis, x), ("y", axes.yaxis, y)):
            axis.set_major_locator(FixedLocator(ticks_of(*ends, apart or APART[name])))
            axis.set_major_formatter(FuncFormatter(lambda p, _: f"{p:.6f}".rstrip("0")))
            axis.set_minor_locator(NullLocator())
    axes.set(xlim=x, ylim=y)


def inches_of(axes: "Axes") -> tuple[float, float]:
    """Width and height."""
    figure: Any = axes.figure
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    return box.width * width, box.height * height


def share_of_rows(axes: "Axes", histogram: Table, palette: Palette) -> None:
    """How predictions are spread, as bars."""
    share = 100 * histogram["weight"] / histogram["weight"].sum()
    lower, width = histogram["lower"], histogram["upper"] - histogram["lower"]
    axes.bar(
        lower + 0.07 * width, share, width=0.86 * width, align="edge", color=palette.accent, alpha=0.55, linewidth=0
    )
    axes.set(ylabel="% of rows", ylim=(0, 1.08 * share.max()))
