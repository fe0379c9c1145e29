"""What calls return: frozen values that turn into a number, a dictionary, or something worth reading."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
