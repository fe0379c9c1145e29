"""From rows, classes and a budget to a plan."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from calibrant._validate import InputError, check_one_of
from calibrant.planning.affordable import PAIRS, TEST_WORK, affordable, affordable_kernel
from calibrant.planning.families import KINDS, Kind, Load
from calibrant.planning.machine import Machine, Rates, current, this_machine
from calibrant.planning.options import REDRAWS, EngineName, Place, Quote, Role, place_for, roles, workers_for
from calibrant.results import SCHEMA, Result, brief, how_many, number


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


__all__ = ["Plan", "plan"]

KEPT_BACK = 0.05
"""Part of the budget that is kept back for an answer to a later question; dearer ones take what is left."""


def plan(
    n: int,
    k: int = 2,
    *,
    kind: Kind | None = None,
    members: int | None = None,
    budget: float | str = 600.0,
    memory: float | str | None = None,
    engine: EngineName | None = None,
    rates: Rates | None = None,
    machine: Machine | None = None,
) -> Plan:
    """Which estimators and tests n rows of k classes can have within ``budget`` seconds and ``memory`` bytes, and where.

    Questions are taken by importance. Each keeps back what cheap answers to the later ones cost, and takes the best
    answer that the rest of the budget and the memory allow. Costs are sums of measured coefficients times monomials of
    n, k, resamples and waves; ``calibrant doctor --bench`` measures them on this machine. Without ``memory`` all that is free
    may be used; without ``engine`` it is this process, batches where the data do not fit, or a GPU that torch can use.

    >>> from calibrant.planning import plan
    >>> from calibrant.planning import Machine
    >>> small = plan(1000, 10, budget="10min", machine=Machine(2, 8e9))
    >>> small.choices[2].role, small.choices[2].setting
    ('test', 'AggregatedTest()')
    >>> plan(10**7, 1000, budget="10min", machine=Machine(2, 8e9)).engine.partition(" ")[0]
    'batches'
    """
    load, seconds = _load(n, k, kind, members), as_seconds(budget, "budget")
    found = machine or this_machine()
    place = place_for(load, found, found.memory if memory is None else as_bytes(memory, "memory"), engine)
    used = rates or current()
    if place.name == "cluster":
        place = _with_workers(place, load, used, seconds)
    wanted = [(role, [place.quoted(option, used) for option in role.options]) for role in place.offered(roles(load))]
    choices, left_out = _chosen(wanted, seconds, place)
    notes = tuple(_notes(wanted, place, load, choices, seconds))
    return Plan(load, seconds, place.memory, place.words, choices, left_out, _source(used, place), notes)


def _source(rates: Rates, place: Place) -> str:
    """Where costs are from."""
    here = f"{rates.source}: calibrant doctor --bench measures this machine" if rates.is_shipped else rates.source
    by_gpu = place.name == "gpu" and rates.gpu_name is not None
    return f"{here}; sums over pairs at the rates of {rates.gpu_name}" if by_gpu else here


def _load(n: int, k: int, kind: Kind | None, members: int | None) -> Load:
    """The checked size of the problem."""
    n, k = as_count(n, "n"), as_count(k, "k")
    kind = kind or ("ensemble" if members is not None else "binary" if k == 2 else "classes")
    check_one_of(kind, KINDS, "kind")
    if kind == "ensemble":
        return Load(n, as_count(10 if members is None else members, "members"), kind)
    if members is not None:
        raise InputError(f"members go with kind='ensemble'; got kind={kind!r}")
    if kind in ("classes", "binary") and k < 2:
        raise InputError(f"k must be at least 2 classes; got {k}: kind='numbers' has none")
    if kind == "binary" and k != 2:
        raise InputError(f"kind='binary' has two classes; got k={k}")
    return Load(n, 1 if kind == "numbers" else k, "binary" if k == 2 and kind == "classes" else kind)


def _chosen(
    wanted: Sequence[tuple[Role, list[Quote]]], budget: float, place: Place
) -> tuple[tuple[Choice, ...], tuple[LeftOut, ...]]:
    """The best answer to each question that leaves enough for the least answers to the later ones."""
    least = _least(wanted, budget, place)
    choices: list[Choice] = []
    left_out: list[LeftOut] = []
    left = budget
    for i, (role, quotes) in enumerate(wanted):
        seconds = left - sum(least[i + 1 :])
        chosen = next((quote for quote in quotes if _objection(quote, seconds, place) is None), None)
        better = quotes if chosen is None else quotes[: quotes.index(chosen)]
        reasons = {q.option.family.name: _left_out(role, q, seconds, place) for q in reversed(better)}
        left_out += reversed(reasons.values())
        if chosen is not None:
            choices.append(_choice(role, chosen))
            left -= chosen.seconds
    return tuple(choices), tuple(left_out)


def _least(wanted: Sequence[tuple[Role, list[Quote]]], budget: float, place: Place) -> list[float]:
    """Seconds to keep back for each question: of its least answer where that is a small part of the budget, else none."""
    kept: list[float] = []
    for _, quotes in wanted:
        seconds = min((quote.seconds for quote in quotes if quote.memory <= place.memory), default=math.inf)
        kept.append(seconds if seconds <= KEPT_BACK * budget and sum(kept) + seconds <= budget else 0.0)
    return kept


def _choice(role: Role, quote: Quote) -> Choice:
    return Choice(role.name, quote.option.text, quote.seconds, quote.memory, quote.option.load.n)


def _left_out(role: Role, quote: Quote, seconds: float, place: Place) -> LeftOut:
    reason = _objection(quote, seconds, place)
    assert reason is not None
    return LeftOut(role.name, quote.option.text, quote.seconds, quote.memory, reason)


def _objection(quote: Quote, seconds: float, place: Place) -> str | None:
    """Why this cannot be done, or nothing."""
    if quote.memory > place.memory:
        return f"needs {size(quote.memory)} of memory"
    return f"takes {duration(quote.seconds)}" if quote.seconds > seconds else None


def _with_workers(place: Place, load: Load, rates: Rates, budget: float) -> Place:
    """As many workers as the best test needs that a cluster does in half the budget."""
    tests = next(role for role in roles(load) if role.name == "test")
    quotes = (place.quoted(option, rates) for option in tests.options)
    found = workers_for((quote for quote in quotes if quote.memory <= place.memory), budget / 2)
    return replace(place, workers=1 if found is None else found[1])


def _notes(
    wanted: Sequence[tuple[Role, list[Quote]]], place: Place, load: Load, choices: Sequence[Choice], budget: float
) -> Iterator[str]:
    """What would help, what is assumed, and what a report would do by itself."""
    if not choices:
        yield from _remedies(wanted, place)
    if place.name == "batches":
        yield "the data do not fit into memory three times over; reading them is not counted"
    if choices and place.name in ("process", "gpu"):
        yield from _better_test(wanted, place, choices, budget)
        resamples = affordable(REDRAWS[0], load.n, TEST_WORK, least=REDRAWS[1])
        kernel = affordable_kernel(load.n, PAIRS, is_line=load.kind == "binary")
        yield f"by itself, calibrant report takes {resamples} resamples and {brief(kernel) if kernel else 'no kernel error'}"


def _better_test(
    wanted: Sequence[tuple[Role, list[Quote]]], place: Place, choices: Sequence[Choice], budget: float
) -> Iterator[str]:
    """What a cluster could do that this machine cannot."""
    quotes = next(quotes for role, quotes in wanted if role.name == "test")
    better = workers_for((quote for quote in quotes if quote.memory <= place.memory), budget / 2)
    if better is not None and better[1] > 1 and all(choice.setting != better[0].option.text for choice in choices):
        quote, workers = better
        yield f"a Dask cluster of {workers} workers like this machine would do {quote.option.text} in half the budget"


def _remedies(wanted: Sequence[tuple[Role, list[Quote]]], place: Place) -> Iterator[str]:
    """What would make the least of it fit."""
    quotes = [quote for _, some in wanted for quote in some]
    possible = [quote for quote in quotes if quote.memory <= place.memory]
    least = min(possible or quotes, key=lambda quote: quote.seconds)
    if possible:
        yield f"{least.option.text} would fit into --budget {duration(1.05 * least.seconds).replace(' ', '')}"
    else:
        smallest = min(quote.memory for quote in quotes)
        yield f"--memory {size(1.05 * smallest).replace(' ', '')} would be enough for a first answer; or --engine batches"


SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}


def as_count(text: str | float, name: str) -> int:
    """A whole number of at least one, also as 1e7 or 10_000.

    >>> as_count("1e7", "--n")
    10000000
    """
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 1 and value == int(value)):
        raise InputError(f"{name} must be a whole number of at least 1, such as 20000 or 1e7; got {text!r}")
    return int(value)


def as_seconds(text: str | float, name: str) -> float:
    """A duration: a number of seconds, or one with its unit.

    >>> as_seconds("10min", "--budget"), as_seconds("1.5h", "--budget"), as_seconds(30, "budget")
    (600.0, 5400.0, 30.0)
    """
    return _measured(text, name, SECONDS, "a positive duration such as 30s, 10min or 2h")


def as_bytes(text: str | float, name: str) -> float:
    """A size: a number of bytes, or one with its unit.

    >>> as_bytes("16GB", "--memory"), as_bytes("0.5 GiB", "--memory")
    (16000000000.0, 536870912.0)
    """
    return _measured(text, name, BYTES, "a positive size such as 500MB, 16GB or 8GiB")


def _measured(text: str | float, name: str, units: dict[str, float], remedy: str) -> float:
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    try:
        value = float(found[1]) * (units[found[2]] if found[2] else 1.0) if found else math.nan
    except (KeyError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be {remedy}; got {text!r}")
    return value


def duration(seconds: float) -> str:
    """Seconds in words, two digits.

    >>> [duration(x) for x in (0.0004, 0.25, 12, 600, 5400, 1e6)]
    ['0.4 ms', '250 ms', '12 s', '10 min', '1.5 h', '12 d']
    """
    for unit in ("d", "h", "min", "s"):
        if seconds >= 0.999 * SECONDS[unit]:
            return f"{_two_digits(seconds / SECONDS[unit])} {unit}"
    return f"{_two_digits(seconds / SECONDS['ms'])} ms"


def size(bytes: float) -> str:
    """Bytes in words, two digits.

    >>> [size(x) for x in (800, 3.2e7, 8.008e10)]
    ['0.8 kB', '32 MB', '80 GB']
    """
    unit = next((unit for unit in ("TB", "GB", "MB") if bytes >= 0.999 * BYTES[unit]), "kB")
    return f"{_two_digits(bytes / BYTES[unit])} {unit}"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:g}"
