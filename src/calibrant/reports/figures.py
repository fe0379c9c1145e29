"""Pictures as a page shows them: drawn, with their legends, and with a place in two columns."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from calibrant.plots.drawing import DRAWINGS, to_svg
from calibrant.reports.legible import visible
from calibrant.reports.model import Picture
from calibrant.results import Table

PHONE = 400
"""Points of a drawing that fit a phone with letters that can be read."""


@dataclass(frozen=True)
class Chart:
    """A picture and its drawing. One that ``is_wide`` fills both columns, one that ``is_alone`` has none beside it."""

    title: str
    caption: str
    description: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    is_wide: bool
    is_alone: bool = False

    @property
    def width(self) -> float:
        """In points as drawn: pictures are enlarged alike, so that their letters are of one size."""
        found = re.search(r'viewBox="\S+ \S+ (\S+) ', self.svg)
        return float(found[1]) if found else 0.0

    @property
    def scrolls(self) -> bool:
        """Whether a phone is too narrow for it: letters that can be read matter more than all of it at once."""
        return self.width > PHONE


def drawn(picture: Picture, beside: Table | None = None) -> str:
    """A picture as SVG; axes of a reliability diagram have room for the curve ``beside`` it."""
    return visible(to_svg(picture.kind, picture.tables if beside is None else {**picture.tables, "beside": beside}))


def chart_of(picture: Picture, beside: Table | None = None) -> Chart:
    """A picture with its drawing, legend and width."""
    svg, drawing = drawn(picture, beside), DRAWINGS[picture.kind]
    return Chart(
        picture.title, picture.caption, picture.description, svg, drawing.marks(picture.tables), drawing.is_wide
    )


def placed(charts: Sequence[Chart], *, after: int = 0) -> list[Chart]:
    """Charts in rows of two columns, ``after`` so many other cards: those that have no neighbour are alone.

    >>> chart = Chart("", "", "", "", (), False)
    >>> [c.is_alone for c in placed([chart, chart, chart])]
    [False, False, True]
    """
    found, column = [], after % 2
    for chart, follower in zip(charts, [*charts[1:], None], strict=False):
        is_alone = not chart.is_wide and column == 0 and (follower is None or follower.is_wide)
        found.append(replace(chart, is_alone=is_alone))
        column = 0 if chart.is_wide or is_alone else 1 - column
    return found


def charts_of(pictures: Iterable[Picture], *, after: int = 0) -> list[Chart]:
    """All pictures of a page, drawn and placed."""
    return placed([chart_of(picture) for picture in pictures], after=after)
