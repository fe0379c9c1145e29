"""The loop of ``docs/guide/streams.md``, run where Lightning is installed."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from calibrant import ECE


def test_the_loop_of_the_guide_logs_the_error_of_all_rows(tmp_path):
    torch, lightning = pytest.importorskip("torch"), pytest.importorskip("lightning")
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "streams.md").read_text("utf-8")
    names = {"__name__": "guide"}
    exec(re.search(r"```python\n(import lightning\n.*?)```", guide, re.DOTALL)[1], names)
    torch.manual_seed(0)
    x, y = torch.randn(300, 8), torch.randint(0, 3, (300,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    model = names["Classifier"](8, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice on workers
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", default_root_dir=tmp_path, **quiet)
        trainer.fit(model, loader, loader)
    probabilities = model.network(x).softmax(dim=1).detach().numpy()
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert logged["val_ece"] == pytest.approx(ECE()(y, probabilities).value, rel=1e-5)
    assert logged["val_accuracy"] == pytest.approx(macro_accuracy(y.numpy(), probabilities), rel=1e-5)


def macro_accuracy(y, probabilities):
    return np.mean([(probabilities[y == c].argmax(axis=1) == c).mean() for c in range(3)])
