"""Kernels: positive semi-definite functions of two points, which know nothing of distributions.

Kernels are values: they add, multiply and scale (``0.5 * Gaussian() + Exponential()``), and a length scale that is not given
is the median distance of the data.
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
