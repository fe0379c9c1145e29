"""Every kind of picture by its name."""

from calibrant._validate import InputError, did_you_mean
from calibrant.plots import model_curves
from calibrant.plots.bias_curves import BiasDisplay
from calibrant.plots.class_panels import ClasswiseDisplay
from calibrant.plots.confusion_map import ConfusionDisplay
from calibrant.plots.control_chart import WindowsDisplay
from calibrant.plots.coverage_curve import CoverageDisplay
from calibrant.plots.drift_map import DriftDisplay
from calibrant.plots.evidence_line import EvidenceDisplay
from calibrant.plots.fan_chart import FanDisplay
from calibrant.plots.level_deviation import LevelCurveDisplay
from calibrant.plots.level_histogram import LevelsDisplay
from calibrant.plots.model_rows import ComparisonDisplay
from calibrant.plots.null_histogram import NullDisplay
from calibrant.plots.picture import Drawing, Tables
from calibrant.plots.reliability_diagram import ReliabilityDisplay
from calibrant.plots.sharpness_chart import SharpnessDisplay
from calibrant.plots.side_by_side import BeforeAfterDisplay
from calibrant.plots.simplex_map import SimplexDisplay
from calibrant.plots.spread_curve import SpreadDisplay
from calibrant.plots.witness_map import WitnessDisplay

DRAWINGS: dict[str, Drawing] = {
    "before_after": BeforeAfterDisplay.drawing,
    "bias": BiasDisplay.drawing,
    "classwise": ClasswiseDisplay.drawing,
    "comparison": ComparisonDisplay.drawing,
    "confusion": ConfusionDisplay.drawing,
    "coverage": CoverageDisplay.drawing,
    "curves": model_curves.DRAWING,
    "drift": DriftDisplay.drawing,
    "evidence": EvidenceDisplay.drawing,
    "fan": FanDisplay.drawing,
    "level_curve": LevelCurveDisplay.drawing,
    "levels": LevelsDisplay.drawing,
    "null": NullDisplay.drawing,
    "reliability": ReliabilityDisplay.drawing,
    "sharpness": SharpnessDisplay.drawing,
    "simplex": SimplexDisplay.drawing,
    "spread": SpreadDisplay.drawing,
    "windows": WindowsDisplay.drawing,
    "witness": WitnessDisplay.drawing,
}
"""What draws which kind of picture."""


def to_svg(kind: str, tables: Tables) -> str:
    """A picture of a kind, from its tables alone, as an inline SVG element whose colours are CSS variables.

    >>> from calibrant.results import Table
    >>> table = Table(lower=[0.0, 0.5], upper=[0.5, 1.0], observed=[0.4, 0.6], low=[0.3, 0.3], high=[0.7, 0.7])
    >>> to_svg("levels", {"levels": table})[:4]
    '<svg'
    """
    if kind not in DRAWINGS:
        raise InputError(f"there is no picture of kind {kind!r}{did_you_mean(kind, list(DRAWINGS))}")
    return DRAWINGS[kind].to_svg(tables)
