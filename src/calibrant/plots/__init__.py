"""Pictures: tables prepared by estimators and tests, drawn in one visual language.

A function draws, such as ``reliability(y_true, y_pred, ax=None)``, and gives back a display; a display such as
``ReliabilityDisplay.from_predictions(y_true, y_pred)`` only prepares the tables, until ``plot()``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.plots.reliability_diagram import ReliabilityDisplay, reliability

# Where each name lives. As calibrant itself, this imports nothing before its first use.
_HOME = {
    "ReliabilityDisplay": "reliability_diagram",
    "reliability": "reliability_diagram",
}

__all__ = ["ReliabilityDisplay", "reliability"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant.plots' has no attribute {name!r}")
    value: object = getattr(import_module(f"calibrant.plots.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
