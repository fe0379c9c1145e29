"""Pictures: tables prepared by estimators and tests, drawn in one visual language.

A function draws, such as ``reliability(y_true, y_pred, ax=None)``, and gives back a display; a display such as
``ReliabilityDisplay.from_predictions(y_true, y_pred)`` only prepares the tables, until ``plot()``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.plots.class_panels import ClasswiseDisplay, classwise
    from calibrant.plots.confusion_map import ConfusionDisplay, confusion
    from calibrant.plots.reliability_diagram import ReliabilityDisplay, reliability
    from calibrant.plots.simplex_map import SimplexDisplay, simplex
    from calibrant.plots.witness_map import WitnessDisplay, witness

# Where each name lives. As calibrant itself, this imports nothing before its first use.
_HOME = {
    "ClasswiseDisplay": "class_panels",
    "ConfusionDisplay": "confusion_map",
    "ReliabilityDisplay": "reliability_diagram",
    "SimplexDisplay": "simplex_map",
    "WitnessDisplay": "witness_map",
    "classwise": "class_panels",
    "confusion": "confusion_map",
    "reliability": "reliability_diagram",
    "simplex": "simplex_map",
    "witness": "witness_map",
}

__all__ = [
    "ClasswiseDisplay",
    "ConfusionDisplay",
    "ReliabilityDisplay",
    "SimplexDisplay",
    "WitnessDisplay",
    "classwise",
    "confusion",
    "reliability",
    "simplex",
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
