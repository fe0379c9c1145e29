"""What GPU benchmarks share: times, limits of the arithmetic, and a record of what was found."""

import importlib.util
import json
import os
import platform
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

START = perf_counter()
IS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if IS_GPU else "cpu")
RESULTS: dict[str, Any] = {}


def say(*words: object) -> None:
    print(f"[{perf_counter() - START:6.1f} s]", *words, flush=True)


def guarded(name: str, work: Callable[[], Any]) -> Any:
    """Run a part; what goes wrong is printed and written down, and the next part runs."""
    try:
        return work()
    except Exception as error:
        say(f"FAILED {name}: {error!r}"[:2000])
        traceback.print_exc(limit=6)
        RESULTS.setdefault("failed", []).append(f"{name}: {error!r}"[:500])
        if IS_GPU:
            torch.cuda.empty_cache()
        return None


def synchronize() -> None:
    if IS_GPU:
        torch.cuda.synchronize()


def timed(work: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest run after one that compiles."""
    work()
    times = []
    for _ in range(repeats):
        synchronize()
        start = perf_counter()
        work()
        synchronize()
        times.append(perf_counter() - start)
    return min(times)


def name_of_device() -> str:
    return torch.cuda.get_device_name(0) if IS_GPU else "the interpreter of Triton"


def environment() -> dict[str, Any]:
    names = ("triton", "numpy", "scipy", "numba", "narwhals", "array_api_compat", "pytest")
    versions = {name: _version(name) for name in ("torch", *names)}
    device = torch.cuda.get_device_properties(0) if IS_GPU else None
    return {
        "device": name_of_device(),
        "multiprocessors": device and device.multi_processor_count,
        "memory GiB": device and round(device.total_memory / 2**30, 1),
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        **versions,
    }


def _version(name: str) -> str | None:
    if importlib.util.find_spec(name) is None:
        return None
    return getattr(importlib.import_module(name), "__version__", "there")


def limit(
    pairs: float, arithmetic: float = 0.0, special: float = 0.0, logic: float = 0.0, tensor: float = 0.0
) -> float:
    """Seconds that a GPU of this size needs at least, by the busiest of its units; counts are instructions a pair.

    In a clock of 1.98 GHz a multiprocessor does 128 additions or multiply-adds, 64 comparisons, 16 roots or exponentials, and
    1,024 multiply-adds in tf32 on tensor cores.
    """
    clocks = 1.98e9 * (torch.cuda.get_device_properties(0).multi_processor_count if IS_GPU else 1)
    return pairs * max(arithmetic / 128, logic / 64, special / 16, tensor / 1024) / clocks


def row(name: str, seconds: float, least: float, target: float, peer: float | None = None, **more: Any) -> None:
    RESULTS.setdefault("times", {})[name] = {
        "seconds": seconds, "limit": least, "target": target, "torch tiles": peer, **more
    }  # fmt: skip
    verdict = "met" if seconds <= target else "MISSED"
    ratio = "" if peer is None else f", torch {peer:.3f} ({peer / seconds:.1f} x)"
    extra = "".join(f", {key} {value:.1e}" for key, value in more.items())
    say(f"{verdict:<6} {name:<40} {seconds:.4f} s, target {target}, limit {least:.3f}{ratio}{extra}")


def write() -> None:
    """Below ``$OUT``, or next to this file."""
    folder = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    folder.mkdir(parents=True, exist_ok=True)
    device = name_of_device().replace(" ", "-").lower()
    (folder / f"gpu-{device}.json").write_text(json.dumps(RESULTS, indent=1) + "\n")
