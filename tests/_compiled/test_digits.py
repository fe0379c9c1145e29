"""Compiled sums have the same digits whatever compiled them: no cache, a cache, another processor, other threads."""

import hashlib
import os
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from calibrant import SKCE
from calibrant._compiled import cpu, softmax_sums
from calibrant.engines import connect
from calibrant.kernels import Exponential, Gaussian

EVERY_LOOP = """
import hashlib

import numpy as np

from calibrant import SKCE
from calibrant._compiled.cpu import feature_cross, normal_cross, normal_moments, pair_sums, running_sums
from calibrant._compiled.softmax_sums import class_sums, picked_sums, value_sums
from calibrant.kernels import Exponential, Gaussian

rng = np.random.default_rng(7)
p, y = rng.dirichlet(np.ones(5), 6000), rng.integers(0, 5, 6000)
a, b, labels, own = rng.normal(size=(300, 3)), rng.normal(size=(300, 3)), y[:300], np.arange(300)
x, v = np.sort(rng.normal(size=700)), rng.normal(size=(700, 3))
normals = [a, b[:, :1], np.abs(b[:, 1]) + 0.5, a[:, :1]]
exponential, gaussian = SKCE(Exponential(0.5))(y, p), SKCE(Gaussian(0.5))(y, p)
found = {
    "SKCE": (exponential.value, exponential.standard_error),
    "SKCE, Gaussian": (gaussian.value, gaussian.standard_error),
    "cross": feature_cross((a, b), (a[:70], b[:70]), 0.7, False),
    "normals": normal_moments(*normals, 0.7, True, 1.3),
    "cross of normals": normal_cross(normals, [part[:90] for part in normals], 0.7, False, 1.3),
    "class sums": class_sums(a, b, labels, 5, own),
    "value sums": value_sums(a, b, b, b[:, 0], own),
    "picked sums": picked_sums(a, np.column_stack([b, np.full(300, -50.0)]), p[:300], labels),
    "running sums": running_sums(x, v, np.ones(1)),
    "running sums of a polynomial": running_sums(x, v, np.ones(3)),
    "pair sums": pair_sums(x, v, np.ones(3)),
}
for name, arrays in found.items():
    parts = b"".join(np.ascontiguousarray(part, dtype=float).tobytes() for part in arrays)
    print(name, hashlib.sha256(parts).hexdigest())
"""

OTHER_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""Without multiply-adds, and with vectors of two numbers."""


def process(cache, **settings):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1"} | settings
    return subprocess.Popen([sys.executable, "-c", EVERY_LOOP], env=environment, stdout=subprocess.PIPE, text=True)


def digits(running):
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    return dict(line.rsplit(" ", 1) for line in said.splitlines())


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The digits of the process that compiles, of one that loads what it compiled, and of another processor."""
    cache = tmp_path_factory.mktemp("cache")
    running = process(cache), process(tmp_path_factory.mktemp("other"), **OTHER_PROCESSOR)
    fresh, other = map(digits, running)
    return fresh, digits(process(cache, NUMBA_NUM_THREADS="2")), other


def test_code_from_the_cache_has_the_digits_of_the_process_that_compiled_it_on_any_number_of_threads(found):
    fresh, loaded, _ = found
    assert len(fresh) == 11
    assert loaded == fresh


def test_another_processor_has_the_same_digits(found):
    fresh, _, other = found
    assert other == fresh


@pytest.mark.parametrize("place", [None, "threads:2", "processes:2"])
@pytest.mark.parametrize(("name", "kernel"), [("SKCE", Exponential(0.5)), ("SKCE, Gaussian", Gaussian(0.5))])
def test_engines_have_them_too(found, place, name, kernel):
    rng = np.random.default_rng(7)
    p, y = rng.dirichlet(np.ones(5), 6000), rng.integers(0, 5, 6000)
    with nullcontext() if place is None else connect(place) as engine:
        there = SKCE(kernel)(y, p, engine=engine)
    parts = np.array([there.value]).tobytes() + np.array([there.standard_error]).tobytes()
    assert hashlib.sha256(parts).hexdigest() == found[0][name]


@pytest.mark.parametrize("module", [cpu, softmax_sums])
def test_no_compiler_may_reorder_sums_or_fuse_products(module):
    loops = [x for x in vars(module).values() if isinstance(x, Dispatcher)]
    assert len(loops) > 4
    assert not any(loop.targetoptions.get("fastmath") for loop in loops)


@pytest.mark.parametrize("module", [cpu, softmax_sums])
def test_only_loops_that_take_memory_count_who_holds_it(module):
    loops = {
        name for name, x in vars(module).items() if isinstance(x, Dispatcher) and x.targetoptions.get("_nrt", True)
    }
    assert loops == ({"_add_earlier", "_add_pairs"} if module is cpu else set())
