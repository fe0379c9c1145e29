import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrant._compiled import cpu, cuda  # noqa: E402
from calibrant._compiled.cuda_memory import GPUMemoryError  # noqa: E402
from calibrant.engines import precision  # noqa: E402


@pytest.mark.parametrize(
    ("name", "least", "most"), [("float32", 1e-12, 1e-5), ("tf32x3", 1e-12, 1e-4), ("float64", 0.0, 1e-12)]
)
def test_the_precision_holds_inside_the_block(gpu, rng, name, least, most):
    x, r = rng.normal(size=(150, 4)), rng.normal(size=(150, 2))
    expected = cpu.feature_moments(x, r, 1.0, False)[0]
    with precision(name):
        rows, _ = cuda.feature_moments(torch.tensor(x, device=gpu), torch.tensor(r, device=gpu), 1.0, False)
    assert least <= np.abs(rows.cpu().numpy() - expected).max() <= most
    assert cuda.dtype_of_pairs() is torch.float32


@pytest.mark.parametrize(("name", "most"), [("float32", 1e-5), ("tf32x3", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("triton", [True, False])
def test_two_panels_have_the_sums_of_the_cpu(gpu, rng, monkeypatch, name, most, triton):
    monkeypatch.setattr(cuda, "has_triton", lambda: triton)
    x, r, s = rng.normal(size=(150, 4)), rng.normal(size=(150, 2)), rng.uniform(0.5, 2, 150)
    problems = {"feature": ((x, r), (1.0, False)), "normal": ((x, r, s, x[:, :2]), (1.0, True, 0.7))}
    for kind, (data, settings) in problems.items():
        panels = [[a[:40] for a in data], [a[40:] for a in data]]
        expected = getattr(cpu, f"{kind}_cross")(*panels, *settings)
        with precision(name):
            tensors = [tuple(torch.tensor(a, device=gpu) for a in panel) for panel in panels]
            found = getattr(cuda, f"{kind}_cross")(*tensors, *settings)
        for mine, right in zip(found, expected, strict=True):
            assert np.abs(mine.cpu().numpy() - right).max() <= most * (1 if np.ndim(right) else right)


def test_without_triton_plain_torch_computes_or_nothing_does(rng, monkeypatch):
    monkeypatch.setattr(cuda, "has_triton", lambda: False)
    x, r = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    tensors = torch.tensor(x), torch.tensor(r)
    with precision("float64"):
        assert np.allclose(cuda.feature_moments(*tensors, 1.0, True)[0], cpu.feature_moments(x, r, 1.0, True)[0])
        normals = x, x[:, :1], np.exp(r[:, 0]), x[:, 1:]
        found = cuda.normal_moments(*map(torch.tensor, normals), 1.0, True, 0.7)[0]
        assert np.allclose(found, cpu.normal_moments(*normals, 1.0, True, 0.7)[0])
        ones = np.ones((60, 1))
        along = cpu.feature_moments(x, ones, 1.0, True)[0] + 1  # and the diagonal
        assert np.allclose(cuda.matmul(tensors[0], torch.tensor(ones), 1.0, True)[:, 0], along)
    assert cuda.block_sums(*tensors, 1.0, True, 2) is NotImplemented
    assert cuda.class_averages(*tensors, torch.zeros(60, dtype=torch.long), 2) is NotImplemented


def test_very_many_columns_are_left_to_tiles(gpu):
    wide = torch.zeros((3, 65), device=gpu)
    assert cuda.class_averages(wide, wide, torch.zeros(3, dtype=torch.long, device=gpu), 64) is NotImplemented


@pytest.mark.parametrize(
    ("module", "name", "what"),
    [
        ("cuda_moments", "feature_moments", "sums over pairs"),
        ("cuda_moments", "block_sums", "sums over blocks"),
        ("cuda_moments", "normal_moments", "sums over pairs"),
        ("cuda_softmax", "class_averages", "kernel regression"),
    ],
)
def test_no_memory_for_compiled_code_is_said_in_words(gpu, monkeypatch, module, name, what):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(f"calibrant._compiled.{module}.{name}", full)
    x = torch.zeros((40, 2), device=gpu)
    labels = torch.zeros(40, dtype=torch.long, device=gpu)
    arguments = {
        "feature_moments": (x, x, 1.0, True),
        "block_sums": (x, x, 1.0, True, 2),
        "normal_moments": (x, x, x[:, 0], x, 1.0, True, 1.0),
        "class_averages": (x, x, labels, 2),
    }
    with pytest.raises(GPUMemoryError, match=f"the GPU has no memory for {what} of 40 rows: free"):
        getattr(cuda, name)(*arguments[name])
    if name.endswith("moments"):
        cut = len(arguments[name]) - (2 if name.startswith("feature") else 3)
        panel, settings = arguments[name][:cut], arguments[name][cut:]
        with pytest.raises(GPUMemoryError, match=f"the GPU has no memory for {what} of 80 rows: free"):
            getattr(cuda, name.replace("moments", "cross"))(panel, panel, *settings)
