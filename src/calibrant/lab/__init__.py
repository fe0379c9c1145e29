"""Worlds with known truth, and the experiments of the literature."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
