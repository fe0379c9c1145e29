"""``python -m studies.training.kept RUNS``: logits of networks that are part of the project, a file each in ``studies/networks``.

RUNS is a folder that ``train --plan networks`` wrote. A file holds ``logits_validation``, ``labels_validation``, ``logits_test``
and ``labels_test``, in half precision; rows are the same in all files. It is small enough to be shipped with the source.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from studies.training.measure import read_packs

FOLDER = Path(__file__).parents[1] / "networks"
"""Where they are."""

PARTS = "validation", "test"


def name_of(run: dict[str, Any]) -> str:
    """Of the file: what the networks differ in.

    >>> name_of({"network": "vgg11-8", "epochs": 12, "augments": False, "loss": "xe"})
    'vgg11-8_12-epochs_bare'
    >>> name_of({"network": "resnet10-8", "epochs": 10, "augments": True, "loss": "ls"})
    'resnet10-8_10-epochs_ls'
    """
    words = [run["network"], f"{run['epochs']}-epochs"]
    return "_".join(words + ["bare"] * (not run["augments"]) + [run["loss"]] * (run["loss"] != "xe"))


def keep(runs: Path, out: Path) -> list[Path]:
    """Write a file for each network of a folder of runs."""
    lines: dict[str, Any] = {}
    for path in runs.glob("*.json"):
        lines |= json.loads(path.read_text("utf-8"))["runs"]
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for found in read_packs(runs):
        arrays = {f"logits_{part}": getattr(found, part).astype(np.float16) for part in PARTS}
        arrays |= {f"labels_{part}": getattr(found, f"labels_{part}").astype(np.uint8) for part in PARTS}
        written.append(out / f"{name_of(lines[found.name])}.npz")
        np.savez_compressed(written[-1], **arrays)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Keep the runs of a folder."""
    parser = argparse.ArgumentParser(prog="python -m studies.training.kept")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args(arguments)
    for path in keep(given.runs, given.out):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
