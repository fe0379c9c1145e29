"""Shapes in which Triton kernels are started, and the search for the fastest of them on a device.

The first large problem of a kind times every shape on some of its rows; what was found is kept in memory and in a file
(``~/.cache/calibrant/cuda_shapes.json``, below ``XDG_CACHE_HOME`` where that is set), by device and version of Triton.
"""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from time import perf_counter

import torch
import triton

SEARCHED = 50_000
"""From so many rows on, a search costs less than it saves."""

SOME = 65_536
"""Rows on which shapes are timed."""


@dataclass(frozen=True)
class Shape:
    """Rows and columns of a tile, warps that share it, columns that one program passes, and stages of loading ahead."""

    rows: int
    columns: int
    warps: int
    chunk: int = 8192
    stages: int = 1

    @property
    def options(self) -> dict[str, int]:
        """What Triton is told."""
        return {"num_warps": self.warps, "num_stages": self.stages}


SHAPES = {
    "features": (Shape(16, 128, 1), Shape(8, 128, 1), Shape(32, 128, 2), Shape(16, 128, 4)),
    "products": (Shape(64, 128, 4), Shape(64, 64, 4, stages=2), Shape(64, 64, 4)),
    "wide products": (Shape(128, 64, 4, stages=3), Shape(128, 128, 8, stages=3)),
    "normals": (Shape(8, 128, 1), Shape(16, 128, 1), Shape(4, 128, 1), Shape(16, 128, 4)),
    "matmul": (Shape(64, 32, 4), Shape(32, 64, 4)),
    "blocks": (Shape(8, 128, 1),),
    "softmax": (Shape(16, 128, 4), Shape(8, 128, 1)),
    "slopes of queries": (Shape(32, 64, 4), Shape(64, 32, 4)),
    "slopes of keys": (Shape(32, 64, 2), Shape(32, 128, 4)),
    "resamples": (Shape(16, 128, 1), Shape(64, 128, 4), Shape(32, 128, 2)),
}
"""What is tried for each kind of kernel, the usual winner first."""

searched: dict[str, dict[Shape, float]] = {}
"""Seconds of the shapes that were tried in this process."""

_found: dict[str, Shape] = {}

_searching = Lock()
"""One thread searches at a time: those of other devices of the same name then know what it found."""


def shape_of(kind: str, detail: str, x: torch.Tensor, rows: int, attempt: Callable[[Shape], object]) -> Shape:
    """The fastest shape for a kind of kernel; ``attempt`` runs it on some rows. Few rows take the first."""
    if not x.is_cuda or rows < SEARCHED:
        return SHAPES[kind][0]
    key = f"{torch.cuda.get_device_name(x.device)}, triton {triton.__version__}: {kind}, {detail}"
    with _searching, place(x):
        if key not in _found:
            _found.update(_read())
        if key not in _found:
            times = searched[key] = {shape: _seconds(shape, attempt) for shape in SHAPES[kind]}
            _found[key] = min(times, key=lambda shape: times[shape])
            _write()
        return _found[key]


def place(x: torch.Tensor) -> AbstractContextManager[object]:
    """Where kernels on this tensor run."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def _seconds(shape: Shape, attempt: Callable[[Shape], object]) -> float:
    """The second of two runs; infinite where the shape does not fit the device."""
    try:
        attempt(shape)
        torch.cuda.synchronize()
        start = perf_counter()
        attempt(shape)
        torch.cuda.synchronize()
    except triton.runtime.errors.OutOfResources:
        return float("inf")
    return perf_counter() - start


def _file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant" / "cuda_shapes.json"


def _read() -> dict[str, Shape]:
    """What earlier processes found; nothing where the file cannot be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return {key: Shape(**value) for key, value in json.loads(_file().read_text()).items()}
    return {}


def _write() -> None:
    """Keep what was found, where a folder is writable."""
    with suppress(OSError):
        path = _file()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({key: asdict(shape) for key, shape in (_read() | _found).items()}, indent=1))
        partial.replace(path)
