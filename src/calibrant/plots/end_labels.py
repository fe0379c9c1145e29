"""Names at the right ends of lines, moved apart where they would overlap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant.plots.axes import inches_of
from calibrant.plots.style import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

End = tuple[str, float, float, str]
"""A name, where its line ends, and its colour."""

LINE = 0.16
"""Inches from one name to the next at least."""


def label_ends(axes: "Axes", ends: Sequence[End], *, most: int = 24) -> None:
    """Each name to the right of the axes, level with the end of its line or as near to it as others let it."""
    low, high = axes.get_ylim()
    height = inches_of(axes)[1]
    wanted = np.array([(y - low) / (high - low) for _, _, y, _ in ends])
    places = apart(wanted, LINE / height)
    for (name, _, _, colour), place in zip(ends, places, strict=True):
        text = shortened(name, most)
        axes.text(1.02, place, text, transform=axes.transAxes, va="center", ha="left", fontsize=9.5, color=colour)


def apart(wanted: np.ndarray, least: float) -> np.ndarray:
    """The nearest places in the same order within [0, 1] that are so far apart, also
    from the ends by half of it: crowded ones are centred on their mean.

    >>> apart(np.array([0.5, 0.1, 0.5]), 0.2).round(2)
    array([0.4, 0.1, 0.6])
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []
    for i, place in enumerate(wanted[order]):
        mean, size = float(place) - i * least, 1  # without the gaps before it, places need only not decrease
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    level = np.concatenate([np.full(size, mean) for mean, size in pools])
    level = np.clip(level, least / 2, max(1 - least * (len(wanted) - 0.5), least / 2))
    found = np.empty_like(wanted, dtype=np.float64)
    found[order] = level + least * np.arange(len(wanted))
    return found
