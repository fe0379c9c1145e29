"""Kernels: positive semi-definite functions of two points, which know nothing of distributions.

Kernels are values: they add, multiply and scale (``0.5 * Gaussian() + Exponential()``), and a length scale that is not given
is the median distance of the data.
"""

from calibrant.kernels.base import Kernel, Product, Scaled, Sum
from calibrant.kernels.discrete import Identity, LabelMatrix
from calibrant.kernels.energy import Energy
from calibrant.kernels.exponential import Exponential
from calibrant.kernels.gaussian import Gaussian
from calibrant.kernels.matern import Matern
from calibrant.kernels.metrics import Cityblock, Euclidean, Metric

__all__ = [
    "Cityblock",
    "Energy",
    "Euclidean",
    "Exponential",
    "Gaussian",
    "Identity",
    "Kernel",
    "LabelMatrix",
    "Matern",
    "Metric",
    "Product",
    "Scaled",
    "Sum",
]
