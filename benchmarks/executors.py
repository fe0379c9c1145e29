"""Executors of other libraries as engines: the same digits as in this process, library by library.

Run ``python benchmarks/executors.py [name ...]``; names are those below. What is not installed is said and left out. MPI has its
own start:
``mpiexec -n 3 python -m mpi4py.futures benchmarks/executors.py mpi-pool`` and
``mpiexec -n 3 python benchmarks/executors.py mpi-comm``.
"""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from harness import classes

from calibrant import (
    ECE,
    KCE,
    KDE,
    SKCE,
    AggregatedTest,
    Bootstrap,
    Brier,
    ExactTest,
    Normal,
    TopLabel,
    Variational,
    evaluate,
)
from calibrant.checks import check_engine
from calibrant.engines import DevicePool, connect
from calibrant.estimators import TangentKDE
from calibrant.inference import BlockTest, GammaTest, Jackknife, SpectralTest, WildBootstrapTest
from calibrant.kernels import Exponential

Answers = dict[str, list[float]]


def answers(engine: Any) -> Answers:
    """What everything that takes an engine says of the same data."""
    y, p = classes(4, 4200)
    mu = np.linspace(-1, 1, 2200)
    normals, numbers = Normal(mu, 1 + mu**2), mu + np.random.default_rng(1).normal(size=2200)
    top, few = ECE(lens=TopLabel()), (y[:400], p[:400])
    found: dict[str, Any] = {
        "SKCE": SKCE()(y, p, engine=engine),
        "SKCE of forecasts": SKCE()(numbers, normals, engine=engine),
        "SKCE in tiles": SKCE(Exponential(0.3, power=1.5))(y, p, engine=engine),
        "SKCE in blocks": SKCE(block=50)(y, p, engine=engine),
        "SKCE in large blocks": SKCE(block=2100)(y, p, engine=engine),
        "KCE": KCE()(y, p, engine=engine),
        "KDE": KDE(bandwidth=0.1)(y, p, engine=engine),
        "TangentKDE": TangentKDE()(y, p, engine=engine),
        "Variational": Variational()(y, p, engine=engine),
        "Bootstrap": Bootstrap(Brier(), 199)(y, p, engine=engine),
        "Jackknife": Jackknife(Brier())(*few, engine=engine),
    }
    tests: dict[str, Any] = {
        "ExactTest": ExactTest(top, 199)(y, p, engine=engine),
        "AggregatedTest": AggregatedTest(n_resamples=99)(*few, engine=engine),
        "BlockTest": BlockTest()(y, p, engine=engine),
        "WildBootstrapTest": WildBootstrapTest(n_resamples=99)(*few, engine=engine),
        "GammaTest": GammaTest()(y, p, engine=engine),
        "SpectralTest": SpectralTest(eigenvalues=4)(*few, engine=engine),
    }
    numbers_of = {name: [e.value, e.standard_error or 0.0, *(e.interval or ())] for name, e in found.items()}
    numbers_of |= {name: [t.statistic, t.pvalue] for name, t in tests.items()}
    report = evaluate(*few, n_resamples=99, engine=engine)
    return numbers_of | {"evaluate": [number.value for number in report.numbers]}


class Here:
    """The tasks of an engine in this process."""

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        return map(fn, *tasks)


@contextmanager
def threads() -> Iterator[Any]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@contextmanager
def processes() -> Iterator[Any]:
    with connect("processes:2") as pool:
        yield pool


@contextmanager
def devices() -> Iterator[Any]:
    with DevicePool(["cpu", "cpu"]) as pool:
        yield pool


@contextmanager
def loky() -> Iterator[Any]:
    from loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=2)
    yield pool
    pool.shutdown()


@contextmanager
def joblib_loky() -> Iterator[Any]:
    from joblib.externals.loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=2)
    yield pool
    pool.shutdown()


@contextmanager
def joblib_parallel() -> Iterator[Any]:
    from joblib import Parallel

    with Parallel(n_jobs=2) as parallel:
        yield parallel


@contextmanager
def multiprocessing_pool() -> Iterator[Any]:
    from multiprocessing import get_context

    with get_context("spawn").Pool(2) as pool:
        yield pool


@contextmanager
def dask() -> Iterator[Any]:
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@contextmanager
def dask_executor() -> Iterator[Any]:
    with dask() as client, client.get_executor(pure=False) as pool:
        yield pool


@contextmanager
def ray_pool() -> Iterator[Any]:
    import ray
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    with Pool(2) as pool:
        yield pool
    ray.shutdown()


@contextmanager
def ray_joblib() -> Iterator[Any]:
    import ray
    from joblib import Parallel, parallel_config
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    register_ray()
    with parallel_config(backend="ray", n_jobs=2):
        yield Parallel()
    ray.shutdown()


@contextmanager
def mpi_pool() -> Iterator[Any]:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(2) as pool:
        yield pool


@contextmanager
def mpi_comm() -> Iterator[Any]:
    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor() as pool:
        yield pool


KINDS: dict[str, tuple[str | None, Callable[[], Any]]] = {
    "threads": (None, threads),
    "processes": (None, processes),
    "multiprocessing-pool": (None, multiprocessing_pool),
    "devices": ("torch", devices),
    "loky": ("loky", loky),
    "joblib-loky": ("joblib", joblib_loky),
    "joblib-parallel": ("joblib", joblib_parallel),
    "dask": ("distributed", dask),
    "dask-executor": ("distributed", dask_executor),
    "ray-pool": ("ray", ray_pool),
    "ray-joblib": ("ray", ray_joblib),
    "mpi-pool": ("mpi4py", mpi_pool),
    "mpi-comm": ("mpi4py", mpi_comm),
}
"""Names, with the distribution that each needs."""


@cache
def expected() -> Answers:
    """The digits that any engine must have: those of its tasks, one after the other in this process."""
    alone, plain = answers(Here()), answers(None)
    worst = max(abs(a - b) for key in alone for a, b in zip(alone[key], plain[key], strict=True))
    print(f"no engine beside tasks in this process: largest difference {worst:.1e}", flush=True)
    return alone


def compared(name: str) -> str:
    library, opened = KINDS[name]
    label = "" if library is None else f" {library} {version(library)}"
    start = time.perf_counter()
    with opened() as pool:
        if pool is None:  # a process of MPI that works for another
            return ""
        engine = connect(pool)
        check_engine(engine)
        found = answers(engine)
        seconds, alone = time.perf_counter() - start, expected()
    same = sum(found[key] == alone[key] for key in alone)
    worst = max(abs(a - b) for key in alone for a, b in zip(alone[key], found[key], strict=True))
    return f"{name}{label}: {same} of {len(alone)} identical, largest difference {worst:.1e}, {seconds:.0f} s"


def main(names: list[str]) -> None:
    for name in names:
        try:
            line = compared(name)
        except ImportError as error:
            line = f"{name}: left out, {error}"
        if line:
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [name for name in KINDS if not name.startswith("mpi")])
