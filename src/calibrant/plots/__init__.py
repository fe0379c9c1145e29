"""Pictures: tables prepared by estimators and tests, drawn in one visual language.

A function draws, such as ``reliability(y_true, y_pred, ax=None)``, and gives back a display; a display such as
``ReliabilityDisplay.from_predictions(y_true, y_pred)`` only prepares the tables, until ``plot()``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.plots.bias_curves import BiasDisplay, bias
    from calibrant.plots.class_panels import ClasswiseDisplay, classwise
    from calibrant.plots.confusion_map import ConfusionDisplay, confusion
    from calibrant.plots.control_chart import WindowsDisplay, windows
    from calibrant.plots.coverage_curve import CoverageDisplay, coverage
    from calibrant.plots.drift_map import DriftDisplay, drift
    from calibrant.plots.evidence_line import EvidenceDisplay, evidence
    from calibrant.plots.fan_chart import FanDisplay, fan
    from calibrant.plots.level_deviation import LevelCurveDisplay, level_curve
    from calibrant.plots.level_histogram import LevelsDisplay, levels
    from calibrant.plots.model_rows import ComparisonDisplay, comparison
    from calibrant.plots.null_histogram import NullDisplay, null
    from calibrant.plots.reliability_diagram import ReliabilityDisplay, reliability
    from calibrant.plots.sharpness_chart import SharpnessDisplay, sharpness
    from calibrant.plots.side_by_side import BeforeAfterDisplay, before_after
    from calibrant.plots.simplex_map import SimplexDisplay, simplex
    from calibrant.plots.spread_curve import SpreadDisplay, spread
    from calibrant.plots.witness_map import WitnessDisplay, witness

# Where each name lives. As calibrant itself, this imports nothing before its first use.
_HOME = {
    "BeforeAfterDisplay": "side_by_side",
    "BiasDisplay": "bias_curves",
    "ClasswiseDisplay": "class_panels",
    "ComparisonDisplay": "model_rows",
    "ConfusionDisplay": "confusion_map",
    "CoverageDisplay": "coverage_curve",
    "DriftDisplay": "drift_map",
    "EvidenceDisplay": "evidence_line",
    "FanDisplay": "fan_chart",
    "LevelCurveDisplay": "level_deviation",
    "LevelsDisplay": "level_histogram",
    "NullDisplay": "null_histogram",
    "ReliabilityDisplay": "reliability_diagram",
    "SharpnessDisplay": "sharpness_chart",
    "SimplexDisplay": "simplex_map",
    "SpreadDisplay": "spread_curve",
    "WindowsDisplay": "control_chart",
    "WitnessDisplay": "witness_map",
    "before_after": "side_by_side",
    "bias": "bias_curves",
    "classwise": "class_panels",
    "comparison": "model_rows",
    "confusion": "confusion_map",
    "coverage": "coverage_curve",
    "drift": "drift_map",
    "evidence": "evidence_line",
    "fan": "fan_chart",
    "level_curve": "level_deviation",
    "levels": "level_histogram",
    "null": "null_histogram",
    "reliability": "reliability_diagram",
    "sharpness": "sharpness_chart",
    "simplex": "simplex_map",
    "spread": "spread_curve",
    "windows": "control_chart",
    "witness": "witness_map",
}

__all__ = [
    "BeforeAfterDisplay",
    "BiasDisplay",
    "ClasswiseDisplay",
    "ComparisonDisplay",
    "ConfusionDisplay",
    "CoverageDisplay",
    "DriftDisplay",
    "EvidenceDisplay",
    "FanDisplay",
    "LevelCurveDisplay",
    "LevelsDisplay",
    "NullDisplay",
    "ReliabilityDisplay",
    "SharpnessDisplay",
    "SimplexDisplay",
    "SpreadDisplay",
    "WindowsDisplay",
    "WitnessDisplay",
    "before_after",
    "bias",
    "classwise",
    "comparison",
    "confusion",
    "coverage",
    "drift",
    "evidence",
    "fan",
    "level_curve",
    "levels",
    "null",
    "reliability",
    "sharpness",
    "simplex",
    "spread",
    "windows",
    "witness",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant.plots' has no attribute {name!r}")
    value: object = getattr(import_module(f"calibrant.plots.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
