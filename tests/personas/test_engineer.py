"""An engineer with a network in torch: logits in a loop, a log, a temperature, and a gate in the pipeline."""

import re

import numpy as np
import pytest

from calibrant import ECE, Brier, Categorical, EqualMass, ExactTest, InputError
from calibrant.recalibration import Temperature
from calibrant.streams import StreamMetric

torch = pytest.importorskip("torch")


def batches(n, size=100):
    return torch.arange(n).split(size)


@pytest.fixture(scope="module")
def trained():
    """Logits and classes of validation and test rows, of a network that knows its training rows by heart; and its log."""
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    torch.manual_seed(0)
    images, digits = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    order = torch.randperm(len(digits))
    x, y = (images[order] / 16 + 0.4 * torch.randn(images.shape)).float(), digits[order]
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    metric, log = StreamMetric(ECE(), Brier()).to("cpu"), []
    for epoch in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(x[:600]), y[:600]).backward()
        optimiser.step()
        if epoch % 20 == 19:
            for rows in batches(600):
                metric.update(network(x[600 + rows]), y[600 + rows])
            ece, brier = metric.estimate()
            log.append(f"epoch {epoch + 1}: ECE {ece:.1%}, Brier {brier:.3f}, n = {ece.n}")
            metric.reset()
    with torch.no_grad():
        z = network(x[600:])
    return z[:600], y[600:1200], z[600:], y[1200:], log


def test_the_log_has_the_error_of_all_rows(trained):
    z, y, _, _, log = trained
    ece, brier = ECE()(y, Categorical.from_logits(z)), Brier()(y, Categorical.from_logits(z))
    assert log[-1] == f"epoch 60: ECE {ece:.1%}, Brier {brier:.3f}, n = 600"
    assert [line[:8] for line in log] == ["epoch 20", "epoch 40", "epoch 60"]
    assert ece.lens == "top-label"
    assert 0.1 < ece < 0.4


def test_probabilities_logits_and_half_precision_say_the_same(trained):
    z, y = trained[:2]
    found = []
    for preds in (z, z.softmax(dim=1), z.half(), z.numpy()):
        metric = StreamMetric(ECE())
        metric.update(preds, y)
        found.append(round(metric.estimate(), 3))
    assert max(found) - min(found) <= 0.001


def test_what_is_mistaken_is_said_in_the_words_of_the_loop(trained):
    z, y = trained[:2]
    metric = StreamMetric(ECE())
    with pytest.raises(InputError, match=r"takes predictions first, update\(preds, target\)"):
        metric.update(y, z)
    with pytest.raises(InputError, match=r"logits\? Then say so, StreamMetric\(\.\.\., logits=True\); percentages"):
        metric.update(100 * z.softmax(dim=1), y)
    StreamMetric(ECE(), logits=True).update(z, y)


def test_one_number_repairs_it(trained):
    z, y, new, truth, _ = trained
    error = ECE(EqualMass(15))
    before = ExactTest(error)(truth, Categorical.from_logits(new))
    cooler = Temperature().fit(y, Categorical.from_logits(z))
    after = ExactTest(error)(truth, cooler(Categorical.from_logits(new)))
    assert before < 0.01 < after
    assert str(before).startswith("p-value = 0.001\n  statistic      ECE = 0.")
    assert "if calibrated  0.0" in str(before)
    assert cooler.map.temperature > 2


def test_in_torchmetrics_it_is_one_of_many(trained):
    torchmetrics = pytest.importorskip("torchmetrics")
    z, y = trained[:2]
    accuracy = torchmetrics.classification.MulticlassAccuracy(10)
    collection = torchmetrics.MetricCollection({"accuracy": accuracy, "ece": StreamMetric(ECE())}).to("cpu")
    for rows in batches(600):
        collection.update(z[rows], y[rows])
    assert float(collection.compute()["ece"]) == pytest.approx(float(ECE()(y, Categorical.from_logits(z))), rel=1e-5)


def test_the_pipeline_stops_in_percent(trained, tmp_path, capsys):
    pytest.importorskip("cyclopts")
    from calibrant.cli import main

    z, y = trained[:2]
    file = str(tmp_path / "outputs.npz")
    np.savez(file, labels=y.numpy(), logits=z.numpy())
    said = {}
    for limit in ("5%", "90 %", "5"):
        columns = [
            "--y-true",
            "labels",
            "--predict",
            "Categorical.from_logits(logits='logits')",
            "--estimator",
            "ECE()",
        ]
        with pytest.raises(SystemExit) as left:
            main(["estimate", file, *columns, "--fail-if", f"ECE > {limit}"])
        said[limit] = left.value.code, capsys.readouterr().err.strip()
    assert said["5%"][0] == 1
    assert re.fullmatch(r"gate failed: ECE = \d\d\.\d+% > 5%", said["5%"][1])
    assert said["90 %"] == (0, "")
    assert said["5"][0] == 2
    assert "--fail-if 'ECE > 5' never holds: ECE lies between 0 and 1; of percent write 'ECE > 5%'" in said["5"][1]
