"""What a report consists of, before any of it is computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from calibrant.reports.model import KeyNumber, Picture, Section, Verdict

E = TypeVar("E")


@dataclass(frozen=True, eq=False)
class Outline(Generic[E]):
    """The steps of a report: first the evidence, then the numbers, pictures and tables that rest on it, each with its name.

    ``judge`` makes the verdict of evidence and numbers; ``notes`` are about the data.
    """

    subject: str
    gather: tuple[str, Callable[[], E]]
    numbers: Sequence[tuple[str, Callable[[E], KeyNumber]]]
    pictures: Sequence[tuple[str, Callable[[E], Picture]]]
    sections: Sequence[tuple[str, Callable[[E], Section]]]
    judge: Callable[[E, Sequence[KeyNumber]], Verdict]
    notes: Callable[[], Sequence[str]]

    @property
    def steps(self) -> list[str]:
        """Their names, in order."""
        return [self.gather[0], *(name for part in (self.numbers, self.pictures, self.sections) for name, _ in part)]
