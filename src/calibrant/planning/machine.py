"""What this machine has, and how fast it works: rates measured here, or shipped with calibrant."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from calibrant.planning.families import Family, Load
from calibrant.results import SCHEMA

DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""Files that a driver of NVIDIA makes on Linux: without one of them torch need not be asked, which takes seconds."""

UNKNOWN = 8e9
"""Bytes that are taken to be there where the system does not say."""


@dataclass(frozen=True)
class Machine:
    """Threads, bytes of memory that are free, and the name of a GPU."""

    threads: int
    memory: float
    gpu: str | None = None


def this_machine() -> Machine:
    """Where this process runs."""
    return Machine(_threads(), _memory(), _gpu())


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
        return UNKNOWN


def _gpu() -> str | None:
    """The GPU that torch can use, if there is one."""
    has_driver = sys.platform == "win32" or any(Path(driver).exists() for driver in DRIVERS)
    if not has_driver or find_spec("torch") is None:
        return None
    try:
        cuda = import_module("torch").cuda
        return str(cuda.get_device_name(0)) if cuda.is_available() else None
    except (ImportError, OSError, RuntimeError):  # what a library that is installed and broken raises
        return None


SHIPPED = Path(__file__).with_name("rates.json")

BUILT_IN = "built-in rates"

AGGREGATED = "aggregated "
"""How the name of a test of several statistics begins; they cost what one costs, several times."""


@dataclass(frozen=True)
class Rates:
    """Seconds of one processor, or of a GPU, a unit of each monomial, by kind of predictions and family.

    >>> shipped().source, shipped().gpu_name
    ('built-in rates', 'NVIDIA H200')
    """

    seconds: Mapping[str, tuple[float, ...]]
    machine: Mapping[str, str]
    source: str
    gpu_seconds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    gpu_name: str | None = None

    @property
    def is_shipped(self) -> bool:
        """Whether they were measured elsewhere."""
        return self.source == BUILT_IN

    def predicted(self, family: Family, load: Load, threads: int = 1, *, on_gpu: bool = False) -> float:
        """Seconds that the work takes with so many threads, or on the GPU where that has a way of its own for it."""
        key = key_of(family, load)
        by_gpu = on_gpu and key in self.gpu_seconds
        rates = self.gpu_seconds[key] if by_gpu else self.seconds[key]
        total = sum(rate * term for rate, term in zip(rates, family.terms(load), strict=True))
        return total / threads if family.is_shared and not by_gpu else total

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        seconds, on_gpu = (
            {key: list(rates) for key, rates in some.items()} for some in (self.seconds, self.gpu_seconds)
        )
        found = {"schema": SCHEMA, "kind": "rates", "machine": dict(self.machine), "seconds": seconds}
        return found if self.gpu_name is None else {**found, "gpu": {"name": self.gpu_name, "seconds": on_gpu}}

    def save(self) -> Path:
        """Keep them for later plans; says where."""
        path = kept()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(), indent=1) + "\n", "utf-8")
        return path


def key_of(family: Family, load: Load) -> str:
    """The name of a family's rates."""
    return f"{load.kind}: {family.name.removeprefix(AGGREGATED)}"


def kept() -> Path:
    """Where measured rates are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant" / "rates.json"


def current() -> Rates:
    """Those measured on this machine, where they are complete; else the built-in ones."""
    try:
        found = _read(kept(), f"rates measured here, {kept()}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return shipped()
    if _lengths(found.seconds) != _lengths(shipped().seconds):
        return shipped()
    if _lengths(found.gpu_seconds) == _lengths(shipped().gpu_seconds):
        return found
    return replace(found, gpu_seconds=shipped().gpu_seconds, gpu_name=shipped().gpu_name)


@cache
def shipped() -> Rates:
    """Those that calibrant brings: of a plain machine with two cores."""
    return _read(SHIPPED, BUILT_IN)


def _read(path: Path, source: str) -> Rates:
    data = json.loads(path.read_text("utf-8"))
    gpu = data.get("gpu", {"name": None, "seconds": {}})
    return Rates(_rates(data["seconds"]), data["machine"], source, _rates(gpu["seconds"]), gpu["name"])


def _rates(seconds: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {str(key): tuple(map(float, rates)) for key, rates in seconds.items()}


def _lengths(seconds: Mapping[str, tuple[float, ...]]) -> dict[str, int]:
    """What is known of whether rates are those of this version."""
    return {key: len(rates) for key, rates in seconds.items()}
