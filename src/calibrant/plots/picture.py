"""How one kind of picture is drawn: from prepared tables alone, in any palette."""

import io
import re
import warnings
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
class Layout:
    """Width and height in inches, and the margins left, right, below and above of the axes; words above the axes have the
    legend ``raised`` by so many."""

    size: tuple[float, float] = (5.2, 4.3)
    margins: tuple[float, float, float, float] = MARGINS
    raised: float = 0.0


@dataclass(frozen=True)
class Drawing:
    """How one kind of picture is drawn.

    ``draw`` puts the tables on axes, in a palette; ``size`` is in inches, ``margins`` are those left, right, below and above
    of the axes; ``is_wide`` pictures want the whole width of a page. ``legend`` has marks and words. Where these depend on
    the numbers, ``layout_of`` and ``legend_of`` say how. A legend stands ``raised`` inches above the axes.
    """

    draw: Callable[["Axes", Tables, Palette], None]
    size: tuple[float, float] = (5.2, 4.3)
    legend: Legend = ()
    is_wide: bool = False
    margins: tuple[float, float, float, float] = MARGINS
    layout_of: Callable[[Tables], Layout] | None = None
    legend_of: Callable[[Tables], Legend] | None = None
    raised: float = 0.0

    def marks(self, tables: Tables) -> Legend:
        """The legend of these tables."""
        return self.legend if self.legend_of is None else self.legend_of(tables)

    def layout(self, tables: Tables, *, legend: bool = False) -> Layout:
        """The room of these tables, more of it above with a legend."""
        plain = Layout(self.size, self.margins, self.raised) if self.layout_of is None else self.layout_of(tables)
        (width, height), (left, right, below, above) = plain.size, plain.margins
        more = HEADROOM * legend
        return Layout((width, height + more), (left, right, below, above + more), max(plain.raised, self.raised))

    def to_svg(self, tables: Tables, palette: Palette = CSS) -> str:
        """The picture as an inline SVG element without a fixed size; its colours are CSS variables, or those of a palette."""
        mpl = plotting_library()
        from matplotlib.figure import Figure

        with mpl.rc_context(settings(palette)):
            layout = self.layout(tables)
            figure = Figure(figsize=layout.size)
            self.draw(room(figure, layout), tables, palette)
            return svg_of(figure)


def room(figure: "Figure", layout: Layout) -> "Axes":
    """Axes that leave the margins free."""
    (width, height), (left, right, below, above) = layout.size, layout.margins
    across, up = width - left - right, height - below - above
    return figure.add_axes((left / width, below / height, across / width, up / height))


def level_in(tables: Tables) -> str:
    """The level of the bands in words: 95 % where nothing is said."""
    level = float(tables["settings"]["level"][0]) if "settings" in tables else 0.95
    return f"{100 * level:.3g} %"


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
    with (
        warnings.catch_warnings()
    ):  # letters stay letters: the reader's fonts have what the font that measures them lacks
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<svg[^>]*>", lambda tag: re.sub(r' (?:width|height)="[^"]*"', "", tag[0]), svg, count=1)
    used = set(re.findall(r"(?:url\(|href=\")#([^\")]+)", svg))
    svg = re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: CSS.put_in(re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])), svg)
    return re.sub(r"\s*\n\s*", "\n", svg)
