import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled.cuda_memory import GPUMemoryError  # noqa: E402
from calibrant._compiled.cuda_softmax import class_averages  # noqa: E402
from calibrant.estimators.simplex.dirichlet import DirichletRows, log_kernel  # noqa: E402

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def by_definition(queries, keys, labels, k):
    """The whole matrix of weights."""
    rows = DirichletRows(queries, keys, True)
    logs = log_kernel(rows, rows)
    logs = torch.where(torch.eye(len(logs), dtype=torch.bool, device=logs.device), -torch.inf, logs)
    top = logs.detach().max(dim=1, keepdim=True).values
    top = torch.where(torch.isinf(top), 0.0, top)
    weights = torch.exp(logs - top)
    total = weights.sum(dim=1, keepdim=True)
    log_sum = torch.where(total[:, 0] > 0, torch.log(torch.where(total > 0, total, 1.0))[:, 0] + top[:, 0], -torch.inf)
    w = weights / torch.where(total > 0, total, 1.0)
    v = torch.nn.functional.one_hot(labels, k).to(w.dtype)
    return log_sum, w @ v, (w * w).sum(dim=1), (w * w) @ v


def problem(rng, gpu, n, k, zeros):
    p = rng.dirichlet(np.ones(k), n)
    if zeros:
        p[:30, 0] = 0
        p[10:40, 1] = 0
        p[0] = 0
        p[0, 1] = 1  # alone in its corner
        p /= p.sum(axis=1, keepdims=True)
    labels = torch.tensor(rng.integers(0, k, n), device=gpu)
    return torch.tensor(p, device=gpu), labels, rng.integers(0, 2, n) + rng.random(n) if zeros else None


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("n", "k", "bandwidth", "zeros"),
    [(2, 2, 0.1, False), (150, 3, 0.005, False), (320, 2, 0.02, False), (140, 3, 0.1, True)],
)
def test_averages_and_gradients_are_those_of_the_whole_matrix(gpu, rng, n, k, bandwidth, zeros, dtype):
    points, labels, weights = problem(rng, gpu, n, k, zeros)
    slopes = [torch.tensor(rng.normal(size=(n, k) if i % 2 else n), device=gpu) for i in range(4)]
    found = []
    for averages in (by_definition, lambda *a: class_averages(*a, dtype)):
        x = points.clone().requires_grad_()
        rows = DirichletRows.of(x, bandwidth, weights)
        out = averages(rows.queries, rows.keys, labels, k)
        total = sum((s * torch.where(torch.isinf(o), 0.0, o)).sum() for s, o in zip(slopes, out, strict=True))
        found.append([*(o.detach().cpu() for o in out), torch.autograd.grad(total, x)[0].cpu()])
    for expected, value in zip(*found, strict=True):
        assert torch.equal(torch.isinf(expected), torch.isinf(value))
        finite = ~torch.isinf(expected)
        error = (value[finite] - expected[finite]).abs().max()
        assert float(error) <= TOLERANCE[dtype] * max(1.0, float(expected[finite].abs().max()))


def test_gradients_without_room_say_so(gpu, rng, monkeypatch):
    points, labels, _ = problem(rng, gpu, 60, 3, False)
    rows = DirichletRows.of(points.requires_grad_(), 0.1)
    total = sum(part.sum() for part in class_averages(rows.queries, rows.keys, labels, 3))

    def full(*_):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr("calibrant._compiled.cuda_softmax._slopes", full)
    with pytest.raises(GPUMemoryError, match="no memory for gradients of kernel regression of 60 rows"):
        total.backward()


def test_classes_that_do_not_occur_have_no_frequency(gpu, rng):
    points, _, _ = problem(rng, gpu, 60, 4, False)
    rows = DirichletRows.of(points, 0.1)
    labels = torch.full((60,), 2, device=gpu)
    _, mean, squares, twice = class_averages(rows.queries, rows.keys, labels, 4)
    assert mean.cpu().numpy() == pytest.approx(np.tile([0, 0, 1, 0], (60, 1)), abs=1e-6)
    assert torch.allclose(twice[:, 2], squares)
    assert mean.dtype == torch.float64
