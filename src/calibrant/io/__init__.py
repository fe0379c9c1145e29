"""From files and pipes to targets and predictions, and back."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
