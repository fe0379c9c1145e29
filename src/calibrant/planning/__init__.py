"""What work costs, and what to do within a budget: behind ``calibrant plan``, and behind what reports can afford.

>>> from calibrant.planning import plan
>>> plan(n=10**7, k=1000, budget=600).fits
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.planning.choose import plan
    from calibrant.planning.result import Plan

__all__ = ["Plan", "plan"]


def __getattr__(name: str) -> object:
    """Reports ask for operation counts alone, and need none of this."""
    if name not in __all__:
        raise AttributeError(f"module 'calibrant.planning' has no attribute {name!r}")
    return getattr(import_module("calibrant.planning.choose"), name)
