"""Results in JSON's own types."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

SCHEMA = "calibrant/1"
"""Written into every ``to_dict()``; the number grows when a reader of the JSON would have to change."""


def jsonable(x: object) -> Any:
    """``x`` in JSON's own types; numbers JSON lacks (NaN, infinity) become their names."""
    if isinstance(x, np.ndarray):
        return [jsonable(v) for v in x.tolist()]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if hasattr(x, "to_dict"):
        return jsonable(x.to_dict())
    return x if x is None or isinstance(x, str | int | float | bool) else repr(x)
