"""What is installed, what makes it fast, and whether it works: the facts behind ``calibrant doctor``."""

import os
import platform
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import numpy as np

import calibrant
from calibrant.cli.self_test import Check, known_values, timings
from calibrant.reports.pdf import find_browser
from calibrant.results import SCHEMA

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
        config = vars(import_module("numba").config)
        cache = import_module("calibrant._fused.strips").triangle.stats.cache_path
    except Exception as error:  # whatever a broken installation raises is what is to be told
        return Aid("numba", False, f"cannot be used: {error}")
    if config["DISABLE_JIT"]:
        return Aid("numba", False, "switched off by NUMBA_DISABLE_JIT: pair sums take hundreds of times as long")
    place = f"kept in {cache}" if cache and os.access(cache, os.W_OK) else _uncached(cache)
    return Aid("numba", True, f"threads: {config['NUMBA_NUM_THREADS']}; compiled code is {place}")


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
