"""A way to err that may give a verdict its words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PossibleFault:
    """A way to err: standard errors that speak for it, its one word, its words, and the two means that show it."""

    z: float
    finding: str
    words: str
    means: str
