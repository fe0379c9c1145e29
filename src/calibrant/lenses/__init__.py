"""Lenses: which yes-or-no events of a prediction are looked at, and slices of the rows."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
