"""The plan, as a result."""

from dataclasses import asdict, dataclass
from typing import Any

from calibrant.planning.load import Load
from calibrant.planning.quantities import duration, size
from calibrant.results import SCHEMA, Result, how_many, number


@dataclass(frozen=True)
class Choice:
    """A question, the setting that answers it, and what it is expected to cost."""

    role: str
    setting: str
    seconds: float
    memory: float
    rows: int

    def words(self, n: int) -> str:
        """One line."""
        some = "" if self.rows == n else f", on {how_many(self.rows, 'row')} drawn at random"
        return f"{self.setting}{some}: {duration(self.seconds)}, {size(self.memory)}"


@dataclass(frozen=True)
class LeftOut:
    """What would have been better, and why it is not in the plan."""

    role: str
    setting: str
    seconds: float
    memory: float
    reason: str


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What to run within a budget: settings as commands and Python take them, where, and what was left out.

    ``seconds`` is the sum over the choices, ``memory`` the most that any of them holds, the data included. Both are the
    cost model's: a factor of three is possible. ``rates`` says where its coefficients come from.

    >>> from calibrant.planning import plan
    >>> within = plan(1000, 10, budget="1min")
    >>> within.fits, within.seconds < 60
    (True, True)
    """

    load: Load
    budget: float
    available: float
    engine: str
    choices: tuple[Choice, ...]
    left_out: tuple[LeftOut, ...]
    rates: str
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether anything can be done within the budget."""
        return bool(self.choices)

    @property
    def seconds(self) -> float:
        """Of all choices, one after the other."""
        return sum(choice.seconds for choice in self.choices)

    @property
    def memory(self) -> float:
        """Bytes, at most."""
        return max((choice.memory for choice in self.choices), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "plan",
            "n": self.load.n,
            "k": self.load.k,
            "predictions": self.load.kind,
            "budget": self.budget,
            "memory_available": self.available,
            "fits": self.fits,
            "seconds": self.seconds,
            "memory": self.memory,
            "engine": self.engine,
            "choices": [asdict(choice) for choice in self.choices],
            "left_out": [asdict(left) for left in self.left_out],
            "rates": self.rates,
            "notes": list(self.notes),
        }

    def _lines(self) -> list[tuple[str, str]]:
        rows = f"{how_many(self.load.n, 'row')} of {_described(self.load)}"
        cost = f"{duration(self.seconds)} of {duration(self.budget)}, {size(self.memory)} of {size(self.available)}"
        headline = f"{rows}: {cost}" if self.fits else f"{rows}: nothing fits into {duration(self.budget)}"
        return [
            ("Plan", headline),
            *((choice.role, choice.words(self.load.n)) for choice in self.choices),
            ("engine", self.engine),
            *(("left out", f"{left.setting}: {left.reason}") for left in self.left_out),
            *(("note", note) for note in self.notes),
            ("costs by", self.rates),
        ]


def _described(load: Load) -> str:
    return {
        "classes": f"{number(load.k)} classes",
        "binary": "two classes",
        "numbers": "numbers",
        "ensemble": f"ensembles of {number(load.k)}",
    }[load.kind]
