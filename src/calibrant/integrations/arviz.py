"""Draws of a posterior predictive distribution, as ArviZ keeps them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions import Ensemble

SAMPLES = ("chain", "draw", "sample")
"""Names of the dimensions that count draws; all others count rows."""


def from_arviz(
    data: Any, name: str | None = None, *, group: str = "posterior_predictive"
) -> tuple[np.ndarray, Ensemble]:
    """What was observed and what was predicted, from an ``InferenceData`` or ``DataTree``: ``evaluate(*from_arviz(data))``.

    ``name`` is a variable that both ``group`` and ``observed_data`` have; it may be left out where there is one. Chains and draws
    become members of an :class:`~calibrant.Ensemble`, all other dimensions rows; the order of dimensions is read from their names
    where they have any, else the first two count draws. A variable of whole numbers is a prediction of numbers, too.

    Draws given the very rows that are judged have seen them: fit without those rows, or the answer is too kind.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 50, 3))                    # chain, draw, row
    >>> y_true, y_pred = from_arviz({"posterior_predictive": {"y": draws}, "observed_data": {"y": [0.1, 0.2, 0.3]}})
    >>> len(y_true), y_pred.members.shape
    (3, (3, 200))
    """
    predicted, observed = _group(data, group), _group(data, "observed_data")
    shared = [str(key) for key in predicted if key in observed]
    if name is None:
        if len(shared) != 1:
            raise InputError(f"name= is needed: variables of both {group} and observed_data are {shared or 'none'}")
        name = shared[0]
    elif name not in shared:
        raise InputError(f"name={name!r} is not in both {group} and observed_data; {shared or 'none'} are")
    draws, outcomes = predicted[name], np.asarray(observed[name])
    dimensions = getattr(draws, "dims", ("chain", "draw"))
    axes = [axis for axis, dimension in enumerate(dimensions) if dimension in SAMPLES]
    values = np.moveaxis(np.asarray(draws), axes, range(len(axes)))
    shape = values.shape[len(axes) :]
    if shape != outcomes.shape:
        raise InputError(f"{name!r} has predictions of shape {shape} and observations of shape {outcomes.shape}")
    return outcomes.reshape(-1), Ensemble(values.reshape(-1, outcomes.size).T)


def _group(data: Any, group: str) -> Mapping[Any, Any]:
    """A group by its name."""
    try:
        found: Mapping[Any, Any] = data[group]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"data has no group {group!r}; it holds what ArviZ calls observed_data and {group}") from error
    return found
