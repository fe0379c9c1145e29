"""Loops that are not compiled, as with ``NUMBA_DISABLE_JIT=1``, give the same digits; so tools that look at lines see theirs."""

import math
import os
import subprocess
import sys

import pytest
from numba import njit

from calibrant._compiled.compiling import fma, plain_fma

SMALL_LOOPS = """
import hashlib

import numpy as np

from calibrant._compiled.cpu import feature_cross, normal_moments, pair_sums, running_sums
from calibrant._compiled.fourier import cosines_and_sines
from calibrant._compiled.softmax_sums import class_sums, picked_sums, value_sums
from calibrant._compiled.transport import transports

rng = np.random.default_rng(7)
a, b, labels = rng.normal(size=(20, 3)), rng.normal(size=(300, 3)), rng.choice(4, 300, p=[0.02, 0.06, 0.02, 0.9])
x, v, mu = np.sort(rng.normal(size=20)), rng.normal(size=(20, 2)), rng.normal(size=(3, 3))
cost, supply, demand = rng.random((2, 2, 7, 5)).round(1), rng.dirichlet(np.ones(7), 2), rng.dirichlet(np.ones(5), 2)
alone = class_sums(a[:2], b[:1], labels[:1], 4, np.array([0, -1]))
found = {
    "cross": feature_cross((a[:2], a[:2]), (b[:129], b[:129]), 0.7, False),
    "normals": normal_moments(mu, mu, np.ones(3), mu**2, 0.7, True, 1.3),
    "class sums": class_sums(a, b, labels, 4, np.arange(20)),
    "class sums of one key": alone,
    "value sums": value_sums(a, b, b, b[:, 0] ** 2, np.arange(20)),
    "value sums of one key": value_sums(a[:1], b[:1], b[:1], b[:1, 0], np.array([0])),
    "picked sums": picked_sums(a, np.column_stack([b, np.full(300, -50.0)]), b, labels[:20] % 3),
    "running sums of a polynomial": running_sums(x, v, np.ones(3)),
    "pair sums": pair_sums(x, v, np.ones(3)),
    "cosines and sines": [cosines_and_sines(a, v[:, 0], v[:, 1])],
    "transports": transports(cost, supply, demand),
    "transports that leave something": transports(cost, supply, 0.9 * demand),
    "transports at any cost": transports(cost + np.inf, supply, demand)[:1],
}
for name, arrays in found.items():
    parts = b"".join(np.ascontiguousarray(part, dtype=float).tobytes() for part in arrays)
    print(name, hashlib.sha256(parts).hexdigest())
"""


def test_loops_have_the_same_digits_without_a_compiler():
    command = [sys.executable, "-W", "error", "-c", SMALL_LOOPS]
    runs = [
        subprocess.run(
            command, env=os.environ | {"NUMBA_DISABLE_JIT": off}, capture_output=True, text=True, timeout=600
        )
        for off in "01"
    ]
    compiled, plain = (run.stdout.splitlines() or [run.stderr] for run in runs)
    assert len(compiled) == 13
    assert plain == compiled


def numbers(rng):
    """Triples that cancel, that overflow, that vanish, and those that are no numbers."""
    x, y = rng.normal(size=(2, 300)) * 10.0 ** rng.integers(-6, 7, (2, 300))
    near = -x * y * (1 + rng.integers(-2, 3, 300) * 2.0**-52)
    edges = [0.0, -0.0, 1.0, 1 + 2.0**-52, -1e-320, 1e-170, 1e170, -1.7e308, math.inf, -math.inf, math.nan]
    corners = [(a, b, c) for a in edges for b in edges for c in edges]
    return [*zip(x.tolist(), y.tolist(), near.tolist(), strict=True), *corners]


def test_a_multiply_add_is_rounded_once(rng):
    compiled = njit(lambda x, y, z: fma(x, y, z))
    for x, y, z in numbers(rng):
        exact, plain = compiled(x, y, z), plain_fma(x, y, z)
        assert repr(plain) == repr(exact), (x, y, z)
    assert plain_fma(1 + 2.0**-30, 1 + 2.0**-30, -(1 + 2.0**-29)) == pytest.approx(2.0**-60, rel=0)
