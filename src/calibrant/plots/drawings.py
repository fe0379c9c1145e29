"""Every kind of picture by its name."""

from calibrant.plots.base import Drawing
from calibrant.plots.classification.classwise import ClasswiseDisplay
from calibrant.plots.classification.confusion import ConfusionDisplay
from calibrant.plots.classification.reliability import ReliabilityDisplay
from calibrant.plots.classification.simplex_plot import SimplexDisplay
from calibrant.plots.comparisons.before_after_plot import BeforeAfterDisplay
from calibrant.plots.comparisons.bias import BiasDisplay
from calibrant.plots.comparisons.comparison import CURVES, ComparisonDisplay
from calibrant.plots.comparisons.null import NullDisplay
from calibrant.plots.comparisons.witness_plot import WitnessDisplay
from calibrant.plots.forecasting.coverage import CoverageDisplay
from calibrant.plots.forecasting.fan import FanDisplay
from calibrant.plots.forecasting.pit_histogram import PITCurveDisplay, PITHistogramDisplay
from calibrant.plots.forecasting.sharpness import SharpnessDisplay
from calibrant.plots.forecasting.spread_plot import SpreadDisplay
from calibrant.plots.sequential.drift import DriftDisplay
from calibrant.plots.sequential.evidence_plot import EvidenceDisplay
from calibrant.plots.sequential.windows import WindowsDisplay

DRAWINGS: dict[str, Drawing] = {
    "before_after": BeforeAfterDisplay.drawing,
    "bias": BiasDisplay.drawing,
    "classwise": ClasswiseDisplay.drawing,
    "comparison": ComparisonDisplay.drawing,
    "confusion": ConfusionDisplay.drawing,
    "coverage": CoverageDisplay.drawing,
    "curves": CURVES,
    "drift": DriftDisplay.drawing,
    "evidence": EvidenceDisplay.drawing,
    "fan": FanDisplay.drawing,
    "pit_curve": PITCurveDisplay.drawing,
    "pit_histogram": PITHistogramDisplay.drawing,
    "null": NullDisplay.drawing,
    "reliability": ReliabilityDisplay.drawing,
    "sharpness": SharpnessDisplay.drawing,
    "simplex": SimplexDisplay.drawing,
    "spread": SpreadDisplay.drawing,
    "windows": WindowsDisplay.drawing,
    "witness": WitnessDisplay.drawing,
}
"""What draws which kind of picture, from its tables alone."""
