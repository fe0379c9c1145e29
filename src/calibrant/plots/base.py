"""What a picture is: tables, how they are drawn, and displays in the manner of scikit-learn."""

import inspect
import io
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.plots.style import CSS, Palette, Theme, inches_of, palette_of, room_right, styled
from calibrant.results import Table, how_many
from calibrant.typing import ArrayLike

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
        """Size and margins for these tables, a larger margin above with a legend."""
        plain = Layout(self.size, self.margins, self.raised) if self.layout_of is None else self.layout_of(tables)
        (width, height), (left, right, below, above) = plain.size, plain.margins
        more = HEADROOM * legend
        return Layout((width, height + more), (left, right, below, above + more), max(plain.raised, self.raised))

    def to_svg(self, tables: Tables, palette: Palette = CSS) -> str:
        """The picture as an inline SVG element without a fixed size; its colours are CSS variables, or those of a palette."""
        plotting_library()
        from matplotlib.figure import Figure

        with styled(palette):
            layout = self.layout(tables)
            figure = Figure(figsize=layout.size)
            self.draw(axes_within(figure, layout), tables, palette)
            return svg_of(figure)


def axes_within(figure: "Figure", layout: Layout) -> "Axes":
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


def add_legend(axes: "Axes", marks: Legend, palette: Palette, *, raised: float = 0.0, left: float = 0.3) -> None:
    """Marks and words above the axes, so many inches higher, beginning so many left of them, in lines that fit beside others."""
    if marks:
        width, height = inches_of(axes)
        room = room_right(axes, left) + left
        axes.legend(
            [_handle(mark, palette) for mark, _ in marks],
            [words for _, words in marks],
            loc="lower left",
            bbox_to_anchor=(-left / width, 1.0 + raised / height),
            ncols=next((n for n in range(len(marks), 1, -1) if _inches_across(marks, n) <= room), 1),
            frameon=False,
            borderaxespad=0.3,
            borderpad=0,
            fontsize=9,
            handletextpad=0.5,
            columnspacing=1.2,
            handlelength=1.4,
        )


def _inches_across(marks: Legend, columns: int) -> float:
    """The width of a legend of so many columns: marks are filled in one column after the other."""
    from matplotlib.textpath import TextPath

    down = -(-len(marks) // columns)
    width = [TextPath((0, 0), words, size=9).get_extents().width / 72 for _, words in marks]
    longest = [max(width[i : i + down]) for i in range(0, len(marks), down)]
    return sum(longest) + 0.24 * len(longest) + 0.15 * (len(longest) - 1)


def _handle(mark: Mark, palette: Palette) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines: dict[str, dict[str, Any]] = {
        "dot": {"color": palette.accent, "marker": "o", "markersize": 6, "linewidth": 0},
        "diamond": {"color": palette.bad, "marker": "D", "markersize": 5.5, "linewidth": 0},
        "line": {"color": palette.accent, "linewidth": 1.8},
        "dashed": {"color": palette.muted, "linewidth": 1, "linestyle": "--"},
    }
    if mark in lines:
        return Line2D([], [], **lines[mark])
    return Patch(color=palette.band if mark == "band" else palette.accent, alpha=0.45, linewidth=0)


class Display:
    """A picture, prepared: ``tables`` hold all numbers, :meth:`plot` draws them.

    Making a display draws nothing. ``ax_`` and ``figure_`` are the axes and the figure of the last plot; asking for them
    draws the picture if nothing has. In a notebook, a display that has not been drawn shows itself.
    """

    drawing: ClassVar[Drawing]

    def __init__(self, tables: Tables) -> None:
        self.tables = dict(tables)
        self._axes: Axes | None = None

    def plot(self, ax: "Axes | None" = None, *, theme: Theme = "light", legend: bool = True) -> Self:
        """Draw on these axes, or on a new figure of pyplot."""
        plotting_library()
        palette = palette_of(theme)
        legend = legend and bool(self.drawing.marks(self.tables))
        layout, left = self.drawing.layout(self.tables, legend=legend), 0.3
        with styled(palette):
            if ax is None:
                from matplotlib import pyplot

                ax = axes_within(pyplot.figure(figsize=layout.size, facecolor=palette.paper), layout)
                left = layout.margins[0] - 0.4
            self.drawing.draw(ax, self.tables, palette)
            if legend:
                add_legend(ax, self.drawing.marks(self.tables), palette, raised=layout.raised, left=left)
        self._axes = ax
        return self

    def to_svg(self) -> str:
        """The picture for a page, its colours CSS variables such as ``var(--ink)``."""
        return self.drawing.to_svg(self.tables)

    @property
    def ax_(self) -> "Axes":
        """The axes drawn on."""
        if self._axes is None:
            self.plot()
        assert self._axes is not None
        return self._axes

    @property
    def figure_(self) -> "Figure":
        """The figure drawn on."""
        figure: Figure = self.ax_.figure  # type: ignore[assignment]  # a sub-figure will do
        return figure

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {how_many(table.n_rows, 'row')}" for name, table in self.tables.items())
        return f"<{type(self).__name__} ({sizes})>"

    def _repr_svg_(self) -> str | None:
        """The picture in a notebook, unless pyplot shows it anyway."""
        if self._axes is not None:
            return None
        return self.drawing.to_svg(self.tables, palette_of("light"))


class PredictionDisplay(Display):
    """A display of one model's predictions; subclasses write the class method ``from_predictions(y_true, y_pred, ...)``."""

    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """The tables of what a fitted model predicts for X; ``options`` are those of ``from_predictions``.

        Classifiers need ``predict_proba``, regressors ``predict_dist`` or ``predict(X, return_std=True)``.
        """
        display: Self = cls.from_predictions(y, predictions_of(estimator, X), **options)
        return display


def predictions_of(estimator: Any, X: Any) -> Distribution:
    """What a fitted model says of each row: probabilities of its classes, or a distribution of numbers."""
    if hasattr(estimator, "predict_proba"):
        classes = getattr(estimator, "classes_", None)
        return Categorical(estimator.predict_proba(X), None if classes is None else tuple(classes.tolist()))
    if hasattr(estimator, "predict_dist"):
        found: Distribution = estimator.predict_dist(X)
        return found
    predict = getattr(estimator, "predict", None)
    if predict is not None and "return_std" in inspect.signature(predict).parameters:
        return Normal(*predict(X, return_std=True))
    raise InputError(
        "estimator must have predict_proba(X), predict_dist(X) or predict(X, return_std=True); "
        f"{type(estimator).__name__} has none of them"
    )


def resamples(wanted: int | None, n: int, work: int) -> int:
    """As many as wanted; else 999, or fewer where rows are many: not fewer than 99.

    >>> [resamples(None, n, 200_000_000) for n in (10, 500_000, 10**8)]
    [999, 400, 99]
    """
    if wanted is None:
        return min(999, max(99, work // n))
    check_count(wanted, "n_resamples")
    return wanted


D = TypeVar("D", bound=Display)


def plotter(make: Callable[..., D], name: str) -> Callable[..., D]:
    """The function that prepares a display and draws it, named and documented as such.

    It takes what ``make`` takes, and ``ax``, ``theme`` and ``legend`` as :meth:`Display.plot` does.
    """

    def plot(*data: Any, ax: "Axes | None" = None, theme: Theme = "light", legend: bool = True, **options: Any) -> D:
        check_one_of(theme, ("light", "dark"), "theme")
        return make(*data, **options).plot(ax, theme=theme, legend=legend)

    display = make.__self__  # type: ignore[attr-defined]  # a class method
    own, more = inspect.signature(make), inspect.signature(plot)
    drawn = [more.parameters[p] for p in ("ax", "theme", "legend")]
    plot.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=sorted([*own.parameters.values(), *drawn], key=lambda p: p.kind), return_annotation=display
    )
    plot.__name__ = plot.__qualname__ = name
    plot.__module__ = display.__module__
    first, *rest = (display.__doc__ or "As a function.").splitlines()  # python -OO has none
    example = "\n".join(rest).partition(">>>")
    plot.__doc__ = f"""{first}

    Prepares a :class:`{display.__name__}` and draws it; see there. ``ax`` are axes to draw on (a new figure without),
    ``theme`` is "light" or "dark", and ``legend`` says whether there is one.

    {"".join(example[1:]).replace(f"{display.__name__}.{make.__name__}(", f"{name}(").rstrip()}
    """
    return plot
