"""The legend of a picture: the same marks and words as beside the picture of a page."""

from typing import TYPE_CHECKING, Any

from calibrant.plots.axes import inches_of
from calibrant.plots.picture import Legend, Mark
from calibrant.plots.style import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def add_legend(axes: "Axes", marks: Legend, palette: Palette, *, raised: float = 0.0, left: float = 0.3) -> None:
    """One line of marks and words above the axes, so many inches higher, and beginning so many left of them."""
    if marks:
        width, height = inches_of(axes)
        axes.legend(
            [_handle(mark, palette) for mark, _ in marks],
            [words for _, words in marks],
            loc="lower left",
            bbox_to_anchor=(-left / width, 1.0 + raised / height),
            ncols=len(marks),
            frameon=False,
            borderaxespad=0.3,
            borderpad=0,
            fontsize=9,
            handletextpad=0.5,
            columnspacing=1.2,
            handlelength=1.4,
        )


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
