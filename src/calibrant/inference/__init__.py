"""Is it more than chance? Tests, null bands and intervals for any estimator."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
