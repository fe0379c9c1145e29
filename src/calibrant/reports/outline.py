"""What a report consists of, before any of it is computed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from calibrant.reports.model import KeyNumber, Picture, Section, Verdict
from calibrant.reports.problem import Problem
from calibrant.reports.slices import by_column
from calibrant.typing import ArrayLike


class Outline(NamedTuple):
    """The numbers of a report, the steps that make its pictures and tables, who judges them, and notes on the data."""

    subject: str
    numbers: list[tuple[str, Callable[[], KeyNumber]]]
    pictures: list[tuple[str, Callable[[], Picture]]]
    sections: list[tuple[str, Callable[[], Section]]]
    judge: Callable[[Sequence[KeyNumber], Sequence[Picture]], Verdict]
    notes: list[str]

    @property
    def n_steps(self) -> int:
        """How many there are."""
        return len(self.numbers) + len(self.pictures) + len(self.sections)


def tables_of(problem: Problem, by: Mapping[str, ArrayLike]) -> list[tuple[str, Callable[[], Section]]]:
    """A table for every column to slice by."""
    return [(f"By {name}", partial(by_column, problem, name, column)) for name, column in by.items()]
