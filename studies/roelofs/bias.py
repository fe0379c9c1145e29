"""Bias and spread of binned errors: figures 4 and 9 to 14 of Roelofs, Cain, Shlens & Mozer (2022).

Data sets are drawn from beta-distributed scores and calibration curves that were fitted to networks, so that the true
error is known. Errors are in the norm p = 2, and all numbers in points (hundredths). EW are bins of equal width, EM of
equal mass, where equal scores are dealt out in the order of the rows. The debiased error is Kumar's, cut at zero, without
correction in bins of one row. The sweep takes as many bins as keep frequencies in order.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.lab import tce
from calibrant.lab.study import StudyRecord
from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.layout import beside, wide
from studies.roelofs.batches import Batch, simulate
from studies.roelofs.fits import FITS, REFINED, RULES, errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (200, 400, 800, 1600, 3200, 6400)
BINS = (2, 4, 8, 16, 32, 64)

SWEEP = 0
"""In place of a number of bins where the sweep chooses it."""

METHODS = tuple(
    (f"{rule}{kind}", bins)
    for rule in RULES
    for kind, some in (("", BINS), (" debiased", BINS), (" sweep", (SWEEP,)))
    for bins in some
)

SEED = 0

UNIT = "standard errors"
BOUND = 4.0
"""Standard errors within which a cell agrees: two independent runs of 1,000 data sets each, 678 cells."""

PUBLISHED_SETS = 1000

ROUNDING = 0.005
"""Half of the last digit in print."""

READABLE = {"bias_percent": ("ok", "ok_position_inferred"), "std_percent": ("decoded_rotated_unique",)}
"""Published numbers that are compared. The text of figures 12 to 14 stands upside down: of their numbers only those that
can be read in a single way. Some that could, and were far from any simulation, have been put aside as misread, so that
agreement says less of them than of the biases."""


def study(
    n_sets: int = PUBLISHED_SETS,
    *,
    sizes: Sequence[int] = SIZES,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """Bias and standard deviation of every cell, the published ones, and how far they are apart.

    ``deviation`` is in points; ``z`` and ``sd_z`` are in standard errors of both runs together, less the rounding of the
    printed numbers. What was not published, or cannot be read, is NaN.

    >>> table = study(20, sizes=[200])
    >>> table.n_rows, list(table)[:4]
    (78, ['fit', 'method', 'bins', 'n'])
    """
    cells = [(FITS[name], n) for name in REFINED for n in sizes]
    settings = {"n_sets": n_sets, "sizes": list(sizes), "seed": seed}
    record = None if folder is None else StudyRecord(Path(folder) / "roelofs.jsonl", settings)
    done = {} if record is None else {i: np.array(values) for i, values in record.read().items()}
    worlds = [(fit.world(), n) for fit, n in cells]
    for i, values in simulate(_all_errors, worlds, n_sets, seed=seed, engine=engine, skip=done):
        done[i] = _moments(values)
        if record is not None:
            record.add(i, done[i])
    rows = [
        _compared(fit.name, 100 * tce(fit.world()), n, *method, moments, n_sets)
        for i, (fit, n) in enumerate(cells)
        for method, moments in zip(METHODS, done[i], strict=True)
    ]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def summary(table: Table) -> Table:
    """A row per fit, method and number of bins, and a column a size; published biases in parentheses."""
    named = Table({**table, "bins": [_bins(row) for row in table.rows()]})
    return wide(named, ("fit", "method", "bins"), lambda row: beside(row["bias"], row["published"], 2))


def figure(table: Table) -> "Figure":
    """Maps of the biases: bins by sizes, one per fit and method."""
    rows = [{**row, "method": _titled(row["method"]), "bins": _bins(row)} for row in table.rows()]
    shown = Table({key: [row[key] for row in rows] for key in ("fit", "method", "bins", "n", "bias")})
    return pictures.heatmaps(
        shown, down="fit", across="method", y="bins", x="n", value="bias", label="bias in points", limit=6
    )


@cache
def published() -> dict[tuple[str, str, str, int, int], float]:
    """Published numbers that can be read, by quantity, fit, method, bins and size."""
    text = files("studies.roelofs").joinpath("bias.csv").read_text(encoding="utf-8")
    kinds = {"ECE_BIN": "", "ECE_DEBIAS": " debiased", "ECE_SWEEP": " sweep"}
    return {
        (
            row["quantity"],
            row["dataset"],
            row["binning"] + kinds[row["metric"]],
            max(int(row["bins"]), SWEEP),
            int(row["n"]),
        ): float(row["value"])
        for row in csv.DictReader(text.splitlines())
        if row["status"] in READABLE[row["quantity"]]
    }


def _all_errors(batch: Batch) -> list[np.ndarray]:
    return [errors(batch, *method) for method in METHODS]


def _moments(values: np.ndarray) -> np.ndarray:
    """Mean and standard deviation of each row, and the spread from which the latter's standard error comes."""
    mean, sd = values.mean(axis=1), values.std(axis=1, ddof=1)
    squares = (values - mean[:, None]) ** 2
    return np.stack([mean, sd, squares.std(axis=1, ddof=1) / (2 * sd)], axis=1)


def _compared(
    fit: str, truth: float, n: int, method: str, bins: int, moments: np.ndarray, n_sets: int
) -> dict[str, object]:
    mean, sd, spread = moments
    key = (fit, method, bins, n)
    bias, of_sd = (published().get((quantity, *key), np.nan) for quantity in READABLE)
    return {
        "fit": fit,
        "method": method,
        "bins": bins,
        "n": n,
        "bias": mean - truth,
        "published": bias,
        "deviation": mean - truth - bias,
        "z": deviation(mean - truth, bias, sd, n_sets),
        "sd": sd,
        "published_sd": of_sd,
        "sd_z": deviation(sd, of_sd, spread, n_sets),
        "data_sets": n_sets,
    }


def deviation(value: float, published: float, sd: float, n_sets: int) -> float:
    """Difference of two means of values with spread ``sd``, less the rounding of the printed one, in standard errors."""
    noise = sd * np.sqrt(1 / n_sets + 1 / PUBLISHED_SETS)
    return float(np.maximum(np.abs(value - published) - ROUNDING, 0) / noise)


def _bins(row: dict[str, Any]) -> str:
    return "sweep" if row["bins"] == SWEEP else str(row["bins"])


def _titled(method: str) -> str:
    """The sweep is shown with the plug-in errors of its kind of bins."""
    return method.replace(" sweep", "").replace("EW", "equal width").replace("EM", "equal mass").replace(" d", ", d")
