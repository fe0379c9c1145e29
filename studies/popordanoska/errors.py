"""Canonical calibration errors by kernels and by bins: figures 1 to 3 of Popordanoska, Sayer & Blaschko (2022).

Figure 2a: predictions of 4 and 8 classes near the faces of the simplex (temperatures 0.6 and 0.6), and how far estimates of
the canonical error are from the truth, which is integrated. Bins are of equal width, so many a class or as many as Doane's
formula says, and their error is the paper's own: ``1/n sum_i ||H(f_i) - f_i||_p^p``, where H are the frequencies of classes in
a cell. For p = 2 the root is taken of all errors. KDE is the estimate of the paper, with the likeliest bandwidth.

What the paper says of bins comes out: none is within 16 % of the truth at 20,000 rows, because each prediction is compared with
the frequencies of a whole cell. What it says of its own estimate comes out for p = 2 with four classes. With eight it is 29 %
too low, though nearer than bins. For p = 1 it does not come out: the estimate is 93 and 132 % too high, further off than all
bins with four classes and than half of them with eight, and its error falls no faster than n to the power of -0.06, because
noise and smoothing both add up.

`Variational(Lp(1))` holds: at 20,000 rows it is within 1 % of the truth, and at no size above it by more than chance.
`TangentKDE` is within 5 % here, too, but it needs many rows for every class: with eight classes it misses 12 % at 2,048
rows where `Variational` misses 2, and with more classes it tends to zero. Take
`Variational`.

Figure 2b: the square of a frequency around 0.17 with bandwidth 0.5, by the ratio of equation (7), and by the ratio with
its bias removed. The predictions are a sigmoid of calibrated ones. At 32 and at 256 rows the bias left is less than a third.

The paper prints no numbers for its figures. The column `part` is how much of what is said here of this library is used up: a
relative bias of 5 % of `Variational` and `TangentKDE` at 20,000 rows, a third of the bias at 32 and at 256. Above 1, the
command leaves with code 1; the claims of the paper are shown, and do not count. Rates are slopes of the logarithm of the root
mean squared error.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import linregress

from calibrant import KDE, Variational
from calibrant._softmax import Softmax
from calibrant.estimators import CanonicalECE, Grid, Lp, TangentKDE
from calibrant.estimators.simplex.dirichlet import DirichletRows, log_kernel
from calibrant.estimators.simplex.kde import FULL, PARTIAL, Ratios
from calibrant.lab import Study, TwiceTempered
from calibrant.lab.study import Progress
from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.layout import Section, wide
from studies.popordanoska import densities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES = (4, 8)
SIZES = (128, 512, 2048, 8192, 20_000)
LARGE, SETS_OF_LARGE = 8192, 10
"""From so many rows on there are fewer data sets."""


HELD = "Variational, p = 1"
KERNELS = (
    ("KDE, p = 1", KDE(1, debias=False)),
    ("KDE, p = 2, debiased", KDE(2)),
    ("TangentKDE, p = 1", TangentKDE(1)),
    ("TangentKDE, p = 2", TangentKDE(2)),
)
BINS: tuple[int | Literal["doane"], ...] = (5, 10, 15, "doane")
CELLS = tuple(
    (f"{str(bins).capitalize()} bins, p = {norm}", CanonicalECE(Grid(bins), norm, label_binned=True))
    for norm in (1, 2)
    for bins in BINS
)
PARTS = {"kernels": KERNELS, "cells": CELLS, "variational": ((HELD, Variational(Lp(1))),)}
"""What is measured, in parts that are kept in files of their own."""

MEASURES = tuple(measure for part in PARTS.values() for measure in part)

DRAWN = ("KDE, p = 1", "KDE, p = 2, debiased", "TangentKDE, p = 1", "5 bins, p = 1", "15 bins, p = 1", HELD)
"""Lines of the figure."""

LOCATION, BANDWIDTH = 0.17, 0.5
SQUARE = "square at 0.17"
NEAR = 5.0
"""Percent of the truth within which an estimate has found it."""

CLAIMS = """Of figure 2a the paper says that its estimate converges to the truth with 4 and with 8 classes, whereas bins are poor
even with 20,000 rows. It prints no numbers. This table does not decide whether the command succeeds."""

SHARPNESS_SIZES = (32, 128, 256, 512, 2048, 8192)
MAX_RESAMPLED_ROWS = 1 << 25
"""Rows simulated for each size of figure 2b, between 10,000 and 400,000 repetitions."""

BOUND, SEED = 1.0, 0
UNIT = "parts of what was to be shown"


def study(
    n_sets: int = 50,
    *,
    sizes: Sequence[int] = SIZES,
    repetitions: int | None = None,
    seed: int = SEED,
    engine: Engine | None = None,
    progress: Progress | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """Relative bias of every estimate with its error, in percent, and the rates at which their errors fall."""
    worlds = [TwiceTempered(k) for k in CLASSES]
    small, large = [n for n in sizes if n < LARGE], [n for n in sizes if n >= LARGE]
    rows: list[dict[str, Any]] = []
    for part, measures in PARTS.items():
        for name, some, sets in (("small", small, n_sets), ("large", large, min(n_sets, SETS_OF_LARGE))):
            if some:
                path = None if folder is None else Path(folder) / f"popordanoska-{part}-{name}.jsonl"
                table = Study(worlds, some, measures, sets, seed)(engine=engine, progress=progress, path=path)
                rows += [_error_row(worlds, row) for row in table.rows()]
    rows.sort(key=lambda row: row["panel"])
    rows += [row for n in SHARPNESS_SIZES for row in _sharpness_rows(n, repetitions, seed)]
    return _with_rates(rows)


def summary(table: Table) -> Table:
    """A row an estimate and a column a size: the relative bias in percent with its standard error; and the rate."""
    order = np.argsort(table["n"], kind="stable")
    ordered = Table({name: table[name][order] for name in table})
    cells = wide(ordered, ("panel", "estimate"), lambda row: f"{row['bias']:+.2f} ± {row['error']:.2f}")
    rates = {(row["panel"], row["estimate"]): row["rate"] for row in table.rows()}
    column = [f"{rates[key]:.2f}" for key in zip(cells["panel"], cells["estimate"], strict=True)]
    return Table({**cells, "rate": column})


def figure(table: Table) -> "Figure":
    """Relative bias against sizes with two standard errors; grey is 5 % to either side. Of bins the fewest and 15 for p = 1."""
    shown = np.isin(table["estimate"], DRAWN) | (table["panel"] == SQUARE)
    return pictures.lines(
        Table({name: table[name][shown] for name in table}),
        panels=("panel",),
        x="n",
        y="bias",
        line="estimate",
        error="error",
        label="bias in % of the truth",
        level=(-5.0, 0.0, 5.0),
        columns=3,
    )


def sections(table: Table) -> list[Section]:
    """What the paper says of its figure, and what came out; its other figures."""
    return [
        Section("claims", "What the paper says, and what came out", claims(table), text=f"{CLAIMS}\n\n{remark(table)}"),
        *densities.sections(),
    ]


def claims(table: Table) -> Table:
    """Biases in percent at the most rows: the estimate of the paper beside bins, and whether all of these are further off."""
    last = max(row["n"] for row in table.rows() if row["panel"] != SQUARE)
    found = {(row["panel"], row["estimate"]): row["bias"] for row in table.rows() if row["n"] == last}
    rows = []
    for panel in dict.fromkeys(panel for panel, _ in found if panel != SQUARE):
        for norm, (name, _) in zip((1, 2), KERNELS, strict=False):
            bins = [found[panel, cell] for cell, measure in CELLS if measure.norm == norm]
            kde = found[panel, name]
            rows.append(
                {
                    "panel": panel,
                    "estimate": name,
                    "n": last,
                    "bias": f"{kde:+.1f} %",
                    "bins (5, 10, 15, Doane)": ", ".join(f"{bias:+.1f}" for bias in bins) + " %",
                    "near the truth": "yes" if abs(kde) <= NEAR else "no",
                    "bins further off": f"{sum(abs(bias) > abs(kde) for bias in bins)} of {len(bins)}",
                }
            )
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def remark(table: Table) -> str:
    """How much of what the paper says comes out."""
    rows = list(claims(table).rows())
    near = sum(row["near the truth"] == "yes" for row in rows)
    best = sum(row["bins further off"] == f"{len(CELLS) // 2} of {len(CELLS) // 2}" for row in rows)
    return (
        f"The paper's claim at n = {rows[0]['n']:,}: its estimate is within {NEAR:.0f} % of the truth in {near} of {len(rows)} "
        f"cases, and nearer to it than every number of bins in {best}."
    )


def _error_row(worlds: list[TwiceTempered], row: dict[str, Any]) -> dict[str, Any]:
    """A row of figure 2a."""
    world = next(w for w in worlds if w.name == row["world"])
    scale = 100 / row["truth"]
    is_claim = row["n"] == SIZES[-1] and row["measure"].startswith(("Tangent", HELD))
    return {
        "panel": f"{world.n_classes} classes",
        "n": row["n"],
        "estimate": row["measure"],
        "truth": row["truth"],
        "bias": scale * row["bias"],
        "error": scale * row["sd"] / np.sqrt(row["n_sets"]),
        "rmse": scale * row["rmse"],
        "part": abs(scale * row["bias"]) / NEAR if is_claim else np.nan,
        "data_sets": row["n_sets"],
    }


def _sharpness_rows(n: int, repetitions: int | None, seed: int) -> list[dict[str, Any]]:
    """Rows of figure 2b: both corrections on the same data."""
    sets = repetitions or int(np.clip(MAX_RESAMPLED_ROWS // n, 10_000, 400_000))
    truth = _frequency() ** 2
    partial, full = _squares(n, sets, np.random.default_rng([seed, n])) / truth - 1
    used = 3 * abs(full.mean()) / abs(partial.mean()) if n in (32, 256) else np.nan
    return [
        {
            "panel": SQUARE,
            "n": n,
            "estimate": name,
            "truth": truth,
            "bias": 100 * values.mean(),
            "error": 100 * values.std(ddof=1) / np.sqrt(sets),
            "rmse": 100 * np.sqrt(np.mean(values**2)),
            "part": part,
            "data_sets": sets,
        }
        for name, values, part in (("partly debiased", partial, np.nan), ("fully debiased", full, used))
    ]


def _predicted(u: np.ndarray) -> np.ndarray:
    """What is predicted where u is true."""
    return expit(10 * u - 5)


def _kernel(u: np.ndarray) -> np.ndarray:
    """The kernel around the location, of predictions made where u is true."""
    f = _predicted(np.atleast_1d(u))
    rows = DirichletRows.of(np.stack([1 - f, f], axis=1), BANDWIDTH)
    here = DirichletRows.of(np.array([[1 - LOCATION, LOCATION]]), BANDWIDTH)
    return np.exp(log_kernel(here, rows)[0])


def _frequency() -> float:
    """The frequency around the location in endless data: ``E k(f) u / E k(f)`` for even u."""
    observed, all_ = (quad(lambda u, power=power: _kernel(u)[0] * u**power, 0, 1, epsrel=1e-10)[0] for power in (1, 0))
    return float(observed / all_)


def _squares(n: int, sets: int, rng: np.random.Generator) -> np.ndarray:
    """The square of the frequency with both corrections, ``(2, sets)``."""
    values, size = [], max(1, (1 << 22) // n)
    for start in range(0, sets, size):
        u = rng.random((min(size, sets - start), n))
        observed = rng.random(u.shape) < u
        k = _kernel(u.ravel()).reshape(u.shape)
        w = k / k.sum(axis=1, keepdims=True)
        squares = w * w
        local = Softmax(
            np.log(k.sum(axis=1)),
            (w * observed).sum(axis=1, keepdims=True),
            squares.sum(axis=1),
            (squares * observed).sum(axis=1, keepdims=True),
        )
        # The location is a row of its own, and sees n others.
        values.append([Ratios.of(local, n + 1, debias).square[:, 0] for debias in (PARTIAL, FULL)])
    return np.concatenate(values, axis=1)


def _with_rates(rows: list[dict[str, Any]]) -> Table:
    """The table, with the slope of the error of every estimate over all sizes."""
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        lines.setdefault((row["panel"], row["estimate"]), []).append((np.log(row["n"]), np.log(row["rmse"])))
    rates = {key: linregress(*zip(*line, strict=True)).slope for key, line in lines.items()}
    rows = [{**row, "rate": rates[row["panel"], row["estimate"]]} for row in rows]
    return Table({key: [row[key] for row in rows] for key in rows[0]})
