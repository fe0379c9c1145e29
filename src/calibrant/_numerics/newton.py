"""Newton's method for convex functions, with steps that are halved until they go down."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

MAX_STEPS = 100
"""Ten do for most functions."""

MAX_HALVINGS = 40
"""Of one step."""

ROUNDING = 1e-12
"""Steps below this part of the coordinates change nothing that counts."""


class Local(Protocol):
    """What a function is near a point, ``(..., m)``; it may carry more, which the caller gets back."""

    @property
    def gradient(self) -> np.ndarray:
        """``(..., m)``."""

    @property
    def hessian(self) -> np.ndarray:
        """``(..., m, m)``."""


class Derivatives(NamedTuple):
    """Gradient and Hessian alone."""

    gradient: np.ndarray
    hessian: np.ndarray


T = TypeVar("T", bound=Local)


@dataclass(frozen=True, eq=False)
class NewtonMinimum(Generic[T]):
    """The point, the value there, the derivatives there, and Newton's decrement: twice what a further step would gain."""

    x: np.ndarray
    value: np.ndarray
    here: T
    decrement: np.ndarray


def solved(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """``hessian^-1 gradient`` of each of a stack, for Hessians that have an inverse.

    >>> solved(np.diag([2.0, 4.0]), np.array([1.0, 1.0]))
    array([0.5 , 0.25])
    """
    return np.linalg.solve(hessian, gradient[..., None])[..., 0]


def newton(
    value: Callable[[np.ndarray], np.ndarray],
    derivatives: Callable[[np.ndarray], T],
    start: np.ndarray,
    *,
    tolerance: float = 0.0,
    max_steps: int = MAX_STEPS,
    solve: Callable[[np.ndarray, np.ndarray], np.ndarray] = solved,
) -> NewtonMinimum[T]:
    """The minimum of a convex function of m numbers, or of a stack of such functions at once, ``start`` being ``(..., m)``.

    Each step is halved until the value falls by a part of what it promises; functions may be infinite beyond some border. It
    ends where all decrements are below the tolerance, or where steps are as small as rounding. Boyd & Vandenberghe (2004), 9.5.

    >>> def square_roots(x):  # of 4 and 9, the minima of x^3 / 3 - a x above 0
    ...     return Derivatives(x**2 - np.array([[4.0], [9.0]]), 2 * x[..., None])
    >>> found = newton(lambda x: (x**3 / 3 - x * np.array([[4.0], [9.0]])).sum(axis=1), square_roots, np.ones((2, 1)))
    >>> found.x[:, 0].round(9)
    array([2., 3.])
    """
    x, at = start, np.asarray(value(start))
    for _ in range(max_steps):
        here = derivatives(x)
        step = solve(here.hessian, here.gradient)
        decrement = (step * here.gradient).sum(axis=-1)
        is_small = np.abs(step).max() <= ROUNDING * (1 + np.abs(x).max())
        if is_small or (decrement < tolerance).all():
            break
        x, at = _descended(value, x, at, step, decrement)
    return NewtonMinimum(x, at, here, decrement)


def _descended(
    value: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    at: np.ndarray,
    step: np.ndarray,
    decrement: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Each function a step down, halved until it is one, and the values there; where there is none, it stays."""
    size = np.ones_like(at)
    for _ in range(MAX_HALVINGS):
        trial = x - size[..., None] * step
        there = np.asarray(value(trial))
        is_worse = ~(there <= at - 1e-4 * size * decrement + 1e-12 * np.abs(at))
        if not is_worse.any():
            return trial, there
        size = np.where(is_worse, size / 2, size)
    return np.where(is_worse[..., None], x, trial), np.where(is_worse, at, there)
