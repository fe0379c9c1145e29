"""Nothing is imported before it is needed."""

import subprocess
import sys

import pytest

HEAVY = [
    "scipy.stats",
    "numba",
    "torch",
    "triton",
    "jax",
    "matplotlib",
    "polars",
    "pandas",
    "narwhals",
    "rich",
    "jinja2",
    "sklearn",
    "lightgbm",
    "catboost",
    "distributed",
]

USES = {
    "importing calibrant": "import calibrant",
    "using NumPy": (
        "import numpy as np; from calibrant import *; "
        "ExactTest(ECE(), n_resamples=99)(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.6])); "
        "evaluate([0, 1, 1], [0.2, 0.7, 0.6], n_resamples=99)"
    ),
}


@pytest.mark.parametrize("use", USES)
def test_heavy_libraries_stay_out(use):
    code = f"{USES[use]}; import sys; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []


def test_importing_calibrant_alone_does_not_even_import_numpy():
    code = "import calibrant, sys; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
