import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, EqualMass, EqualWidth, Normal, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential
from calibrant.streams import StreamMetric

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def without_torchmetrics(request, monkeypatch):
    """As in a program that does not use it, whatever other tests have imported."""
    if request.cls is None:
        monkeypatch.delitem(sys.modules, "torchmetrics", raising=False)


def test_batches_of_tensors(rng):
    p = torch.softmax(torch.from_numpy(rng.normal(size=(100, 4))), dim=1)
    y = torch.from_numpy(rng.integers(0, 4, 100))
    metric = StreamMetric(ECE(lens=TopLabel()), Brier())
    for rows in torch.arange(100).split(16):
        metric.update(p[rows], y[rows])
    error, score = metric.compute()
    assert error.value == ECE(lens=TopLabel())(y, p).value
    assert score.value == pytest.approx(Brier()(y, p).value, rel=1e-12)
    assert metric.state.n == 100


def test_calling_gives_the_batch_and_takes_it_in():
    metric = StreamMetric(Brier())
    assert float(metric([0.5], [1])) == 0.25
    assert float(metric([1.0], [1])) == 0.0
    assert float(metric.compute()) == 0.125
    metric.reset()
    with pytest.raises(InputError, match="the state has seen no rows"):
        metric.compute()


def test_settings_from_a_first_sample(rng):
    p = rng.random(100)
    y = (rng.random(100) < p) * 1
    metric = StreamMetric(ECE(EqualMass(5)), like=(y, p))
    metric.update(p, y)
    assert float(metric.compute()) == ECE(EqualMass(5))(y, p).value


def test_swapped_arguments_are_recognised(rng):
    p, y = rng.random(10), rng.integers(0, 2, 10)
    message = r"the arguments look swapped: a StreamMetric takes predictions first, update\(preds, target\)"
    with pytest.raises(InputError, match=message):
        StreamMetric(ECE()).update(y, p)
    with pytest.raises(InputError, match=message):
        StreamMetric(ECE()).update(y, rng.dirichlet(np.ones(3), 10))
    with pytest.raises(InputError, match=f"target is a Normal: {message}"):
        StreamMetric(Brier()).update([0.0], Normal([0.0], [1.0]))


def logits_of(rng, n=120, k=4):
    z = torch.from_numpy(3 * rng.normal(size=(n, k)))
    return z, torch.softmax(z, dim=1), torch.from_numpy(rng.integers(0, k, n))


@pytest.mark.parametrize("options", [{}, {"logits": True}])
def test_logits_are_as_good_as_probabilities(rng, options):
    z, p, y = logits_of(rng)
    metric = StreamMetric(ECE(), Brier(), **options)
    for rows in torch.arange(len(y)).split(25):
        metric.update(z[rows], y[rows])
    assert [float(e) for e in metric.compute()] == pytest.approx([ECE()(y, p).value, Brier()(y, p).value], rel=1e-9)


def test_log_odds_are_as_good_as_probabilities(rng):
    z = torch.from_numpy(3 * rng.normal(size=90))
    y = torch.from_numpy(rng.integers(0, 2, 90))
    metric = StreamMetric(ECE())
    metric.update(z[:50], y[:50].float())
    metric.update(z[50:].clamp(0.1, 0.9), y[50:])  # which look like probabilities, and are logits as those before
    both = torch.cat([z[:50], z[50:].clamp(0.1, 0.9)])
    assert float(metric.compute()) == pytest.approx(ECE()(y, torch.sigmoid(both)).value, rel=1e-9)


def test_what_may_be_logits_or_not_is_asked_for(rng):
    metric = StreamMetric(ECE())
    metric.update([0.5, 0.2], [1, 0])
    with pytest.raises(InputError, match=r"preds were probabilities in earlier .* now one is -2: .*logits=True\)"):
        metric.update([0.5, -2.0], [1, 0])
    with pytest.raises(InputError, match=r"preds lie between 20 and 90: logits\? Then say so, .*divided by 100"):
        StreamMetric(ECE()).update([20.0, 90.0], [1, 0])
    with pytest.raises(InputError, match=r"y_pred must lie in \[0, 1\]; found -2"):
        StreamMetric(ECE(), logits=False).update([0.5, -2.0], [1, 0])
    said = StreamMetric(ECE(), logits=True)
    said.update([20.0, 90.0], [1, 0])
    assert float(said.compute()) == pytest.approx(0.5, abs=1e-6)


def test_names_are_those_of_every_call(rng):
    z, p, y = logits_of(rng)
    names = np.array(["ant", "bee", "cat", "dog"])
    metric = StreamMetric(ECE(), labels=names)
    metric.update(z, names[y])
    assert float(metric.compute()) == pytest.approx(ECE()(y, p).value, rel=1e-9)
    frame = pytest.importorskip("pandas").DataFrame(p[:, [3, 2, 1, 0]], columns=names[::-1])
    metric = StreamMetric(ECE())
    metric.update(frame, names[y])
    assert float(metric.compute()) == pytest.approx(ECE()(y, p).value, rel=1e-9)


def test_the_protocol_of_a_metric(rng):
    """What loops call, with torchmetrics or without: update, compute, reset, forward, to, and copies."""
    z, p, y = logits_of(rng)
    metric = StreamMetric(ECE()).to("cuda" if torch.cuda.is_available() else "cpu")
    twin = copy.deepcopy(metric)
    assert float(metric(z[:60], y[:60])) == pytest.approx(ECE()(y[:60], p[:60]).value, rel=1e-6)
    metric.update(z[60:], y[60:])
    assert float(metric.compute()) == pytest.approx(ECE()(y, p).value, rel=1e-6)
    assert metric.estimate().value == pytest.approx(ECE()(y, p).value, rel=1e-9)
    revived = pickle.loads(pickle.dumps(metric))
    revived.update(z, y)
    assert (metric.state.n, revived.state.n, twin.state.n) == (120, 240, 0)
    metric.reset()
    assert metric.state.n == 0


def test_gradients_are_no_part_of_a_metric(rng):
    z, _, y = logits_of(rng)
    metric = StreamMetric(Brier())
    metric.update(z.requires_grad_(), y)
    assert isinstance(metric.estimate().value, float)


class TestWithTorchmetrics:
    """In a program that uses torchmetrics, a metric is one of its own. Run where that is installed."""

    @pytest.fixture(autouse=True)
    def torchmetrics(self):
        return pytest.importorskip("torchmetrics")

    def test_it_belongs_to_a_collection(self, rng, torchmetrics):
        z, p, y = logits_of(rng)
        theirs = torchmetrics.classification.MulticlassCalibrationError(4, n_bins=15)
        parts = {"theirs": theirs, "ours": StreamMetric(ECE(EqualWidth(15))), "two": StreamMetric(ECE(), Brier())}
        collection = torchmetrics.MetricCollection(parts).to("cpu")
        for rows in torch.arange(len(y)).split(25):
            collection.update(z[rows], y[rows])
        found = collection.compute()
        assert float(found["ours"]) == pytest.approx(float(found["theirs"]), rel=1e-6)
        assert float(found["ours"]) == pytest.approx(ECE()(y, p).value, rel=1e-6)
        assert isinstance(found["ours"], torch.Tensor)
        assert float(found["Brier"]) == pytest.approx(Brier()(y, p).value, rel=1e-6)
        assert float(found["ECE"]) == float(found["ours"])
        again = collection.clone(prefix="val_")
        again.reset()
        assert float(again(z, y)["val_ours"]) == pytest.approx(ECE()(y, p).value, rel=1e-6)
        assert collection["ours"].estimate().n == len(y)

    def test_its_tensors_lie_where_it_was_sent(self, rng):
        z, _, y = logits_of(rng)
        metric = StreamMetric(ECE()).to("meta")  # stands for any other device
        metric.update(z, y)
        assert metric.compute().device.type == "meta"
        assert metric.estimate().n == len(y)

    def test_it_is_copied_and_sent(self, rng):
        z, _, y = logits_of(rng)
        metric = StreamMetric(ECE())
        metric.update(z, y)
        for copied in (pickle.loads(pickle.dumps(metric)), metric.clone()):
            assert copied.compute() == metric.compute()
            copied.update(z, y)
            assert copied.estimate().n == 2 * metric.estimate().n


def test_it_needs_no_torch():
    code = (
        "from calibrant.streams.metric import StreamMetric; from calibrant import ECE; import sys; m = StreamMetric(ECE()); \
m.update([0.4], [1]); print(float(m.compute())); assert 'torch' not in sys.modules"
    )
    assert float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) == 0.6


WORKER = """
import json, os, sys
import numpy as np
import torch.distributed as dist
from calibrant import ECE, Brier, SKCE
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential
from calibrant.streams.metric import StreamMetric

rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
rng = np.random.default_rng(0)
p = rng.random(999)
y = (rng.random(999) < p) * 1
metric = StreamMetric(ECE(), Brier(), RandomFeatureSKCE(Exponential(0.2)), SKCE(Exponential(0.2), block=10))
low, high = (0, 700) if rank == 0 else (700, 999)
for start in range(low, high, 64):
    rows = slice(start, min(start + 64, high))
    metric.update(p[rows], y[rows], start=start)
with open(f"{folder}/{rank}.json", "w") as out:
    json.dump([float(e) for e in metric.compute()], out)
dist.destroy_process_group()
"""


def test_two_processes_compute_what_one_does(tmp_path):
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(rank), "2", str(tmp_path)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors.decode()
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    rng = np.random.default_rng(0)
    p = rng.random(999)
    y = (rng.random(999) < p) * 1
    estimators = ECE(), Brier(), RandomFeatureSKCE(Exponential(0.2)), SKCE(Exponential(0.2), block=10)
    assert first == pytest.approx([e(y, p).value for e in estimators], rel=1e-12)
    assert first[0] == ECE()(y, p).value


def test_a_metric_says_what_it_holds():
    metric = StreamMetric(ECE())
    metric.update(torch.tensor([0.2, 0.8]), torch.tensor([0, 1]))
    assert repr(metric).startswith("<StreamMetric: 2 rows of ")
