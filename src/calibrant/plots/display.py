"""Displays: prepared tables that can be drawn, in the manner of scikit-learn."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from calibrant._validate import InputError, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.normal import Normal
from calibrant.plots.legend import add_legend
from calibrant.plots.picture import Drawing, Tables, plotting_library, room
from calibrant.plots.style import Theme, palette_of, settings
from calibrant.results import how_many
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        mpl, palette = plotting_library(), palette_of(theme)
        legend = legend and bool(self.drawing.marks(self.tables))
        layout, left = self.drawing.layout(self.tables, legend=legend), 0.3
        with mpl.rc_context(settings(palette)):
            if ax is None:
                from matplotlib import pyplot

                ax = room(pyplot.figure(figsize=layout.size, facecolor=palette.paper), layout)
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
    first, *rest = (display.__doc__ or "").splitlines()
    example = "\n".join(rest).partition(">>>")
    plot.__doc__ = f"""{first}

    Prepares a :class:`{display.__name__}` and draws it; see there. ``ax`` are axes to draw on (a new figure without),
    ``theme`` is "light" or "dark", and ``legend`` says whether there is one.

    {"".join(example[1:]).replace(f"{display.__name__}.{make.__name__}(", f"{name}(").rstrip()}
    """
    return plot
