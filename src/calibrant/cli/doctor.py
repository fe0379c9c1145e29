"""The command that says what is installed, what makes it fast, and whether it works on this machine."""

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import numpy as np
from rich.text import Text

import calibrant
from calibrant.cli import console, display
from calibrant.cli.flags import Output, print_json
from calibrant.reports.render.pdf import find_browser
from calibrant.results import SCHEMA

TOLERANCE = 1e-12

TRUTH = (1, 0, 1, 1, 0, 1)
CLAIMS = (0.9, 0.2, 0.7, 0.6, 0.4, 0.8)


@dataclass(frozen=True)
class Check:
    """A value that was computed here, what it should be, and what went wrong, if it could not be computed at all."""

    name: str
    value: float
    expected: float
    problem: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether the two agree to twelve digits."""
        return self.problem is None and abs(self.value - self.expected) <= TOLERANCE * max(1.0, abs(self.expected))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        about = {"name": self.name, "value": self.value, "expected": self.expected}
        return {**about, "is_right": self.is_right, "problem": self.problem}


def _binned() -> float:
    from calibrant.estimators.binned.ece import ECE

    return float(ECE()(TRUTH, CLAIMS))


def _brier() -> float:
    from calibrant.estimators.scoring_rules.proper_scores import Brier

    return float(Brier()(TRUTH, CLAIMS))


def _log_loss() -> float:
    from calibrant.estimators.scoring_rules.proper_scores import LogLoss

    return float(LogLoss()(TRUTH, CLAIMS))


def _crps() -> float:
    from calibrant.distributions.continuous.location_scale import Normal
    from calibrant.estimators.scoring_rules.forecast_scores import CRPS

    return float(CRPS()([0.0], Normal([0.0], [1.0])))


def _kernel() -> float:
    from calibrant.distributions.continuous.location_scale import Normal
    from calibrant.estimators.kernel_errors.skce import SKCE
    from calibrant.kernels import Gaussian

    return float(SKCE(Gaussian(1.0), Gaussian(1.0))([0.0, 0.0], Normal([0.0, 0.0], [1.0, 1.0])))


def _compiled() -> float:
    from calibrant._compiled.cpu import feature_moments

    return feature_moments(np.zeros((3, 1)), np.ones((3, 2)), 1.0, True)[1]


KNOWN: dict[str, tuple[Callable[[], float], float]] = {
    "binned error": (_binned, 4 / 15),  # gaps .1 .2 .3 .4 .4 .2, each in a bin of its own
    "Brier score": (_brier, 1 / 12),
    "log loss": (_log_loss, -math.log(0.9 * 0.8 * 0.7 * 0.6 * 0.6 * 0.8) / 6),
    "CRPS of a normal": (_crps, (math.sqrt(2) - 1) / math.sqrt(math.pi)),
    "kernel error of normals": (_kernel, 1 - math.sqrt(2) + 1 / math.sqrt(3)),
    "compiled sums": (_compiled, 24.0),  # six pairs of <(1, 1), (1, 1)>, squared
}
"""What is computed, and its value."""


def known_values() -> list[Check]:
    """Everything that is known, computed here."""
    return [_checked(name, compute, expected) for name, (compute, expected) in KNOWN.items()]


def _checked(name: str, compute: Callable[[], float], expected: float) -> Check:
    try:
        return Check(name, compute(), expected)
    except Exception as error:  # whatever a broken installation raises is what is to be told
        return Check(name, math.nan, expected, f"{type(error).__name__}: {error}".splitlines()[0])


def timings() -> dict[str, float]:
    """Seconds of typical work: an exact test of 2,000 rows by 999 resamples, and the kernel error of 2,000 rows of 10 classes."""
    from calibrant.estimators.binned.ece import ECE
    from calibrant.estimators.kernel_errors.skce import SKCE
    from calibrant.inference.exact_tests.exact_test import ExactTest

    rng = np.random.default_rng(0)
    p, classes = rng.random(2000), rng.dirichlet(np.ones(10), 2000)
    y, label = (rng.random(2000) < p) * 1, rng.integers(0, 10, 2000)
    return {
        "exact test, 2,000 rows": _seconds(lambda: ExactTest(ECE())(y, p)),
        "kernel error, 2,000 rows of 10 classes": _seconds(lambda: SKCE()(label, classes)),
    }


def _seconds(work: Callable[[], object]) -> float:
    """Of the second run, as the first may compile."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


LIBRARIES = {
    "numpy": "calibrant",
    "scipy": "calibrant",
    "array-api-compat": "calibrant",
    "narwhals": "calibrant",
    "numba": "calibrant",
    "cyclopts": "calibrant[cli]",
    "rich": "calibrant[cli]",
    "jinja2": "calibrant[cli]",
    "matplotlib": "calibrant[cli]",
    "polars": "calibrant[cli]",
    "torch": "calibrant[torch]",
    "scikit-learn": "calibrant[sklearn]",
    "distributed": "calibrant[dask]",
    "POT": "calibrant[ot]",
    "jax": "jax",
    "triton": "triton",
    "pandas": "pandas",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
}
"""Libraries that calibrant uses, and what to give ``pip install`` for each."""


@dataclass(frozen=True)
class Library:
    """A library: its version, or what brings it."""

    name: str
    version: str | None
    source: str

    @property
    def is_missed(self) -> bool:
        """Whether calibrant cannot do without it, and it is not there."""
        return self.version is None and self.source == "calibrant"


@dataclass(frozen=True)
class Aid:
    """Something that makes calibrant faster or able to do more: whether it is there, and what there is to know."""

    name: str
    is_active: bool
    detail: str


@dataclass(frozen=True)
class Diagnosis:
    """Versions, libraries, aids, values computed here against known ones, and seconds of typical work."""

    versions: dict[str, str]
    libraries: tuple[Library, ...]
    aids: tuple[Aid, ...]
    checks: tuple[Check, ...]
    seconds: dict[str, float]

    @property
    def is_well(self) -> bool:
        """Whether all that is needed is there, and all values are right."""
        return all(check.is_right for check in self.checks) and not any(x.is_missed for x in self.libraries)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "diagnosis",
            "is_well": self.is_well,
            "versions": self.versions,
            "libraries": {x.name: {"version": x.version, "install": x.source} for x in self.libraries},
            "aids": {aid.name: {"is_active": aid.is_active, "detail": aid.detail} for aid in self.aids},
            "checks": [check.to_dict() for check in self.checks],
            "seconds": self.seconds,
        }


def diagnose() -> Diagnosis:
    """Look at everything; a few seconds where torch is installed, which takes its time to import."""
    versions = {
        "calibrant": calibrant.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "processors": f"{os.cpu_count()}",
        "folder": str(os.path.dirname(calibrant.__file__)),
    }
    libraries = tuple(Library(name, version_of(name), source) for name, source in LIBRARIES.items())
    checks = tuple(known_values())
    seconds = timings() if all(check.is_right for check in checks) else {}
    return Diagnosis(versions, libraries, (_numba(), _blas(), _torch(), _triton(), _jax(), _browser()), checks, seconds)


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, without importing it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _numba() -> Aid:
    try:
        config = import_module("numba").config
        if config.DISABLE_JIT:
            return Aid("numba", False, "switched off by NUMBA_DISABLE_JIT: pair sums take ten thousand times as long")
        cache = import_module("calibrant._compiled.cpu").add_pairs.stats.cache_path
    except Exception as error:  # whatever a broken installation raises is what is to be told
        return Aid("numba", False, f"cannot be used: {error}")
    place = f"kept in {cache}" if cache and os.access(cache, os.W_OK) else _uncached(cache)
    return Aid("numba", True, f"threads: {config.NUMBA_NUM_THREADS}; compiled code is {place}")


def _uncached(cache: str | None) -> str:
    where = f"{cache} is not writable" if cache else "there is no writable folder"
    return f"not kept, as {where}: each run compiles anew; set NUMBA_CACHE_DIR"


def _blas() -> Aid:
    try:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        return Aid("BLAS", False, "NumPy does not say which")
    limits = {
        name: os.environ[name]
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        if name in os.environ
    }
    said = "".join(f"; {name}={value}" for name, value in limits.items())
    return Aid("BLAS", True, f"{blas.get('name', 'unknown')} {blas.get('version', '')}{said}".strip())


def _torch() -> Aid:
    if version_of("torch") is None:
        return Aid("torch", False, "not installed: pip install 'calibrant[torch]' for training losses and GPU arrays")
    try:
        torch = import_module("torch")
        devices = (
            [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
            if torch.cuda.is_available()
            else []
        )
        if torch.backends.mps.is_available():
            devices.append("Apple GPU")
    except Exception as error:  # a library that is installed and broken raises anything
        return Aid("torch", False, f"installed, but cannot be used: {error}")
    where = f"CUDA {torch.version.cuda}: {', '.join(devices)}" if torch.version.cuda and devices else ", ".join(devices)
    return Aid("torch", True, where or f"processor only; threads: {torch.get_num_threads()}")


def _triton() -> Aid:
    version = version_of("triton")
    return Aid("triton", version is not None, version or "not installed; comes with torch for CUDA")


def _jax() -> Aid:
    if version_of("jax") is None:
        return Aid("jax", False, "not installed: pip install jax for its arrays")
    try:
        jax = import_module("jax")
        return Aid("jax", True, ", ".join(str(device) for device in jax.devices()))
    except Exception as error:  # a library that is installed and broken raises anything
        return Aid("jax", False, f"installed, but cannot be used: {error}")


def _browser() -> Aid:
    found = find_browser()
    return Aid("browser", found is not None, found or "none found: a PDF needs Chromium, Chrome or Edge")


MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def doctor(*, format: Output = "table") -> int:
    """Say what is installed, which accelerators are active, and whether known values come out right.

    Takes a few seconds. Nothing is sent anywhere.
    """
    with display.steps("Looking around"):
        found = diagnose()
    if format == "json":
        print_json(found)
    else:
        show(found)
    return 0 if found.is_well else 1


def show(found: Diagnosis) -> None:
    """Versions, libraries, aids, the self-test, and the conclusion."""
    _part("", [(None, name, version) for name, version in found.versions.items()])
    _part("Libraries", [(*_state(library), library.version or _remedy(library)) for library in found.libraries])
    _part("Speed and more", [(aid.is_active or None, aid.name, aid.detail) for aid in found.aids])
    _part("Self-test", [(check.is_right, check.name, _compared(check)) for check in found.checks])
    _part("", [(None, name, f"{1000 * seconds:.1f} ms") for name, seconds in found.seconds.items()])
    wrong = "Something is wrong: see the lines with ✗, and please report them with --format json."
    words = "All is well." if found.is_well else wrong
    console.out.print(Text(f"\n{words}", style="green" if found.is_well else "red"))


def _state(library: Library) -> tuple[bool | None, str]:
    """Whether it is there; what is optional is not missed."""
    return (None if library.version is None and not library.is_missed else library.version is not None), library.name


def _remedy(library: Library) -> str:
    return f"not installed: pip install '{library.source}'"


def _compared(check: Check) -> str:
    if check.is_right:
        return f"{check.value:.12g}"
    return check.problem or f"{check.value!r}, and should be {check.expected!r}"


def _part(heading: str, lines: Sequence[tuple[bool | None, str, str]]) -> None:
    """Lines of a mark, which says what its colour says, a name and what there is to tell."""
    if heading:
        console.out.print(Text(f"\n{heading}", style="bold"))
    width = max((len(name) for _, name, _ in lines), default=0)
    for mark, name, text in lines:
        sign, style = MARKS[mark]
        console.out.print(Text.assemble((sign, style), " ", f"{name:<{width}}", "  ", text), soft_wrap=True)
