"""How one kind of picture is drawn: from prepared tables alone, in any palette."""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant._validate import InputError
from calibrant.plots.style import CSS, Palette, settings
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables: TypeAlias = Mapping[str, Table]
"""The numbers of a picture, by name."""

Mark: TypeAlias = Literal["dot", "diamond", "band", "line", "dashed", "bar"]
"""What the words of a legend stand beside."""

Legend: TypeAlias = tuple[tuple[Mark, str], ...]
"""Marks, and the words beside them."""

MARGINS = (0.7, 0.12, 0.56, 0.1)
"""Inches left, right, below and above of the axes."""


HEADROOM = 0.26
"""Inches above the axes that a legend takes."""


@dataclass(frozen=True)
class Drawing:
    """How one kind of picture is drawn.

    ``draw`` puts the tables on axes, in a palette; ``size`` is in inches, ``margins`` are those left, right, below and above
    of the axes; ``is_wide`` pictures want the whole width of a page. ``legend`` has marks and words; where either depends
    on the numbers, ``size_of`` and ``legend_of`` say how.
    """

    draw: Callable[["Axes", Tables, Palette], None]
    size: tuple[float, float] = (5.2, 4.3)
    legend: Legend = ()
    is_wide: bool = False
    margins: tuple[float, float, float, float] = MARGINS
    size_of: Callable[[Tables], tuple[float, float]] | None = None
    legend_of: Callable[[Tables], Legend] | None = None

    def marks(self, tables: Tables) -> Legend:
        """The legend of these tables."""
        return self.legend if self.legend_of is None else self.legend_of(tables)

    def inches(self, tables: Tables, *, legend: bool = False) -> tuple[float, float]:
        """Width and height, with room for a legend if there is one."""
        width, height = self.size if self.size_of is None else self.size_of(tables)
        return width, height + HEADROOM * legend

    def room(self, figure: "Figure", *, legend: bool = False) -> "Axes":
        """Axes that leave the margins free, and room for a legend."""
        (width, height), (left, right, below, above) = figure.get_size_inches(), self.margins
        across, up = width - left - right, height - below - above - HEADROOM * legend
        return figure.add_axes((left / width, below / height, across / width, up / height))

    def to_svg(self, tables: Tables, palette: Palette = CSS) -> str:
        """The picture as an inline SVG element without a fixed size; its colours are CSS variables, or those of a palette."""
        mpl = plotting_library()
        from matplotlib.figure import Figure

        with mpl.rc_context(settings(palette)):
            figure = Figure(figsize=self.inches(tables))
            self.draw(self.room(figure), tables, palette)
            return svg_of(figure)


def plotting_library() -> Any:
    """Matplotlib, or words on how to get it."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise InputError(f"pictures need {error.name}: pip install 'calibrant[cli]'") from error
    return matplotlib


def svg_of(figure: "Figure") -> str:
    """The figure as SVG, no longer than it must be: hundredths of a point, and only the names that are referred to."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<svg[^>]*>", lambda tag: re.sub(r' (?:width|height)="[^"]*"', "", tag[0]), svg, count=1)
    used = set(re.findall(r"(?:url\(|href=\")#([^\")]+)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: CSS.put_in(re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])), svg)
    return re.sub(r"\s*\n\s*", "\n", svg)
