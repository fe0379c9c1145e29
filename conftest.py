"""What is left out where torch, scikit-learn or Dask is not installed: modules and guides whose examples need it."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None
HAS_SKLEARN = find_spec("sklearn") is not None
HAS_TRITON = find_spec("triton") is not None
HAS_DASK = find_spec("distributed") is not None
NEED_SKLEARN = [
    "src/calibrant/sklearn/*",
    "src/calibrant/recalibration/stacking/boosted.py",
    "src/calibrant/recalibration/stacking/learned.py",
    "docs/guide/recalibration.md",
    "docs/users/deep-learning.md",
    "README.md",
]

NEED_TORCH = [
    "src/calibrant/_compiled/cuda*.py",
    "src/calibrant/engines/devices.py",
    "src/calibrant/losses/*",
    "studies/widmann/regressions.py",
    "studies/widmann/networks.py",
    "docs/guide/gpu.md",
    "docs/guide/training.md",
    "docs/users/deep-learning.md",
]

NEED_TRITON = [
    f"src/calibrant/_compiled/cuda_{name}.py" for name in ("launch", "moments", "products", "resamples", "softmax")
]

collect_ignore_glob = ["docs/conf.py", "docs/_extensions/*"]  # which Sphinx imports, and which have no examples
collect_ignore_glob += ["tests/hostile/fuzz.py"]  # a program that needs atheris
collect_ignore_glob += [] if HAS_TORCH else NEED_TORCH
collect_ignore_glob += [] if HAS_SKLEARN else NEED_SKLEARN
collect_ignore_glob += [] if HAS_DASK else ["src/calibrant/engines/cluster.py"]
collect_ignore_glob += [] if HAS_TORCH and HAS_TRITON else NEED_TRITON


def pytest_report_header() -> str:
    """Say what is left out."""
    missing = {"calibrant.sklearn": ("scikit-learn", HAS_SKLEARN), "engines of Dask": ("Dask", HAS_DASK)}
    losses = "losses: tested" if HAS_TORCH else "losses: left out, as torch is not installed"
    others = [f"{what}: left out, as {name} is not installed" for what, (name, has) in missing.items() if not has]
    return "; ".join([losses, *others])


@pytest.fixture(autouse=True)
def figures_are_closed() -> Iterator[None]:
    """Examples and tests leave no pictures open for those that follow."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
