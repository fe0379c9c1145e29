"""Errors and variances of SKCE estimators: figures 6 to 9 of Widmann, Lindsten & Zachariah (2021), appendix A.2.

The worlds are those of :class:`~calibrant.lab.SyntheticNormal`, the kernel ``exp(-W2) exp(-|y - y'|^2 / 2)``.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrant.distributions import Distribution
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem
from calibrant.kernels import Exponential, Gaussian
from calibrant.lab import SyntheticNormal
from calibrant.lab.regression_worlds import TRUTH
from calibrant.lab.study import StudyRecord, resumed
from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (4, 16, 64, 256, 1024)
ESTIMATORS = ("biased", "B=2", "B=sqrt(n)", "B=n")

SEED = 0

UNIT = "standard errors"
BOUND = 4.5
"""Standard errors within which a cell agrees: two independent runs of 500 data sets each, 160 cells."""


@dataclass(frozen=True)
class Cell:
    """One world and sample size."""

    model: str
    dimensions: int
    n: int


def data_set(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, Distribution]:
    """Targets and predictions of one data set."""
    return SyntheticNormal(cell.model == "calibrated", cell.dimensions).draw(cell.n, rng)


def estimates(cell: Cell, rng: np.random.Generator) -> list[float]:
    """All estimators on one data set, from one matrix."""
    y, predictions = data_set(cell, rng)
    kernel, _, rows = resolve_problem(Exponential(1.0), Gaussian(1.0), None, y, predictions)
    matrix = KernelForm(kernel)(rows, rows)
    n = cell.n
    return [float(matrix.mean()), *(_block_mean(matrix, size) for size in (2, round(n**0.5), n))]


def _block_mean(matrix: np.ndarray, size: int) -> float:
    """Mean of the U-statistics of consecutive blocks."""
    blocks = [matrix[i : i + size, i : i + size] for i in range(0, len(matrix) - size + 1, size)]
    return float(np.mean([(block.sum() - np.trace(block)) / (size * (size - 1)) for block in blocks]))


def _repeat(n_sets: int, cell: Cell, seed: np.random.SeedSequence) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([estimates(cell, rng) for _ in range(n_sets)])


def study(
    n_sets: int = 500,
    *,
    sizes: Sequence[int] = SIZES,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """Mean absolute error and variance of every cell, the published values, and how many standard errors lie between.

    >>> table = study(20, sizes=[4])
    >>> table.n_rows, bool(np.all(np.isfinite(table["error_z"])))
    (16, True)
    """
    cells = [Cell(model, d, n) for model in ("calibrated", "uncalibrated") for d in (1, 10) for n in sizes]
    seeds = np.random.SeedSequence(seed).spawn(len(cells))
    settings = {"n_sets": n_sets, "sizes": list(sizes), "seed": seed}
    record = None if folder is None else StudyRecord(Path(folder) / "estimator-error.jsonl", settings)
    found = resumed(partial(_repeat, n_sets), list(zip(cells, seeds, strict=True)), record, engine)
    pairs = [(cell, *pair) for i, cell in enumerate(cells) for pair in zip(ESTIMATORS, found[i].T, strict=True)]
    rows = [_compare(*pair) for pair in pairs]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def summary(table: Table) -> Table:
    """The table is short enough as it is."""
    return table


def figure(table: Table) -> "Figure":
    """Mean absolute errors against sizes, published ones as crosses."""
    shown = Table({**table, "published": table["published_error"]})
    return pictures.lines(
        shown,
        panels=("model", "d"),
        x="n",
        y="error",
        line="estimator",
        published="published",
        label="mean absolute error",
        is_log=True,
    )


def _compare(cell: Cell, estimator: str, values: np.ndarray) -> dict[str, object]:
    published_error, published_variance = published()[cell.model, cell.dimensions, estimator, cell.n]
    errors = np.abs(values - TRUTH[cell.model, cell.dimensions])
    squares = (values - values.mean()) ** 2 * len(values) / (len(values) - 1)
    return {
        "model": cell.model,
        "d": cell.dimensions,
        "estimator": estimator,
        "n": cell.n,
        "error": errors.mean(),
        "published_error": published_error,
        "error_z": _z(errors, published_error, 5e-4),
        "variance": squares.mean(),
        "published_variance": published_variance,
        "variance_z": _z(squares, published_variance, 5e-3),
    }


def _z(values: np.ndarray, published: float, rounding: float) -> float:
    """Difference of two means of 500 values each, less the rounding of the printed one, in standard errors."""
    noise = np.sqrt(values.var(ddof=1) * (1 / len(values) + 1 / 500))
    return float(max(abs(values.mean() - published) - rounding * published, 0.0) / noise)


def published() -> dict[tuple[str, int, str, int], tuple[float, float]]:
    """Mean absolute error and variance as published."""
    text = files("studies.widmann").joinpath("estimator_error.csv").read_text(encoding="utf-8")
    return {
        (row["model"], int(row["d"]), row["estimator"], int(row["n"])): (
            float(row["mean_absolute_error"]),
            float(row["variance"]),
        )
        for row in csv.DictReader(text.splitlines())
    }
