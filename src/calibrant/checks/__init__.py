"""Conformance checks, for our own suite and for anyone who adds a kernel, a family, an estimator, a recalibrator.

Each function raises ``AssertionError`` with words where something does not hold. What draws can tell is held to five
standard errors; what can be integrated is held to digits.
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
