"""What this machine has: threads, memory, a GPU."""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

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
