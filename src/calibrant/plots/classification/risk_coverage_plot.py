"""The risk-coverage curve: how often answers are wrong, if only the surest are given."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.ranking import AURC
from calibrant.estimators.ranking import risk_coverage as curve_of
from calibrant.lenses.class_lenses import Lens
from calibrant.plots.base import Drawing, PredictionDisplay, Tables, plotter
from calibrant.plots.style import Palette, dress
from calibrant.results import Table
from calibrant.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 400
"""Points of the curve at most."""


def draw(axes: "Axes", tables: Tables, palette: Palette) -> None:
    """What came true as a line, what was claimed as a dashed one."""
    curve = tables["curve"]
    x, risk, claimed = (100 * curve[name] for name in ("coverage", "risk", "claimed"))
    axes.plot(x, claimed, color=palette.muted, linewidth=1, dashes=(4, 3), zorder=2)
    axes.plot(x, risk, color=palette.accent, linewidth=1.8, zorder=3)
    axes.scatter(x[-1:], risk[-1:], s=36, color=palette.accent, linewidth=0, zorder=4)
    top = max(float(np.max(risk)), float(np.max(claimed)), 1.0)
    axes.set(xlabel="Answered, the surest first, %", ylabel="Wrong among the answers, %")
    axes.set(xlim=(-2, 102), ylim=(-0.03 * top, 1.08 * top))
    dress(axes, palette)


class RiskCoverageDisplay(PredictionDisplay):
    """The risk-coverage curve: how often answers are wrong against how many of them are given, the surest first.

    The dashed line is the risk that the confidences themselves claim: where the curve lies above it, more answers are wrong
    than was said. The curve of a model that does not know when it is wrong is level. ``tables`` hold ``curve``, thinned to 400
    rows, and ``areas`` with the area under it.

    >>> display = RiskCoverageDisplay.from_predictions([1, 0, 1, 1], [0.9, 0.4, 0.7, 0.6])
    >>> display.tables["curve"]["risk"].tolist()
    [0.0, 0.0, 0.0, 0.25]
    """

    drawing = Drawing(draw, legend=(("line", "wrong"), ("dashed", "wrong by its own confidence")))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        lens: Lens | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> Self:
        """The curve of the event that the lens shows."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        curve = curve_of(targets, predictions, lens=lens, sample_weight=weights)
        shown = np.unique(np.linspace(0, curve.n_rows - 1, POINTS).round().astype(int))
        area = AURC(lens)(targets, predictions, sample_weight=weights)
        thinned = Table({name: curve[name][shown] for name in curve})
        return cls({"curve": thinned, "areas": Table(area=[area.name], value=[area.value])})


risk_coverage = plotter(RiskCoverageDisplay.from_predictions, "risk_coverage")
