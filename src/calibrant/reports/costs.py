"""How much work each step of a report is, so that progress can say how much is left."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float, float], None]
"""Called before each step with its name, the work that is done and the work of all steps, and once when all is done."""

COSTS = (
    ("redraws", 50.0),
    ("Smooth reliability curve", 15.0),
    ("What to do", 12.0),
    ("Witness", 10.0),
    ("Kernel error", 7.0),
    ("Confusion of confidence", 7.0),
    ("Reliability of each class", 6.0),
    ("Reliability curve", 2.0),
    ("Levels", 2.0),
)
"""Shares of the time, by a part of the name: of 100,000 rows of ten classes, where one waits. Others take next to none."""

REST = 0.3

LAST = "Done"


def cost(step: str) -> float:
    """The work that is expected of a step.

    >>> cost("999 redraws"), cost("Brier score")
    (50.0, 0.3)
    """
    return next((work for part, work in COSTS if part in step), REST)


def announcer(steps: Sequence[str], progress: Progress) -> Callable[[str], None]:
    """A function that tells of each step before it begins, in the order of ``steps``, and at last that all is done.

    >>> tell = announcer(["999 redraws", "Brier score"], print)
    >>> for step in ("999 redraws", "Brier score", LAST):
    ...     tell(step)
    999 redraws 0.0 50.3
    Brier score 50.0 50.3
    Done 50.3 50.3
    """
    total, done = sum(map(cost, steps)), 0.0

    def tell(step: str) -> None:
        nonlocal done
        progress(step, total if step == LAST else done, total)
        done += cost(step)

    return tell
