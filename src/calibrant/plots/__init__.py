"""Pictures: tables prepared by estimators and tests, drawn in one visual language.

A function draws, such as ``reliability(y_true, y_pred, ax=None)``, and gives back a display; a display such as
``ReliabilityDisplay.from_predictions(y_true, y_pred)`` only prepares the tables, until ``plot()``.
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
