import numpy as np
import pytest

from calibrant import Normal
from calibrant.engines import gpus
from calibrant.engines.gpus import moved, on_gpu
from calibrant.estimators.kernel_problem import KernelRows
from calibrant.kernels import Gaussian
from calibrant.residuals import residuals


@pytest.fixture
def rows():
    normal = Normal([0.0, 1.0], [1.0, 2.0])
    return KernelRows(np.ones((2, 2)), residuals(Gaussian(1.0), np.array([0.5, 1.5]), normal))


def test_without_a_gpu_nothing_moves(rows, monkeypatch):
    monkeypatch.setattr(gpus, "find_spec", lambda name: None)
    assert on_gpu(lambda x: x, rows) is rows


def test_arrays_move_wherever_they_are(rows):
    def doubled(value):
        return 2 * value if isinstance(value, np.ndarray) else value

    twin, same = moved((rows, "text"), doubled)
    assert same == "text"
    assert twin.coords.tolist() == [[2, 2], [2, 2]]
    assert twin.residuals.spread.scale.tolist() == [2, 4]
    assert twin.residuals.points.loc.tolist() == [1, 3]
    assert rows.residuals.spread.scale.tolist() == [1, 2]


def test_with_a_gpu_arrays_go_there_and_results_come_back(rows, monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():  # then its memory is ours
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.Tensor, "cuda", lambda self: self)
    seen = []

    def work(a, b):
        seen.append((type(a.coords), b))
        return a.coords * 2

    found = on_gpu(work, rows, None)
    assert seen == [(torch.Tensor, None)]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[2, 2], [2, 2]]
