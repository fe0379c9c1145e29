"""Calibration watched while predictions come in: tests that may be looked at after every row."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
