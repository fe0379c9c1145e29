"""Recalibrators: settings that fit a function from predictions to better predictions."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
