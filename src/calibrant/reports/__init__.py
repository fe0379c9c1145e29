"""The report: plain data first, then words, pictures and a page."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
