"""Doors to other libraries: each takes what they have, or gives what they want. Nothing here is needed elsewhere."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
