"""Convex functions minimised by Newton's method, its linear systems solved by conjugate gradients."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

TOLERANCE = 1e-10
"""Length of the gradient of a mean loss at which a search has arrived."""

ROUNDING = 1e-13
"""Length of a gradient below which only rounding is left of it."""

FLAT = 1e-13
"""A direction bends this little, against what its rough inverse expects, by rounding only."""

STEPS = 200
"""Newton steps at most; ten do for most problems, some thirty where the optimum is at infinity."""

SHORT = 0.5
"""How far from the limit a search for an optimum at infinity stops: in nats, of all rows together."""

LITTLE = 0.01
"""What is left to gain, in nats, when slow steps begin to mean that the optimum is at infinity."""

SLOW = 0.2
"""Share of the gradient left by a slow step. Near a minimum far less is left, on the way to infinity 1/e."""


class Point(NamedTuple):
    """A function near one of its arguments: value, gradient, product of the Hessian with a direction, and its rough inverse."""

    loss: float
    gradient: np.ndarray
    curvature: Callable[[np.ndarray], np.ndarray]
    rough_inverse: Callable[[np.ndarray], np.ndarray]


class Objective(Protocol):
    """A convex function of an array."""

    def at(self, x: np.ndarray) -> Point:
        """The function near x."""
        ...


class Minimum(NamedTuple):
    """Where a search ended, the length of the gradient there, and whether the optimum lies at infinity."""

    x: np.ndarray
    loss: float
    gradient: float
    is_converged: bool
    is_infinite: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        if not self.is_infinite:
            return ()
        return ("the best coefficients are infinite, or nearly: the fit stops where half a nat is left to gain",)


def minimised(objective: Objective, start: np.ndarray, rows: float) -> Minimum:
    """The minimum of a mean loss over ``rows`` rows.

    Logistic losses of separable data fall towards a limit at infinity, by a factor of e a step. Then the point is taken
    where half a nat, of all rows together, was left to gain: no data ask for more, and a class that never happens gets a
    probability of about 1/(2n).
    """
    x, here, before, slow = start, objective.at(start), start, 0
    for _ in range(STEPS):
        size = float(np.linalg.norm(here.gradient))
        step = _newton_step(here) if size else here.gradient
        left = -rows * float(np.vdot(here.gradient, step))
        before = x if left > SHORT else before
        if slow > 2 or (10 * ROUNDING < size <= TOLERANCE and _is_slow(objective.at(x + step), size)):
            return _nearer(objective, before, x, here.loss + SHORT / rows)
        if size <= TOLERANCE:
            return Minimum(x, here.loss, size, is_converged=True)
        moved = _searched(objective, x, here, step)
        if moved is None:
            break
        x, here = moved
        slow = slow + 1 if left <= LITTLE and _is_slow(here, size) else 0
    return Minimum(x, here.loss, float(np.linalg.norm(here.gradient)), is_converged=False)


def _is_slow(there: Point, size: float) -> bool:
    """Whether a full step has left much of the gradient's length."""
    return bool(np.linalg.norm(there.gradient) > SLOW * size)


def _nearer(objective: Objective, before: np.ndarray, beyond: np.ndarray, loss: float) -> Minimum:
    """The first point between the two with at most this loss, to a part in a thousand."""
    low, high = 0.0, 1.0
    if objective.at(before).loss <= loss:
        high = 0.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if objective.at(before + middle * (beyond - before)).loss <= loss else (middle, high)
    x = before + high * (beyond - before)
    end = objective.at(x)
    return Minimum(x, end.loss, float(np.linalg.norm(end.gradient)), is_converged=True, is_infinite=True)


def _newton_step(here: Point) -> np.ndarray:
    """Minus the inverse Hessian times the gradient, the more exactly the closer the minimum."""
    size = float(np.linalg.norm(here.gradient))
    goal = max(min(0.05, float(np.sqrt(size))) * size, ROUNDING)
    step, rest = np.zeros_like(here.gradient), -here.gradient
    towards = rough = here.rough_inverse(rest)
    gain = length = np.vdot(rest, rough)
    for _ in range(10 + 2 * rest.size):
        bent = here.curvature(towards)
        bend = np.vdot(towards, bent)
        if bend <= FLAT * length:
            break
        step = step + gain / bend * towards
        rest = rest - gain / bend * bent
        if np.linalg.norm(rest) <= goal:
            break
        rough = here.rough_inverse(rest)
        before, gain = gain, np.vdot(rest, rough)
        towards, length = rough + gain / before * towards, gain + (gain / before) ** 2 * length
    return step if step.any() else towards


def _searched(objective: Objective, x: np.ndarray, here: Point, step: np.ndarray) -> tuple[np.ndarray, Point] | None:
    """The first of the step, its half, its quarter, ... that is downhill; where losses agree, the gradient decides."""
    slope = float(np.vdot(here.gradient, step))
    rounding = 1e-13 * (1 + abs(here.loss))
    for _ in range(50):
        there = objective.at(x + step)
        if there.loss <= here.loss + 1e-4 * slope - rounding:
            return x + step, there
        is_level = abs(there.loss - here.loss) <= 2 * rounding
        if is_level and np.linalg.norm(there.gradient) < np.linalg.norm(here.gradient):
            return x + step, there
        step, slope = step / 2, slope / 2
    return None
