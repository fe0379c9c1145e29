import pytest

from calibrant.planning import Machine
from calibrant.planning import bench as gpu_bench
from calibrant.planning.machine import shipped


def test_a_gpu_has_its_own_trials(monkeypatch):
    """Tensors on the CPU stand in for those of a GPU."""
    pytest.importorskip("torch")
    small = {"kernel error of all pairs": {"n": (60, 90)}, "kernel regression": {"n": (60, 90)}}
    small["kernel test of all pairs"] = {"n": (30, 50), "resamples": (9, 19)}
    monkeypatch.setattr(gpu_bench, "GPU_TRIALS", small)
    found = gpu_bench.measured_on_gpu("cpu")
    assert {key: len(rates) for key, rates in found.items()} == {k: len(r) for k, r in shipped().gpu_seconds.items()}
    assert all(min(rates) >= 0 < max(rates) for rates in found.values())


def test_a_gpu_that_is_there_is_measured(monkeypatch):
    found = {key: tuple(2 * x for x in rates) for key, rates in shipped().gpu_seconds.items()}
    monkeypatch.setattr(gpu_bench, "measured_on_gpu", lambda: found)
    monkeypatch.setattr(gpu_bench, "this_machine", lambda: Machine(2, 1e9, "fast one"))
    both = gpu_bench.with_gpu(shipped())
    assert (both.gpu_name, both.gpu_seconds, both.seconds) == ("fast one", found, shipped().seconds)
    monkeypatch.setattr(gpu_bench, "this_machine", lambda: Machine(2, 1e9, None))
    assert gpu_bench.with_gpu(shipped()) is shipped()
