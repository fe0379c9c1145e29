import json
import subprocess
import sys

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, EqualMass, Normal, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential
from calibrant.streams import StreamMetric

torch = pytest.importorskip("torch")


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
