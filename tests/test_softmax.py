from functools import partial

import numpy as np
import pytest
from scipy.special import logsumexp

from calibrant._array import namespace, to_numpy
from calibrant._pairwise import Pairwise
from calibrant._softmax import Softmax, softmax_of_panel

FIELDS = ["log_sum", "mean", "squares", "mean_of_squares"]


def dense(logs, v):
    """The definition, from the stored matrix."""
    log_sum = logsumexp(logs, axis=1)
    weights = np.exp(logs - np.where(np.isinf(log_sum), 0, log_sum)[:, None])
    return [log_sum, weights @ v, (weights**2).sum(axis=1), weights**2 @ v]


def entries(matrix, rows, columns):
    """Entries of a stored matrix; rows and columns are numbers."""
    xp = namespace(matrix)
    return xp.take(xp.take(matrix, rows, axis=0), columns, axis=1)


def softmax(matrix, v, size, rows=slice(0, None), diagonal=True):
    """The rows of one panel, against tiles of so many columns."""
    xp, n = namespace(matrix), matrix.shape[1]
    columns = xp.arange(n)
    cuts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    return softmax_of_panel(partial(entries, matrix), cuts, columns, v, diagonal, (rows, columns[rows]))


def assert_agrees(found, expected, rel=1e-13):
    for name, values in zip(FIELDS, expected, strict=True):
        assert to_numpy(getattr(found, name)) == pytest.approx(values, rel=rel, abs=1e-15)


def test_averages_are_those_of_the_stored_matrix_in_every_library(xp, rng):
    logs, v = rng.normal(scale=5, size=(10, 10)), rng.normal(size=(10, 3))
    logs[rng.random((10, 10)) < 0.3] = -np.inf
    logs[3] = -np.inf
    assert_agrees(softmax(xp.asarray(logs), xp.asarray(v), 4), dense(logs, v))


@pytest.mark.parametrize("size", [1, 3, 4, 10, 100])
def test_the_size_of_tiles_does_not_matter(size, rng):
    logs, v = rng.normal(scale=5, size=(10, 10)), rng.normal(size=(10, 3))
    logs[rng.random((10, 10)) < 0.6] = -np.inf
    logs[np.arange(10), np.arange(10)[::-1]] = 0.5
    assert_agrees(softmax(logs, v, size), dense(logs, v))


@pytest.mark.parametrize("size", [1, 4, 100])
def test_rows_without_weight_are_zero_and_never_nan(size, rng):
    logs, v = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    logs[2] = -np.inf
    found = softmax(logs, v, size)
    assert found.is_empty.tolist() == [False, False, True, False, False, False]
    assert found.log_sum[2] == -np.inf
    for name in FIELDS[1:]:
        assert not getattr(found, name)[2].any()


@pytest.mark.parametrize("level", [-(2.0**17), 2.0**17])
def test_only_differences_of_logarithms_matter(level, rng):
    logs, v = rng.integers(-3000, 3000, (10, 10)) / 1024, rng.normal(size=(10, 2))  # sums with the level are exact
    found, plain = softmax(logs + level, v, 4), softmax(logs, v, 4)
    assert found.log_sum == pytest.approx(plain.log_sum + level, rel=1e-15)
    for name in FIELDS[1:]:
        assert np.array_equal(getattr(found, name), getattr(plain, name))


def test_logarithms_far_below_the_largest_do_not_count():
    found = softmax(np.array([[0.0, -800.0, -1e30, 0.0]]), np.array([[1.0], [5.0], [5.0], [3.0]]), 1, slice(0, 1))
    assert [getattr(found, name).item() for name in FIELDS] == pytest.approx([np.log(2), 2.0, 0.5, 1.0], rel=1e-15)


def test_without_the_diagonal_a_row_does_not_see_itself(rng):
    logs, v = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    expected = dense(np.where(np.eye(6) == 1, -np.inf, logs), v)
    for rows in (slice(0, 3), slice(3, 6)):
        assert_agrees(softmax(logs, v, 3, rows, diagonal=False), [values[rows] for values in expected])


def test_concat_keeps_the_rows_in_order(rng):
    logs, v = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    parts = [softmax(logs, v, 4, rows) for rows in (slice(0, 4), slice(4, 6))]
    assert_agrees(Softmax.concat(parts), dense(logs, v))


@pytest.mark.parametrize("size", [2, 5, 100])
def test_gradients_are_finite_differences(size, rng):
    torch = pytest.importorskip("torch")
    logs, v = rng.normal(size=(5, 5)), rng.normal(size=(5, 2))
    logs[1, :3] = -np.inf

    def values(matrix, v):
        found = softmax(matrix, v, size)
        return tuple(getattr(found, name) for name in FIELDS)

    inputs = (torch.tensor(logs, requires_grad=True), torch.tensor(v, requires_grad=True))
    assert torch.autograd.gradcheck(values, inputs)


@pytest.mark.parametrize("size", [2, 100])
def test_gradients_of_rows_without_weight_are_zero(size, rng):
    torch = pytest.importorskip("torch")
    logs = torch.tensor(rng.normal(size=(5, 5)))
    logs[1] = -torch.inf
    logs.requires_grad_()
    found = softmax(logs, torch.tensor(rng.normal(size=(5, 2))), size)
    sum(getattr(found, name).sum() for name in FIELDS[1:]).backward()
    assert not logs.grad[1].any()
    assert bool(torch.isfinite(logs.grad).all())
    assert bool(logs.grad[0].any())


def test_gradients_of_jax_are_those_of_torch(rng):
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    jax.config.update("jax_enable_x64", True)
    logs, v = rng.normal(size=(5, 5)), rng.normal(size=(5, 2))

    def total(matrix, v):
        found = softmax(matrix, v, 2)
        return sum((getattr(found, name) ** 2).sum() for name in FIELDS)

    recorded = torch.tensor(logs, requires_grad=True)
    total(recorded, torch.tensor(v)).backward()
    traced = jax.jit(jax.grad(total))(jax.numpy.asarray(logs), jax.numpy.asarray(v))
    assert np.asarray(traced) == pytest.approx(recorded.grad.numpy(), rel=1e-12)


def test_the_backward_pass_keeps_no_tiles():
    """With 256 rows the matrix has 65,536 numbers; what is alive at once is a few tiles of 32 x 32."""
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 1, 256, dtype=torch.float64)[:, None].requires_grad_()
    with _peak(torch) as peak:
        found = Pairwise(lambda a, b: -((a - b.T) ** 2), x, 32).logmatmul(x.detach(), diagonal=False)
        sum(getattr(found, name).sum() for name in FIELDS).backward()
    assert peak.numbers < 16_384


def _peak(torch):
    """Counts the numbers in all tensors that are alive at once, after each operation of torch."""
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Peak(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.numbers, self.alive = 0, {}

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            result = operation(*args, **(kwargs or {}))
            for storage in [x.untyped_storage() for x in tree_leaves(result) if isinstance(x, torch.Tensor)]:
                self.alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes() // 8
            self.alive = {key: kept for key, kept in self.alive.items() if not kept[0].expired()}
            self.numbers = max(self.numbers, sum(size for _, size in self.alive.values()))
            return result

    return Peak()


def test_everything_stays_on_the_device_of_the_rows():
    torch = pytest.importorskip("torch")
    x = torch.zeros((6, 1), device="meta", dtype=torch.float64)
    found = Pairwise(lambda a, b: -((a - b.T) ** 2), x, 4).logmatmul(x, diagonal=False)
    assert {getattr(found, name).device.type for name in FIELDS} == {"meta"}
