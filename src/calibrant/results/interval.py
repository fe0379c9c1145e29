"""A range with its confidence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibrant.results import notebook
from calibrant.results.words import number


@dataclass(frozen=True)
class Interval:
    """A range with the confidence it holds and how it was found.

    >>> low, high = Interval(0.1, 0.2, 0.95, "bootstrap")
    >>> low, high
    (0.1, 0.2)
    """

    low: float
    high: float
    level: float
    method: str

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"

    def _repr_html_(self) -> str:
        return notebook.card(f"{100 * self.level:.4g} % interval", str(self), [("found by", self.method)])

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"low": self.low, "high": self.high, "level": self.level, "method": self.method}


def check_level(level: float) -> None:
    """A confidence level is a share between none and all."""
    if not 0 < level < 1:
        raise ValueError(f"the level must lie strictly between 0 and 1; got {level!r}")
