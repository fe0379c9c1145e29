"""Where predictions lie, so that sums of waves and of distances can be taken around that place instead of around zero.

Years, pressures in pascals or prices have a large common part that no residual depends on, and that would cost digits: a wave
``cos(w y)`` at ``y = 1e9`` is right to seven digits only, in single precision to none.
"""

from typing import Any

import numpy as np

from calibrant._array import as_double, detached, is_traced, namespace, to_numpy
from calibrant.distributions.base import Distribution, displaced
from calibrant.typing import Array

FAR = 4.0
"""How many times farther from zero than from each other predictions must lie to be moved."""


def origin_of(*batches: Distribution, far: float = FAR) -> Any:
    """The middle of all predictions, a number or a vector ``(d,)``; ``None`` where they lie around zero or cannot be moved.

    They do where the middle is at most ``far`` times as far away as they are from it.

    >>> from calibrant.distributions.normal import Normal
    >>> origin_of(Normal([1000.0, 1002.0], 1.0)), origin_of(Normal([-1.0, 1.5], 1.0))
    (1001.0, None)
    """
    found = [batch.position for batch in batches]
    if any(position is NotImplemented or is_traced(position) for position in found):
        return None
    xp = namespace(*found)
    places = xp.concat([as_double(detached(position)) for position in found])
    middle = xp.mean(places, axis=0)
    width = float(xp.max(xp.abs(places - middle)))
    if float(xp.max(xp.abs(middle))) <= far * width:
        return None
    rounded = to_numpy(xp.astype(middle, found[0].dtype)).astype(np.float64)  # so that nothing is lost in differences
    return float(rounded) if rounded.ndim == 0 else rounded


def around(origin: Any, predictions: Distribution, *targets: Array) -> tuple[Any, ...]:
    """Predictions and targets as seen from an origin; themselves where that is ``None``, or predictions cannot be moved.

    >>> from calibrant.distributions.normal import Normal
    >>> moved, y = around(1000.0, Normal([1000.0], 1.0), np.array([1002.0]))
    >>> moved.loc, y
    (array([0.]), array([2.]))
    """
    moved = NotImplemented if origin is None else predictions.shifted(-origin)
    if moved is NotImplemented:
        return predictions, *targets
    return moved, *(displaced(y, -origin) for y in targets)
