"""Predictions of other libraries, known by their structure: none of these libraries is ever imported here."""

from typing import Any

import numpy as np

from calibrant._array import is_array
from calibrant.distributions.base import Distribution

DENSITIES = ("log_prob", "logpdf", "log_pdf", "logpmf", "log_pmf", "cdf")
"""What makes an object a distribution: no array and no data frame has one of these."""


def adapted(y_pred: Any) -> Distribution | None:
    """Predictions of another library as ours; ``None`` where they are numbers, and not distributions.

    Objects of SciPy, PyTorch, Pyro, NumPyro, TensorFlow Probability, GPyTorch, skpro and everything alike; one with a
    batch of distributions, or a list of one a row. Known families become our own, with their closed forms; others keep
    their object (:class:`~calibrant.distributions.foreign.Foreign`). Arrays of xarray with a dimension of members or
    of quantiles become those.

    >>> from scipy.stats import norm
    >>> adapted(norm([0.0, 1.0, 2.0], scale=1.0))
    <Normal: 3 predictions>
    """
    if isinstance(y_pred, np.ndarray | Distribution):
        return None
    is_list = isinstance(y_pred, list | tuple)
    is_labelled = type(y_pred).__module__.partition(".")[0] == "xarray"
    if not is_labelled and not (y_pred and all(map(is_distribution, y_pred)) if is_list else is_distribution(y_pred)):
        return None
    from calibrant.distributions.known import from_list, from_object, labelled

    return (labelled if is_labelled else from_list if is_list else from_object)(y_pred)


def is_distribution(x: Any) -> bool:
    """Whether an object quacks like a distribution of another library.

    >>> is_distribution([0.1, 0.9])
    False
    """
    return not is_array(x) and any(callable(getattr(x, name, None)) for name in DENSITIES)
