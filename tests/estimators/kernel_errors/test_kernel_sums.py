import numpy as np
import pytest

from calibrant import SKCE, Categorical, Normal
from calibrant._compiled import choice
from calibrant._validate import InputError
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem
from calibrant.estimators.kernel_errors.kernel_sums import all_pairs, block_mean, block_sums
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
    assert all_pairs(form, rows, unbiased=True)[1].standard_error == pytest.approx(variance**0.5, rel=1e-9)


def test_few_rows_have_no_standard_error(problem):
    form, rows = problem
    assert all_pairs(form, rows[:3], unbiased=True)[1] is None
    assert block_mean(form, rows, 30)[1] is None


def test_large_blocks_take_the_faster_paths(problem, monkeypatch):
    form, rows = problem
    slow = block_mean(form, rows, 15)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10)
    fast = block_mean(form, rows, 15)
    assert fast[0] == pytest.approx(slow[0], rel=1e-11)
    assert fast[1] == pytest.approx(slow[1], rel=1e-11)


def test_compiled_and_tiled_means_agree(problem):
    form, rows = problem
    for unbiased in (True, False):
        fast, slow = (all_pairs(form, rows, unbiased=unbiased, few=few) for few in (10, 100))
        assert fast[0] == pytest.approx(slow[0], rel=1e-11)
        assert fast[1].standard_error == pytest.approx(slow[1].standard_error, rel=1e-11)


@pytest.mark.parametrize("size", [2, 7, 30, 64, 100, 250])
@pytest.mark.parametrize("few", [20, 2000], ids=["by the best path", "in tiles"])
@pytest.mark.parametrize("kind", ["classes", "normals", "a line"])
def test_blocks_by_an_engine_have_the_same_digits(size, few, kind, rng, travelling, monkeypatch):
    """Whether they share a tile, have one of their own, or are compiled; rows that fill no block are left out by both."""
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", few)
    if kind == "normals":
        predictions = Normal.example(rng, 1030)
    else:
        predictions = Categorical(rng.dirichlet(np.ones(4 if kind == "classes" else 2), 1030))
    y = predictions.sample(rng, 1)[0]
    kernel, _, rows = resolve_problem(Exponential(0.5), None, None, y, predictions)
    alone = block_sums(KernelForm(kernel), rows, size)
    there = block_sums(KernelForm(kernel), rows, size, travelling)
    assert np.array_equal(alone, there)
    assert len(there) == 1030 // size
    assert 4 <= len(travelling.sizes) <= 32


def test_tasks_of_blocks_carry_their_own_rows_alone(rng, travelling):
    predictions = Categorical(rng.dirichlet(np.ones(10), 10_000))
    y = predictions.sample(rng, 1)[0].astype(np.int64)
    there, alone = (SKCE(Exponential(0.5), block=20)(y, predictions, engine=e) for e in (travelling, None))
    assert (there.value, there.standard_error, there.notes) == (alone.value, alone.standard_error, alone.notes)
    assert 20 <= len(travelling.sizes) <= 32
    assert max(travelling.sizes) < 10_000 * (10 + 10) * 8 / 20


def test_engines_that_show_progress_leave_pairs_to_threads(problem, travelling):
    form, rows = problem
    travelling.is_here = True
    assert all_pairs(form, rows, unbiased=True, few=10, engine=travelling) == all_pairs(
        form, rows, unbiased=True, few=10
    )
    block_sums(form, rows, 5, travelling)
    assert travelling.maps == 0


@pytest.mark.parametrize("n", [100, 2100])
@pytest.mark.parametrize("block", [None, 20])
def test_gradients_are_refused_by_every_engine(travelling, rng, n, block):
    """A worker would give back a value through which nothing leads to the predictions."""
    torch = pytest.importorskip("torch")
    p = torch.tensor(rng.dirichlet(np.ones(3), n), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, n))
    with pytest.raises(InputError, match="gradients are not recorded by engines: leave the engine out"):
        SKCE(Exponential(0.4), block=block)(y, p, engine=travelling)
    assert travelling.maps == 0
    SKCE(Exponential(0.4), block=block)(y, p).value.backward()
    assert p.grad.abs().max() > 0


def test_what_jax_traces_is_refused_by_every_engine(travelling, rng):
    jax = pytest.importorskip("jax")
    p, y = jax.numpy.asarray(rng.dirichlet(np.ones(3), 50)), rng.integers(0, 3, 50)
    with pytest.raises(InputError, match="gradients are not recorded by engines"):
        jax.grad(lambda q: SKCE(Exponential(0.4))(y, q, engine=travelling).value)(p)
