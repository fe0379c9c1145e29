"""Losses against each other: means and differences within seeds, and a weight that validation images choose."""

import csv
import json

import numpy as np
import pytest

from studies.training import compare

NUMBERS = (*compare.COLUMNS, "p_top_label", "p_canonical", "validation_accuracy", "validation_canonical")


def written(folder, kinds, seeds=range(3)):
    """A file of measured runs and one of their settings: each number is that of its kind plus a hundredth of the seed."""
    plan, lines = {}, []
    for loss, weight, numbers in kinds:
        for seed in seeds:
            name = f"tiny_{loss}_{weight:g}_{seed}"
            plan[name] = {
                "network": "tiny",
                "loss": loss,
                "weight": weight,
                "seed": seed,
                "epochs": 4,
                "augments": True,
            }
            for after in (False, True):
                values = {key: numbers.get(key, 0.5) + seed / 100 for key in NUMBERS}
                lines.append({"run": name, "after": after} | values)
    (folder / "runs.json").write_text(json.dumps({"runs": plan, "seconds": {"tiny_xe": 2.0, "tiny_kde": 2.1}}))
    (folder / "measured.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [str(folder / "measured.jsonl"), str(folder / "runs.json"), "--out", str(folder / "out")]


def kinds_of(accuracies):
    """Cross-entropy and KDE-XE with weights whose error falls with the weight."""
    rest = [("kde", w, {"validation_accuracy": a, "validation_canonical": 0.1 - w}) for w, a in accuracies]
    return [("xe", 0.0, {"validation_accuracy": 0.6, "accuracy": 0.7}), *rest]


@pytest.mark.parametrize(
    ("accuracies", "chosen"),
    [([(0.01, 0.6), (0.05, 0.6)], 0.05), ([(0.01, 0.6), (0.05, 0.58)], 0.01), ([(0.01, 0.5), (0.05, 0.5)], 0.05)],
)
def test_the_weight_of_least_error_without_loss_of_accuracy(tmp_path, accuracies, chosen):
    files = written(tmp_path, kinds_of(accuracies))
    runs = compare.Runs.read(tmp_path / "measured.jsonl", [tmp_path / "runs.json"])
    assert runs.chosen(runs.schedules()[0], "kde").weight == chosen
    assert compare.main(files) == 0


def test_differences_are_taken_within_seeds(tmp_path):
    compare.main(written(tmp_path, kinds_of([(0.05, 0.6)])))
    out = (tmp_path / "out" / "training-losses.md").read_text()
    assert "| XE | 71.00 ± 0.58 |" in out  # seeds are .70, .71 and .72
    assert "| XE | -20.00 ± 0.00 | +0.0000 ± 0.0000 |" in out  # every difference is that of the kinds
    assert "accuracy is lower by 20.00 ± 0.00; canonical error is not told apart (+0.0000 ± 0.0000)" in out
    assert "KDE-XE 2.100 (+5.0 %)" in out
    rows = list(csv.DictReader((tmp_path / "out" / "training-losses.csv").read_text().splitlines()))
    assert len(rows) == 2 * 2 * 3
    assert {row["seed"] for row in rows} == {"0", "1", "2"}
    assert "KDE-XE" in (tmp_path / "out" / "training-losses-tiny.svg").read_text()


def test_one_seed_has_no_error():
    assert np.isnan(compare.mean({0: 1.0})[1])
