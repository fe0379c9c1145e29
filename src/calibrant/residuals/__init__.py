"""Residuals ``r = delta_y - P`` as elements of the Hilbert space of a kernel on targets."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
