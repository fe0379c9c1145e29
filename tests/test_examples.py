import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_training_runs_to_its_figure(tmp_path):
    for library in ("torch", "sklearn", "matplotlib"):
        pytest.importorskip(library)
    figure = tmp_path / "figure.svg"
    command = [sys.executable, "-W", "error", EXAMPLES / "train_calibrated.py", "--quick", "--out", figure]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    rows = [line for line in output.splitlines() if line.startswith("| KDE-XE |")]
    assert len(rows) == 2
    assert all(len(row.split("|")) == 12 for row in rows)
    assert "KDE-XE less XE, by seed" in output
    assert "canonical L1 error" in figure.read_text()
