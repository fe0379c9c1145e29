"""What a report, tests, estimates and fits would cost, and which of them fit into a time and a memory."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from calibrant._validate import InputError, check_one_of
from calibrant.planning.affordable import PAIRS, TEST_WORK, affordable, affordable_kernel
from calibrant.planning.jobs import JOBS, KINDS, Job, Kind, Load
from calibrant.results import SCHEMA, Result, brief, how_many, number

__all__ = ["Plan", "plan"]

COPIES = 3
"""How often data that are worked on at once should fit into memory."""

MAX_BATCH_ROWS = 1_000_000


@dataclass(frozen=True)
class PlannedJob:
    """A job, the setting that does it, what it costs on how many rows, and why it does not fit, if it does not."""

    job: str
    setting: str
    seconds: float
    memory: float
    rows: int
    reason: str | None = None


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What can be run within a budget, each job by itself: settings as commands and Python take them, and what does not fit.

    Seconds are those of a machine with two cores, with the threads of this one; they and bytes may be wrong by a factor of three.

    >>> from calibrant.planning import plan
    >>> within = plan(1000, 10, budget="1min")
    >>> within.fits, within.jobs[0].job
    (True, 'report')
    """

    load: Load
    budget: float
    memory: float
    engine: str
    jobs: tuple[PlannedJob, ...]
    too_large: tuple[PlannedJob, ...]
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether anything can be done within the budget."""
        return bool(self.jobs)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        about = {"n": self.load.n, "k": self.load.k, "predictions": self.load.kind, "fits": self.fits}
        rest = {name: value for name, value in asdict(self).items() if name != "load"}
        return {"schema": SCHEMA, "kind": "plan", **about, **rest}

    def _lines(self) -> list[tuple[str, str]]:
        k = number(self.load.k)
        what = {"binary": "two classes", "numbers": "numbers", "ensemble": f"ensembles of {k}"}
        rows = f"{how_many(self.load.n, 'row')} of {what.get(self.load.kind, f'{k} classes')}"
        fitting = how_many(len(self.jobs), "job") if self.fits else "nothing"
        fit = "fit" if len(self.jobs) > 1 else "fits"
        return [
            ("Plan", f"{rows}: {fitting} {fit} into {duration(self.budget)} and {size(self.memory)}"),
            *((job.job, self._words(job)) for job in self.jobs),
            *((job.job, f"{job.setting}: does not fit, {job.reason}") for job in self.too_large),
            ("engine", self.engine),
            *(("note", note) for note in self.notes),
        ]

    def _words(self, job: PlannedJob) -> str:
        some = "" if job.rows == self.load.n else f", on {how_many(job.rows, 'row')} drawn at random"
        return f"{job.setting}{some}: {duration(job.seconds)}, {size(job.memory)}"


def plan(
    n: int,
    k: int = 2,
    *,
    kind: Kind | None = None,
    members: int | None = None,
    budget: float | str = 600.0,
    memory: float | str | None = None,
    threads: int | None = None,
) -> Plan:
    """What a report, tests and estimates of n rows of k classes cost; which fit into ``budget`` seconds and ``memory`` bytes.

    Each job is judged by itself. Without ``memory`` and ``threads`` they are what is free, and all there are. Where the data do
    not fit, jobs that can take them in batches do, and the others take a sample of rows. ``kind`` is "classes", "binary",
    "numbers" or "ensemble".

    >>> from calibrant.planning import plan
    >>> small = plan(1000, 10, budget="10min", memory="8GB")
    >>> next(job.setting for job in small.jobs if job.job == "aggregated kernel test")
    'AggregatedTest()'
    >>> plan(10**7, 1000, budget="10min", memory="8GB").engine.partition(" ")[0]
    'batches'
    """
    load, seconds = _load(n, k, kind, members), as_seconds(budget, "budget")
    shared = _threads() if threads is None else as_count(threads, "threads")
    available = _memory() if memory is None else as_bytes(memory, "memory")
    in_batches = COPIES * load.data_bytes > available
    held = load if not in_batches else replace(load, n=_batch_rows(load, available))
    known = {name: job for name, job in JOBS.items() if load.kind in job.kinds}
    offers = [_planned(name, job, load if job.has_state else held, held, shared) for name, job in known.items()]
    judged = [replace(offer, reason=_objection(offer, seconds, available)) for offer in offers]
    jobs = tuple(offer for offer in judged if offer.reason is None)
    too_large = tuple(offer for offer in judged if offer.reason is not None)
    engine = "batches of rows, calibrant.io.Batches and calibrant.state" if in_batches else "this process"
    notes = (*_remedies(offers, available, fits=bool(jobs)), *_notes(load, in_batches=in_batches))
    return Plan(load, seconds, available, f"{engine}, {how_many(shared, 'thread')}", jobs, too_large, notes)


UNKNOWN_MEMORY_BYTES = 8e9
"""What is taken to be free where the system does not say."""


def _threads() -> int:
    """Processors that this process may use; compiled code starts no more threads than it is told to."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(allowed, int(told)) if told.isdigit() and int(told) > 0 else allowed


def _memory() -> float:
    """Bytes that are free, as far as the system says."""
    table = Path("/proc/meminfo")
    if table.exists():
        found = [line.split()[1] for line in table.read_text().splitlines() if line.startswith("MemAvailable")]
        if found:
            return 1024.0 * int(found[0])
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) / 2
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_MEMORY_BYTES


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


def _batch_rows(load: Load, memory: float) -> int:
    return max(1, min(load.n, MAX_BATCH_ROWS, int(memory / COPIES**2 / (load.data_bytes / load.n))))


def _planned(name: str, job: Job, load: Load, held: Load, threads: int) -> PlannedJob:
    made = job.make(load)
    setting = made if isinstance(made, str) else brief(made)
    return PlannedJob(name, setting, job.seconds(load, threads), job.bytes(held), load.n)


def _objection(offer: PlannedJob, seconds: float, memory: float) -> str | None:
    if offer.memory > memory:
        return f"needs {size(offer.memory)} of memory"
    return f"takes {duration(offer.seconds)}" if offer.seconds > seconds else None


def _remedies(offers: list[PlannedJob], memory: float, *, fits: bool) -> Iterator[str]:
    """What would make the least of it fit."""
    possible = [offer for offer in offers if offer.memory <= memory]
    if not fits and possible:
        least = min(possible, key=lambda offer: offer.seconds)
        yield f"{least.setting} would fit into --budget {_option(duration(1.05 * least.seconds))}"
    elif not fits:
        least = min(offers, key=lambda offer: offer.memory)
        yield f"{least.setting} would fit into --memory {_option(size(1.05 * least.memory))}"


def _option(words: str) -> str:
    """As commands read it."""
    return words.replace(" ", "").replace(",", "")


def _notes(load: Load, *, in_batches: bool) -> Iterator[str]:
    """What is assumed, and how a report limits itself."""
    if in_batches:
        yield "the data do not fit into memory three times over; reading them is not counted"
    else:
        resamples = affordable(999, load.n, TEST_WORK, least=199)
        kernel = affordable_kernel(load.n, PAIRS, is_line=load.kind == "binary")
        yield f"the report takes {resamples} resamples and {brief(kernel) if kernel else 'no kernel error'}"


SECONDS_PER: Mapping[str, float] = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
BYTES_PER: Mapping[str, float] = {
    "B": 1.0,
    **{f"{letter}{unit}": 1000.0**i for i, letter in enumerate("kMGT", 1) for unit in ("", "B")},
    **{f"{letter}iB": 1024.0**i for i, letter in enumerate("KMGT", 1)},
    "K": 1e3,
    "KB": 1e3,
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
    return _measured(text, name, SECONDS_PER, "a positive duration such as 30s, 10min or 2h")


def as_bytes(text: str | float, name: str) -> float:
    """A size: a number of bytes, or one with its unit.

    >>> as_bytes("16GB", "--memory"), as_bytes("0.5 GiB", "--memory")
    (16000000000.0, 536870912.0)
    """
    return _measured(text, name, BYTES_PER, "a positive size such as 500MB, 16GB or 8GiB")


def _measured(text: str | float, name: str, units: Mapping[str, float], remedy: str) -> float:
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

    >>> [duration(x) for x in (0.0004, 0.25, 0.9999, 12, 600, 5400, 1e6)]
    ['0.4 ms', '250 ms', '1 s', '12 s', '10 min', '1.5 h', '12 d']
    """
    for unit in ("d", "h", "min", "s"):
        if seconds >= 0.995 * SECONDS_PER[unit]:
            return f"{_two_digits(seconds / SECONDS_PER[unit])} {unit}"
    return f"{_two_digits(seconds / SECONDS_PER['ms'])} ms"


def size(bytes: float) -> str:
    """Bytes in words, two digits.

    >>> [size(x) for x in (800, 3.2e7, 8.008e10)]
    ['0.8 kB', '32 MB', '80 GB']
    """
    unit = next((unit for unit in ("TB", "GB", "MB") if bytes >= 0.995 * BYTES_PER[unit]), "kB")
    return f"{_two_digits(bytes / BYTES_PER[unit])} {unit}"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:g}"
