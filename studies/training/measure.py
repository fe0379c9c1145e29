"""``python -m studies.training.measure FOLDER``: errors of the runs in a folder, before and after temperature scaling.

With ``--seconds`` it keeps looking for new runs so long, beside the training. Needs this library.
"""

import argparse
import json
import re
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from calibrant import (
    ECE,
    KDE,
    SKCE,
    Brier,
    ClassWise,
    DebiasedECE,
    EqualMass,
    EqualWidth,
    ExactTest,
    LogLoss,
    TopLabel,
    Variational,
)
from calibrant.estimators import Lp
from calibrant.recalibration import Temperature

ROWS_OF_TEST = 2000
"""Of the exact test of whole vectors, which looks at all pairs."""

N_RESAMPLES, N_RESAMPLES_OF_PAIRS = 999, 199

RESAMPLES = 10
"""As the paper draws for CIFAR-10, of the first seed and before temperature scaling."""

ERRORS = {
    "brier": Brier(),
    "log_loss": LogLoss(),
    "canonical_kde": KDE(1, debias=False),
    "canonical_variational": Variational(Lp(1)),
    "top_label_width": ECE(EqualWidth(15), lens=TopLabel()),
    "top_label_mass": ECE(EqualMass(15), lens=TopLabel()),
    "top_label_debiased": DebiasedECE(lens=TopLabel()),
    "class_wise_width": ECE(EqualWidth(15), lens=ClassWise()),
    "class_wise_debiased": DebiasedECE(lens=ClassWise()),
}
"""By the name of their column; ``canonical_kde`` is equation (9) of the paper with the likeliest bandwidth."""

TESTS = {
    "p_top_label": (DebiasedECE(lens=TopLabel()), N_RESAMPLES, None),
    "p_class_wise": (DebiasedECE(lens=ClassWise()), N_RESAMPLES, None),
    "p_canonical": (SKCE(), N_RESAMPLES_OF_PAIRS, ROWS_OF_TEST),
}


@dataclass(frozen=True, eq=False)
class Logits:
    """Of validation and test images, with labels."""

    name: str
    validation: np.ndarray
    test: np.ndarray
    labels_validation: np.ndarray
    labels_test: np.ndarray


def read_packs(folder: Path, but: set[str] | None = None) -> list[Logits]:
    """All runs in the packs of a folder that are not left out."""
    found = []
    for path in sorted(folder.glob("*-*.npz")):
        with np.load(path) as pack:
            labels = {key: pack[key].astype(np.int64) for key in ("labels_validation", "labels_test")}
            for key in pack.files:
                name, _, part = key.rpartition(".")
                if part == "test" and name not in (but or ()):
                    found.append(Logits(name, pack[f"{name}.validation"], pack[key], **labels))
    return found


def measure(logits: Logits) -> list[dict[str, Any]]:
    """Two rows, before and after the temperature with the least log loss of the validation images."""
    validation, test = (z.astype(np.float64) for z in (logits.validation, logits.test))
    fitted: Any = Temperature().fit(logits.labels_validation, softmax(validation, axis=1)).map
    temperature = fitted.temperature
    rows = []
    for after in (False, True):
        row: dict[str, Any] = {"run": logits.name, "after": after, "temperature": temperature}
        p = softmax(test / temperature if after else test, axis=1)
        row |= {"validation_accuracy": np.nan, "validation_canonical": np.nan}
        if not after:
            y, held = logits.labels_validation, softmax(validation, axis=1)
            row["validation_accuracy"] = float((held.argmax(1) == y).mean())
            row["validation_canonical"] = float(ERRORS["canonical_variational"](y, held))
        is_first = re.search(r"_0(_epochs\d+)?(_bare)?$", logits.name) is not None
        rows.append(row | errors_of(logits.labels_test, p, resamples=RESAMPLES if is_first and not after else 0))
    return rows


def errors_of(y: np.ndarray, p: np.ndarray, resamples: int = 0) -> dict[str, float]:
    """Every error and p-value; with resamples, the mean and standard deviation of the estimate of the paper in them."""
    row: dict[str, float] = {"accuracy": float((p.argmax(1) == y).mean())}
    found = {name: error(y, p) for name, error in ERRORS.items()}
    row |= {name: float(estimate) for name, estimate in found.items()}
    kde: Any = found["canonical_kde"].estimator
    row["bandwidth"] = kde.bandwidth
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    for name, (statistic, n_resamples, n) in TESTS.items():
        row[name] = ExactTest(statistic, n_resamples=n_resamples)(y[order[:n]], p[order[:n]]).pvalue
    drawn = [float(kde(y[rows], p[rows])) for rows in rng.integers(len(y), size=(resamples, len(y)))]
    row["resampled"], row["resampled_sd"] = (
        (float(np.mean(drawn)), float(np.std(drawn, ddof=1))) if drawn else (np.nan,) * 2
    )
    return row


def follow(folder: Path, out: Path, deadline: float, workers: int) -> int:
    """Measure what is in the folder, and until the deadline what comes; a line of JSON per row. How many rows there are."""
    done = set() if not out.exists() else {json.loads(line)["run"] for line in out.read_text("utf-8").splitlines()}
    jobs: set[Future[list[dict[str, Any]]]] = set()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool, out.open("a", encoding="utf-8") as file:
        while True:
            new = read_packs(folder, done)
            jobs |= {pool.submit(measure, logits) for logits in new}
            done |= {logits.name for logits in new}
            is_over = time.monotonic() > deadline
            ready = wait(jobs, timeout=2).done
            for job in ready:
                file.writelines(json.dumps(row) + "\n" for row in job.result())
            file.flush()
            jobs -= ready
            if is_over and not new and not jobs:
                return len(out.read_text("utf-8").splitlines())
            time.sleep(0 if is_over else 2)


def main(arguments: list[str] | None = None) -> int:
    """Measure the runs of a folder."""
    parser = argparse.ArgumentParser(prog="python -m studies.training.measure")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines; runs that are in it are done")
    parser.add_argument("--seconds", type=float, default=0.0, help="look for new runs so long")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(arguments)
    print(f"{follow(given.folder, given.out, time.monotonic() + given.seconds, given.workers)} rows", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
