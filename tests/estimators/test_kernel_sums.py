import numpy as np
import pytest

from calibrant import Normal
from calibrant.estimators import kernel_sums
from calibrant.estimators.kernel_problem import KernelForm, resolve_problem
from calibrant.estimators.kernel_sums import all_pairs, block_mean
from calibrant.kernels import Exponential, Gaussian


@pytest.fixture
def problem(rng):
    predictions = Normal.example(rng, 30)
    kernel, _, rows = resolve_problem(Exponential(1.0), Gaussian(1.0), None, predictions.sample(rng, 1)[0], predictions)
    return KernelForm(kernel), rows


def test_the_standard_error_by_brute_force(problem):
    """Unbiased estimates of the two Hoeffding terms, from all pairs, triples and quadruples of different rows."""
    form, rows = problem
    rows = rows[:9]
    h = form(rows, rows)
    n = len(h)
    different = [(i, j) for i in range(n) for j in range(n) if i != j]
    one = np.mean([h[i, j] * h[i, k] for i, j in different for k in range(n) if k not in (i, j)])
    none = np.mean([h[i, j] * h[k, m] for i, j in different for k, m in different if len({i, j, k, m}) == 4])
    two = np.mean([h[i, j] ** 2 for i, j in different])
    variance = (4 * (n - 2) * max(one - none, 0) + 2 * max(two - none, 0)) / (n * (n - 1))
    assert all_pairs(form, rows, unbiased=True)[1] == pytest.approx(variance**0.5, rel=1e-9)


def test_few_rows_have_no_standard_error(problem):
    form, rows = problem
    assert all_pairs(form, rows[:3], unbiased=True)[1] is None
    assert block_mean(form, rows, 30)[1] is None


def test_large_blocks_take_the_faster_paths(problem, monkeypatch):
    form, rows = problem
    slow = block_mean(form, rows, 15)
    monkeypatch.setattr(kernel_sums, "FEW", 10)
    fast = block_mean(form, rows, 15)
    assert fast[0] == pytest.approx(slow[0], rel=1e-11)
    assert fast[1] == pytest.approx(slow[1], rel=1e-11)


def test_compiled_and_tiled_means_agree(problem):
    form, rows = problem
    for unbiased in (True, False):
        fast, slow = (all_pairs(form, rows, unbiased=unbiased, few=few) for few in (10, 100))
        assert fast == pytest.approx(slow, rel=1e-11)
