"""Batches of predictive distributions, one family a file."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
