"""What one wants to know of predictions, the ways to it in order of preference, and where they run."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from calibrant._validate import InputError
from calibrant.estimators.kernel_errors.random_features import MAX_FEATURES, MAX_NUMBERS, MIN_FEATURES
from calibrant.planning.affordable import PAIRS, affordable_kernel
from calibrant.planning.families import FAMILIES, Family, Load, kernel_work
from calibrant.planning.machine import Machine, Rates
from calibrant.results import brief, how_many

REDRAWS = (999, 199, 99)
WAVES = (MAX_FEATURES, 256, 64, MIN_FEATURES)
SMALL_BLOCK = 100


@dataclass(frozen=True)
class Option:
    """A family with the load it would have."""

    family: Family
    load: Load

    @property
    def text(self) -> str:
        """What commands and Python take."""
        return brief(self.family.make(self.load))


@dataclass(frozen=True)
class Role:
    """A question, and what answers it, best first."""

    name: str
    options: tuple[Option, ...]


def roles(load: Load) -> tuple[Role, ...]:
    """Questions by importance.

    >>> [role.name for role in roles(Load(1000, 2, "binary"))]
    ['calibration error', 'score', 'test', 'kernel error', 'recalibration', 'error without bins', 'whole predictions']
    """
    error = ("binned error", "error in fixed bins", "PIT error")
    asked = {
        "calibration error": _plain(load, *error),
        "score": _plain(load, "log loss", "CRPS"),
        "test": _tests(load),
        "kernel error": _kernel_errors(load),
        "class-wise error": _plain(load, "class-wise error"),
        "recalibration": _plain(load, "recalibration", "temperature"),
        "error without bins": _plain(load, "smooth error", "debiased error"),
        "whole predictions": _plain(load, "kernel regression", "mean embedding"),
    }
    made = (Role(name, tuple(o for o in options if load.kind in o.family.kinds)) for name, options in asked.items())
    return tuple(role for role in made if role.options)


def _plain(load: Load, *names: str) -> list[Option]:
    return [Option(FAMILIES[name], load) for name in names]


def _kernel_errors(load: Load) -> Iterator[Option]:
    """As reports choose, then by waves."""
    is_line = load.kind == "binary"
    yield Option(FAMILIES["kernel error on a line" if is_line else "kernel error of all pairs"], load)
    usual = affordable_kernel(load.n, PAIRS, is_line=is_line)
    for block in dict.fromkeys((usual.block if usual and usual.block else SMALL_BLOCK, SMALL_BLOCK)):
        if block < load.n:
            yield Option(FAMILIES["kernel error of blocks"], replace(load, block=block))
    for waves in WAVES[1:]:
        yield Option(FAMILIES["kernel error by waves"], replace(load, waves=waves))


def _tests(load: Load) -> Iterator[Option]:
    """Several scales before one set of bins; exact statistics before waves; many resamples before few."""
    exact = "kernel test on a line" if load.kind == "binary" else "kernel test of all pairs"
    for resamples in REDRAWS[:2]:
        drawn = replace(load, resamples=resamples)
        yield Option(FAMILIES[f"aggregated {exact}"], drawn)
        for waves in _waves(drawn):
            yield Option(FAMILIES["aggregated kernel test by waves"], replace(drawn, waves=waves))
    for resamples in REDRAWS:
        for name in ("test of the binned error", "test of levels"):
            yield Option(FAMILIES[name], replace(load, resamples=resamples))


def _waves(load: Load) -> list[int]:
    """Numbers of waves that leave room, and cost less than what they stand for."""
    most = max(MIN_FEATURES, MAX_NUMBERS // (2 * load.n))
    cheaper = [w for w in WAVES if w <= most and kernel_work(replace(load, waves=w)) < kernel_work(load)]
    return cheaper if load.kind != "binary" else []


EngineName: TypeAlias = Literal["process", "batches", "gpu", "cluster"]
ENGINES: tuple[EngineName, ...] = ("process", "batches", "gpu", "cluster")

COPIES = 3
"""How often data that are to be worked on at once should fit into memory."""

MAX_BATCH_ROWS = 1_000_000
"""Rows of a batch."""

MAX_WORKERS = 1000
"""Workers that a cluster may have."""


@dataclass(frozen=True)
class Quote:
    """An option with its seconds and bytes."""

    option: Option
    seconds: float
    memory: float


@dataclass(frozen=True)
class Place:
    """An engine on a machine, with the bytes that may be used, and as many workers as a cluster has."""

    name: EngineName
    machine: Machine
    memory: float
    workers: int = 1

    def quoted(self, option: Option, rates: Rates) -> Quote:
        """What the option costs here."""
        seconds = rates.predicted(option.family, option.load, self.machine.threads, on_gpu=self.name == "gpu")
        if self.name == "cluster" and is_divisible(option):
            seconds /= self.workers
        held = replace(option.load, n=self.batch(option.load)) if self._in_batches(option) else option.load
        return Quote(option, seconds, option.family.bytes(held))

    def batch(self, load: Load) -> int:
        """Rows that are in memory at once."""
        return max(1, min(load.n, MAX_BATCH_ROWS, int(self.memory / COPIES**2 / (load.data_bytes / load.n))))

    def offered(self, roles: Iterable[Role]) -> Iterable[Role]:
        """What can be done here: in batches, what has a state on all rows, and the rest on a sample of them."""
        return map(self._sampled, roles) if self.name == "batches" else roles

    def _sampled(self, role: Role) -> Role:
        whole = [option for option in role.options if option.family.has_state]
        rest = [option for option in role.options if not option.family.has_state]
        sampled = [replace(option, load=replace(option.load, n=self.batch(option.load))) for option in rest]
        return replace(role, options=(*whole, *sampled))

    def _in_batches(self, option: Option) -> bool:
        return self.name == "batches" and option.family.has_state

    @property
    def words(self) -> str:
        """For people."""
        threads, workers = how_many(self.machine.threads, "thread"), how_many(self.workers, "worker")
        return {
            "process": f"this process, {threads}",
            "batches": f"batches of rows through states, {threads}: calibrant.io.Batches and calibrant.state",
            "gpu": f"GPU, {self.machine.gpu or 'none found here'}: predictions as torch.cuda arrays",
            "cluster": f"a Dask cluster of {workers}: --engine dask://host:8786, or calibrant.engines.connect",
        }[self.name]


def is_divisible(option: Option) -> bool:
    """Whether workers can share the work: resamples, and pairs of panels of rows, are tasks of their own."""
    return option.load.resamples > 0 or option.family.name == "kernel error of all pairs"


def place_for(load: Load, machine: Machine, memory: float, engine: EngineName | None) -> Place:
    """The engine that was asked for; else batches where the data do not fit, a GPU that is there, or this process.

    >>> place_for(Load(10**7, 1000), Machine(2, 16e9), 16e9, None).name
    'batches'
    """
    if engine is not None and engine not in ENGINES:
        raise InputError(f"engine must be one of {', '.join(ENGINES)}; got {engine!r}")
    if engine is None:
        engine = "gpu" if machine.gpu is not None and load.kind in ("classes", "numbers") else "process"
        engine = "batches" if COPIES * load.data_bytes > memory else engine
    return Place(engine, machine, memory)


def workers_for(quotes: Iterable[Quote], budget: float) -> tuple[Quote, int] | None:
    """The first of these that a cluster does in time, and the least number of workers that it takes.

    >>> workers_for([], 1.0) is None
    True
    """
    for quote in quotes:
        workers = max(1, math.ceil(quote.seconds / budget))
        if is_divisible(quote.option) and workers <= MAX_WORKERS:
            return quote, workers
    return None
