"""Every fast path against plain tiles."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from calibrant import SKCE, Categorical, Ensemble, MultivariateNormal, Normal
from calibrant._compiled import choice
from calibrant._pairwise import Pairwise, tiled_corner
from calibrant._validate import InputError
from calibrant.engines import precision
from calibrant.estimators.kernel_errors import kernel_sums as accelerated
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem
from calibrant.estimators.kernel_errors.kernel_sums import (
    accelerated_block_sums,
    accelerated_matmul,
    accelerated_moments,
    compiled_corner,
    moments_in_large_tiles,
)
from calibrant.kernels import Cityblock, Energy, Exponential, Gaussian, LabelMatrix, Matern
from calibrant.residuals import Route

N = 2300

ON_LINE = [Exponential(0.3), Matern(1.5, 0.3), Matern(2.5, 0.3), 2.5 * Exponential(0.3)]
IN_SPACE = [Exponential(0.3), Gaussian(0.3)]


def assert_same(kernel, on_targets, y, predictions, weights=None, route=None):
    resolved, _, rows = resolve_problem(kernel, on_targets, route, y, predictions, weights)
    fast = accelerated_moments(resolved, rows)
    slow = Pairwise(KernelForm(resolved), rows).moments()
    assert fast is not NotImplemented
    size = np.sqrt(float(slow.sum_of_squares) / len(rows))
    assert np.asarray(fast.row_sums) == pytest.approx(np.asarray(slow.row_sums), rel=1e-10, abs=1e-11 * size)
    assert float(fast.sum_of_squares) == pytest.approx(float(slow.sum_of_squares), rel=1e-11)
    assert np.asarray(fast.diagonal) == pytest.approx(np.asarray(slow.diagonal), rel=1e-11, abs=1e-14)


def classes(rng, k, n=N):
    p = rng.dirichlet(np.ones(k), n)
    p[: n // 10] = p[n // 10 : 2 * (n // 10)]  # ties
    return rng.integers(0, k, n), Categorical(p)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ON_LINE, ids=repr)
def test_two_classes_are_sorted(kernel, weighted, rng):
    y, predictions = classes(rng, 2)
    assert_same(kernel, None, y, predictions, rng.random(N) if weighted else None)


def test_sorted_with_several_features(rng):
    """Two classes seen through a matrix: two features at points on a line."""
    y, predictions = classes(rng, 2)
    assert_same(Exponential(0.3), LabelMatrix(((1.0, 0.4), (0.4, 2.0))), y, predictions)


def test_sorted_in_every_library(xp, rng):
    y, predictions = classes(rng, 2)
    other = Categorical(xp.asarray(predictions.probs))
    assert_same(Exponential(0.3), None, xp.asarray(y), other)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, 10, 40])
@pytest.mark.parametrize("kernel", IN_SPACE, ids=repr)
def test_many_classes_are_compiled(kernel, k, weighted, rng):
    y, predictions = classes(rng, k)
    assert_same(kernel, None, y, predictions, rng.random(N) if weighted else None)


@pytest.mark.parametrize("kernel", IN_SPACE, ids=repr)
def test_normals_are_compiled(kernel, rng):
    predictions = Normal.example(rng, N)
    assert_same(kernel, Gaussian(0.7), predictions.sample(rng, 1)[0], predictions)


@pytest.mark.parametrize("d", [2, 5])
def test_normals_in_several_dimensions_with_one_spread_are_compiled(d, rng):
    loc, scale = rng.normal(size=(N, d)), rng.uniform(0.5, 2, N)
    predictions = MultivariateNormal(loc, scale=scale)
    y = predictions.sample(rng, 1)[0]
    assert_same(Exponential(0.3), Gaussian(0.7), y, predictions)
    several = MultivariateNormal(loc, scale=rng.uniform(0.5, 2, (N, d)))
    resolved, _, rows = resolve_problem(Exponential(0.3), Gaussian(0.7), None, y, several)
    assert accelerated_moments(resolved, rows) is NotImplemented


def test_spectral_features_are_compiled(rng):
    predictions = Normal.example(rng, N)
    y = predictions.sample(rng, 1)[0]
    assert_same(Exponential(0.3), Gaussian(0.7), y, predictions, rng.random(N), Route.SPECTRAL)


@pytest.mark.parametrize(
    ("kernel", "on_targets"),
    [
        (Exponential(0.3, power=0.5), None),
        (Exponential(0.3, Cityblock()), None),
        (Gaussian(0.3) + Exponential(0.3), None),
        (Matern(1.5, 0.3), None),
        (Energy(), None),
    ],
)
def test_others_take_tiles(kernel, on_targets, rng):
    y, predictions = classes(rng, 3)
    resolved, _, rows = resolve_problem(kernel, on_targets, None, y, predictions)
    assert accelerated_moments(resolved, rows) is NotImplemented


def test_normals_with_another_kernel_on_targets_take_tiles(rng):
    predictions = Normal.example(rng, N)
    y = predictions.sample(rng, 1)[0]
    for kernel, target, weights in [
        (Exponential(0.3), Energy(), None),
        (Matern(1.5, 0.3), Gaussian(1.0), None),
        (Exponential(0.3), Gaussian(1.0), np.ones(N)),
    ]:
        resolved, _, rows = resolve_problem(kernel, target, None, y, predictions, weights)
        assert accelerated_moments(resolved, rows) is NotImplemented


def test_other_libraries_take_tiles(rng):
    torch = pytest.importorskip("torch")
    y, predictions = classes(rng, 3)
    resolved, _, rows = resolve_problem(
        Exponential(0.3), None, None, torch.asarray(y), Categorical(torch.asarray(predictions.probs))
    )
    assert accelerated_moments(resolved, rows) is NotImplemented


@pytest.mark.parametrize("k", [2, 3])
def test_the_estimate_does_not_change_where_the_path_does(k, rng, monkeypatch):
    y, predictions = classes(rng, k, choice.MAX_PLAIN_ROWS + 1)
    fast = SKCE(Exponential(0.3))(y, predictions)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10**9)
    slow = SKCE(Exponential(0.3))(y, predictions)
    assert fast.value == pytest.approx(slow.value, rel=1e-10)
    assert fast.standard_error == pytest.approx(slow.standard_error, rel=1e-10)


def test_gradients_flow_through_sorting(rng):
    torch = pytest.importorskip("torch")
    y, predictions = classes(rng, 2, choice.MAX_PLAIN_ROWS + 1)
    p = torch.tensor(predictions.probability(1), requires_grad=True)
    SKCE(Exponential(0.3))(y, p).value.backward()
    host = predictions.probability(1).copy()
    for i in (choice.MAX_PLAIN_ROWS, choice.MAX_PLAIN_ROWS // 2):
        values = []
        for step in (1e-6, -1e-6):
            host[i] += step
            values.append(SKCE(Exponential(0.3))(y, host).value)
            host[i] -= step
        assert float(p.grad[i]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-10)


@pytest.mark.parametrize("kernel", [Exponential(0.4), Gaussian(0.4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_tensors_on_a_gpu_have_the_moments_of_tiles(rng, gpu, kernel, weighted):
    torch = pytest.importorskip("torch")
    p, y = torch.tensor(rng.dirichlet(np.ones(3), 150), device=gpu), torch.tensor(rng.integers(0, 3, 150), device=gpu)
    w = rng.uniform(size=150) if weighted else None
    _, _, rows = resolve_problem(kernel, None, None, y, Categorical(p), w)
    moments, tiles = accelerated_moments(kernel, rows), Pairwise(KernelForm(kernel), rows).moments()
    assert torch.allclose(moments.row_sums, tiles.row_sums, atol=1e-4)
    assert float(moments.sum_of_squares) == pytest.approx(float(tiles.sum_of_squares), rel=1e-5)
    assert torch.allclose(moments.diagonal, tiles.diagonal)
    sums = accelerated_block_sums(kernel, rows, 20)
    if weighted:
        assert sums is NotImplemented
    else:
        assert torch.allclose(sums, Pairwise(KernelForm(kernel), rows).block_sums(20), atol=1e-4)


@pytest.mark.parametrize("d", [1, 2])
def test_normals_on_a_gpu_have_the_moments_of_tiles(rng, gpu, d):
    torch = pytest.importorskip("torch")
    mu, s = torch.tensor(rng.normal(size=(150, d)), device=gpu), torch.tensor(rng.uniform(0.5, 2, 150), device=gpu)
    y = mu + s[:, None] * torch.tensor(rng.normal(size=(150, d)), device=gpu)
    predictions = Normal(mu[:, 0], s) if d == 1 else MultivariateNormal(mu, scale=s[:, None].repeat(1, d))
    kernel = Exponential(0.7)
    _, _, rows = resolve_problem(kernel, Gaussian(1.3), None, y[:, 0] if d == 1 else y, predictions)
    moments, tiles = accelerated_moments(kernel, rows), Pairwise(KernelForm(kernel), rows).moments()
    assert torch.allclose(moments.row_sums, tiles.row_sums, atol=1e-4)
    assert torch.allclose(moments.diagonal, tiles.diagonal)


def on_device(rng, gpu, family, weighted):
    """Rows of a problem on a GPU, 150 of them, and the kernel."""
    torch = pytest.importorskip("torch")
    tensor = partial(torch.tensor, device=gpu)
    w = rng.uniform(size=150) if weighted else None
    if family == "classes":
        y, predictions = classes(rng, 3, 150)
        return Exponential(0.4), resolve_problem(
            Exponential(0.4), None, None, tensor(y), Categorical(tensor(predictions.probs)), w
        )[2]
    normal = Normal(tensor(rng.normal(size=150)), tensor(rng.uniform(0.5, 2, 150)))
    y = tensor(rng.normal(size=150))
    return Exponential(0.7), resolve_problem(Exponential(0.7), Gaussian(1.3), None, y, normal, w)[2]


@pytest.mark.parametrize(("family", "weighted"), [("classes", False), ("classes", True), ("normals", False)])
def test_panels_on_a_gpu_are_compiled_and_have_the_sums_of_tiles(rng, gpu, monkeypatch, family, weighted):
    kernel, rows = on_device(rng, gpu, family, weighted)
    right = [tiled_corner(KernelForm(kernel), 64, rows[:40], other) for other in (rows[40:], None)]
    monkeypatch.setattr(accelerated, "tiled_corner", None)  # compiled code alone
    for expected, other in zip(right, (rows[40:], None), strict=True):
        found = compiled_corner(KernelForm(kernel), 64, rows[:40], other)
        for name in ("along", "down", "squares", "diagonal"):
            mine, theirs = getattr(found, name), getattr(expected, name)
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert np.asarray(mine.cpu()) == pytest.approx(np.asarray(theirs.cpu()), rel=1e-4, abs=1e-4)


def test_panels_that_nothing_is_compiled_for_take_tiles_on_a_gpu(rng, gpu):
    kernel, rows = on_device(rng, gpu, "normals", True)
    for other in (rows[40:], None):
        found, right = (
            compiled_corner(KernelForm(kernel), 64, rows[:40], other),
            tiled_corner(KernelForm(kernel), 64, rows[:40], other),
        )
        assert np.asarray(found.along.cpu()) == pytest.approx(np.asarray(right.along.cpu()), rel=1e-12)


@dataclass(frozen=True)
class SmallForm(KernelForm):
    """As on a GPU with little memory."""

    most: int = 100

    def __call__(self, a, b):
        if len(a) * len(b) > self.most**2:
            raise pytest.importorskip("torch").cuda.OutOfMemoryError
        return super().__call__(a, b)


def test_tiles_that_a_gpu_has_no_memory_for_are_halved(rng, gpu):
    kernel, rows = on_device(rng, gpu, "normals", True)
    right = tiled_corner(KernelForm(kernel), 64, rows, None)
    with pytest.warns(RuntimeWarning, match="no memory for tiles of") as said:
        found = compiled_corner(SmallForm(kernel), 64, rows, None)
    assert [str(one.message).split(": ")[1] for one in said] == ["256 now", "128 now", "64 now"]
    assert np.asarray(found.along.cpu()) == pytest.approx(np.asarray(right.along.cpu()), rel=1e-12)
    with (
        pytest.warns(RuntimeWarning, match="no memory for tiles of"),
        pytest.raises(InputError, match="no memory for tiles of pairs of 120"),
    ):
        compiled_corner(SmallForm(kernel, 3), 64, rows[:120], None)


@pytest.mark.parametrize("triton", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_with_the_matrix_on_a_gpu(rng, gpu, monkeypatch, weighted, triton):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("calibrant._compiled.cuda.has_triton", lambda: triton)
    kernel, rows = on_device(rng, gpu, "classes", weighted)
    v = torch.tensor(rng.normal(size=(150, 5)), device=gpu)
    right = KernelForm(kernel)(rows, rows) @ v
    for numbers, name, tolerance in (
        (1 << 26, "float32", 1e-4),
        (2 * 150 * 3, "float64", 1e-11),
    ):  # at once, and by columns
        monkeypatch.setattr(accelerated, "MAX_NUMBERS", numbers)
        with precision(name):
            found = accelerated_matmul(kernel, rows, v)
        assert found.shape == (150, 5)
        assert float((found - right).abs().max()) < tolerance
    assert accelerated_matmul(Matern(1.5, 0.4), rows, v) is NotImplemented
    assert accelerated_matmul(kernel, on_device(rng, gpu, "normals", False)[1], v) is NotImplemented


def test_gradients_on_a_gpu_go_through_large_tiles(rng, gpu, monkeypatch):
    torch = pytest.importorskip("torch")
    tiles = []

    def form(a, b):
        tiles.append((len(a), len(b)))
        return KernelForm(Exponential(0.4))(a, b)

    def moments(large):
        p = torch.tensor(rows, device=gpu, requires_grad=True)
        labels = torch.zeros(40, dtype=torch.long, device=gpu)
        *_, problem = resolve_problem(Exponential(0.4), None, None, labels, Categorical(p))
        found = moments_in_large_tiles(form, 5, problem) if large else Pairwise(form, problem, 5).moments()
        (found.total + found.sum_of_squares + found.diagonal.sum()).backward()
        return found, p.grad

    rows = rng.dirichlet(np.ones(3), 40)
    (large, slope), largest = moments(True), max(tiles)
    small, expected = moments(False)
    assert largest == (40, 40)
    assert torch.allclose(large.row_sums, small.row_sums, rtol=1e-12)
    assert torch.allclose(slope, expected, rtol=1e-11, atol=1e-14)


def test_gradients_are_left_to_tiles(rng, gpu):
    torch = pytest.importorskip("torch")
    p = torch.tensor(rng.dirichlet(np.ones(3), 20), device=gpu, requires_grad=True)
    _, _, rows = resolve_problem(
        Exponential(0.4), None, None, torch.zeros(20, dtype=torch.long, device=gpu), Categorical(p)
    )
    assert accelerated_moments(Exponential(0.4), rows) is NotImplemented
    assert accelerated_block_sums(Exponential(0.4), rows, 2) is NotImplemented


@pytest.mark.parametrize("family", ["classes", "normals", "blocks"])
def test_the_result_says_where_double_precision_was_not_kept_on_a_gpu(gpu, rng, monkeypatch, family):
    import torch

    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10)
    p, estimator = rng.dirichlet(np.ones(3), 80), SKCE(Exponential(0.5), block=4 if family == "blocks" else None)
    y = rng.integers(0, 3, 80)
    if family == "normals":
        estimator, y = SKCE(Exponential(0.5), Gaussian(1.0)), rng.normal(size=80)

    def result(dtype):
        there = torch.tensor(p, device=gpu, dtype=dtype)
        predictions = Normal(there[:, 0], there[:, 1] + 0.5) if family == "normals" else there
        return estimator(torch.tensor(y, device=gpu), predictions)

    here = estimator(y, Normal(p[:, 0], p[:, 1] + 0.5) if family == "normals" else p).value
    single = result(torch.float64)
    assert any("computed in single precision on the GPU" in note for note in single.notes)
    assert single.value != pytest.approx(here, rel=1e-12, abs=0)
    with precision("float64"):
        double = result(torch.float64)
    assert double.notes == ()
    assert double.value == pytest.approx(here, rel=1e-11)


@pytest.mark.parametrize("name", ["float32", "tf32x3", "float64"])
def test_an_offset_changes_nothing_on_a_gpu(gpu, rng, monkeypatch, name):
    """Normals, members by frequencies, and what nothing is compiled for."""
    import torch

    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10)
    mu = np.round(rng.normal(size=80) * 2**16) / 2**16
    members = np.round(rng.normal(mu[:, None], 1, (80, 20)) * 2**16) / 2**16
    for kernel in (Exponential(1.0), Gaussian(1.0), Matern(1.5, 1.0)):
        for family in (lambda o: Normal(mu + o, np.ones(80)), lambda o: Ensemble(members + o)):
            here = SKCE(kernel, Gaussian(2.0))(members[:, 0], family(0.0)).value
            there = family(2.0**30)
            fields = [torch.tensor(x, device=gpu) for x in there.parameters]
            with precision(name):
                targets = torch.tensor(members[:, 0] + 2.0**30, device=gpu)
                found = SKCE(kernel, Gaussian(2.0))(targets, type(there)(*fields)).value
            assert found == pytest.approx(here, rel=1e-9 if name == "float64" else 1e-3 if name == "tf32x3" else 1e-4)
