"""Tests in processes of their own, over a copy of the project in which one module has a fault.

A process that has NumPy, SciPy and the like at hand is forked for each trial, so that a trial costs little more than its tests.
"""

import ast
import gc
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

COMMON = ("numpy", "scipy.optimize", "scipy.stats", "scipy.special", "scipy.signal", "scipy.integrate", "numba")
COMMON += ("array_api_compat.numpy", "narwhals", "array_api_strict", "pandas", "torch")

WALL = 100
"""How many times its processor seconds a trial may take by the clock: machines are busy, and few faults wait for ever."""

MAX_MEMORY_BYTES = 6 << 30

QUIET = ["-q", *(f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "cov", "hypothesispytest"))]
"""Plugins that a trial needs not; that of Hypothesis takes longer to import than most tests to run."""


def prepare() -> None:
    """Import what every trial needs and no fault touches."""
    for name in COMMON:
        try:
            importlib.import_module(name)
        except ImportError:  # torch, pandas and array_api_strict may be absent: tests then skip
            continue
    gc.freeze()


def forked(task: Callable[[], int], root: Path, seconds: float, log: Path) -> int | None:
    """Exit status of a task that runs in a folder, negative for a signal; None where it ran out of time."""
    child = os.fork()
    if child == 0:
        _alone(task, root, seconds, log)
    end = time.monotonic() + WALL * seconds
    try:
        while time.monotonic() < end:
            done, status, _ = os.wait4(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return None if code == -signal.SIGXCPU else code
            time.sleep(0.01)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)
        raise


def _alone(task: Callable[[], int], root: Path, seconds: float, log: Path) -> None:
    """Do a task and end this process."""
    import resource  # which Windows lacks

    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 9))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), stream)
        os.chdir(root)
        os.environ["PYTHONPATH"] = str(root / "src")
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(root / ".hypothesis")
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "calibrant")]:
            del sys.modules[name]
        sys.dont_write_bytecode = False
        sys.path[:] = [str(root / "src"), str(root), *(p for p in sys.path if p not in ("", os.getcwd()))]
        code = int(task())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Faulty(MetaPathFinder, SourceFileLoader):
    """Imports one module from a changed program; files stay as they are."""

    def __init__(self, name: str, path: Path, program: ast.Module):
        SourceFileLoader.__init__(self, name, str(path))
        self.program = program

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where this module is."""
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, name: str) -> CodeType:
        """The changed program."""
        return compile(self.program, self.path, "exec")


class Chosen:
    """Some tests, in an order, of a program with or without a fault."""

    def __init__(self, tests: list[str], faulty: Faulty | None):
        self.order, self.faulty = {test: i for i, test in enumerate(tests)}, faulty

    def pytest_sessionstart(self) -> None:
        """Come before pytest's own importer, which reads the files that it was given."""
        if self.faulty is not None:
            sys.meta_path.insert(0, self.faulty)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all others."""
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Leave without a summary."""
        os._exit(int(exitstatus))


class Recorder:
    """Which lines each test runs, and its processor seconds."""

    def __init__(self, coverage: Any):
        self.coverage, self.seconds, self.failed = coverage, dict[str, float](), set[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Lines belong to this test."""
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - start
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tests that fail without a fault tell nothing."""
        if report.failed:
            self.failed.add(report.nodeid)


def run_chosen(tests: list[str], faulty: Faulty | None) -> int:
    """Run tests until one fails; 0 where none did."""
    if faulty is not None:
        sys.meta_path.insert(0, faulty)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return pytest.main([*QUIET, "-x", *files], plugins=[Chosen(tests, faulty)])
