from collections.abc import Mapping

import numpy as np
import pytest

from calibrant import SKCE, Categorical, Normal
from calibrant._compiled.choice import precision_in_force
from calibrant.engines import devices
from calibrant.engines.devices import moved, on_gpu, there
from calibrant.estimators.kernel_errors.kernel_problem import KernelRows
from calibrant.kernels import Exponential, Gaussian
from calibrant.recalibration.base import HeldOut
from calibrant.residuals import residuals


@pytest.fixture
def rows():
    normal = Normal([0.0, 1.0], [1.0, 2.0])
    return KernelRows(np.ones((2, 2)), residuals(Gaussian(1.0), np.array([0.5, 1.5]), normal))


def test_without_a_gpu_nothing_moves(rows, monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
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
        monkeypatch.setattr(torch.Tensor, "to", lambda self, device: self)
    seen = []

    def work(a, b):
        seen.append((type(a.coords), b, precision_in_force()))
        return a.coords * 2

    found = on_gpu(work, rows, None, within="tf32x3")
    assert seen == [(torch.Tensor, None, "tf32x3")]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[2, 2], [2, 2]]


def test_mappings_are_moved_and_what_is_cached_is_made_again():
    p = Categorical(np.array([[0.2, 0.3, 0.5]]))
    assert p.sample(np.random.default_rng(0), 1).shape == (1, 1)  # which keeps cumulative probabilities
    assert "_cumulative" in vars(p)
    twins = moved({"p": p}, lambda x: x)
    assert isinstance(twins, Mapping)
    assert not [name for name in vars(twins["p"]) if name.startswith("_cumulative")]
    assert "_cumulative" in vars(p)


def test_weights_of_resamples_stay_on_the_host():
    p, w = Categorical(np.full((4, 3), 1 / 3)), np.ones(4)
    twin = moved(SKCE(Exponential(0.4)).given(p, w), lambda x: -x if isinstance(x, np.ndarray) else x)
    assert twin.weights is w
    assert (twin.predictions.probs < 0).all()
    numbers = moved(SKCE(Exponential(0.4)).given(Normal([0.0, 1.0], 1.0), w), lambda x: x)
    assert numbers.weights is w


@pytest.mark.parametrize("kind", ["read-only", "reversed", "swapped", "bool", "text"])
def test_arrays_of_every_kind_go_there(kind):
    torch = pytest.importorskip("torch")
    x = np.arange(4.0)
    made = {"reversed": x[::-1], "swapped": x.astype(">f8"), "bool": x > 1, "text": x.astype(str)}.get(kind, x)
    made.flags.writeable = False
    found = there("cpu", made)
    assert isinstance(found, np.ndarray if kind == "text" else torch.Tensor)
    assert np.asarray(found).tolist() == made.tolist()


def test_tuples_with_names_keep_them():
    parts = HeldOut(np.array([1]), [np.array([2.0])])
    found = moved((parts,), lambda x: x + 1)
    assert isinstance(found[0], HeldOut)
    assert (found[0].rows.tolist(), found[0].predictions[0].tolist()) == ([2], [3.0])
