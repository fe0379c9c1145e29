"""Canonical calibration errors by kernels and by bins: figure 2 of Popordanoska, Sayer & Blaschko (2022).

Figure 2a: predictions of 4 and 8 classes near the faces of the simplex (temperatures 0.6 and 0.6), and how far estimates of
the canonical error are from the truth, which is integrated. Bins are of equal width, so many a class. KDE is the estimate
of the paper, with the likeliest bandwidth; it converges, but slowly, because noise and smoothing both add up.
`TangentKDE` is within 5 % of the truth at 20,000 rows. Bins are not, but for five a class with four classes, whose bias
falls and passes zero thereabouts.

Figure 2b: the square of a frequency around 0.17 with bandwidth 0.5, by the ratio of equation (7), and by the ratio with
its bias removed. The predictions are a sigmoid of calibrated ones. At 256 rows the bias left is less than a third; at
32, fewer than 25 of them matter, and nothing is corrected.

The paper prints no numbers for its figures. The column `part` is how much of what was to be shown is used up: a relative
bias of 5 % at 20,000 rows, a third of the bias at 256. Rates are slopes of the logarithm of the root mean squared error.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import linregress

from calibrant._softmax import Softmax
from calibrant.estimators.canonical import CanonicalECE
from calibrant.estimators.dirichlet import DirichletRows, log_kernel
from calibrant.estimators.kde import KDE
from calibrant.estimators.partition import Grid
from calibrant.estimators.ratios import FULL, PARTIAL, Ratios
from calibrant.estimators.tangent import TangentKDE
from calibrant.lab.papers import pictures
from calibrant.lab.papers.layout import wide
from calibrant.lab.problems import TwiceTempered
from calibrant.lab.study import Progress, Study
from calibrant.results import Table
from calibrant.typing import Engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES = (4, 8)
SIZES = (128, 512, 2048, 8192, 20_000)
LARGE, SETS_OF_LARGE = 8192, 10
"""From so many rows on there are fewer data sets."""

MEASURES = (
    ("KDE, p = 1", KDE(1, debias=False)),
    ("KDE, p = 2, debiased", KDE(2)),
    ("TangentKDE, p = 1", TangentKDE(1)),
    ("TangentKDE, p = 2", TangentKDE(2)),
    *((f"{bins} bins, p = 1", CanonicalECE(Grid(bins))) for bins in (5, 10, 15)),
)

LOCATION, BANDWIDTH = 0.17, 0.5
SHARPNESS_SIZES = (32, 128, 256, 512, 2048, 8192)
REDRAWN = 1 << 25
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
    """Relative bias of every estimate with its error, in percent, and the rates at which their errors fall.

    >>> table = study(2, sizes=[64, 128], repetitions=1_000)
    >>> table.n_rows, list(table)[:4]
    (40, ['panel', 'n', 'estimate', 'truth'])
    """
    worlds = [TwiceTempered(k) for k in CLASSES]
    small, large = [n for n in sizes if n < LARGE], [n for n in sizes if n >= LARGE]
    rows: list[dict[str, Any]] = []
    for name, some, sets in (("small", small, n_sets), ("large", large, min(n_sets, SETS_OF_LARGE))):
        if some:
            path = None if folder is None else Path(folder) / f"popordanoska-{name}.jsonl"
            table = Study(worlds, some, MEASURES, sets, seed)(engine=engine, progress=progress, path=path)
            rows += [_error_row(worlds, row) for row in table.rows()]
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
    """Relative bias against sizes with two standard errors; grey is 5 % to either side."""
    return pictures.lines(
        table,
        panels=("panel",),
        x="n",
        y="bias",
        line="estimate",
        error="error",
        label="bias in % of the truth",
        level=(-5.0, 0.0, 5.0),
        columns=3,
    )


def _error_row(worlds: list[TwiceTempered], row: dict[str, Any]) -> dict[str, Any]:
    """A row of figure 2a."""
    world = next(w for w in worlds if w.name == row["world"])
    scale = 100 / row["truth"]
    is_claim = row["n"] == SIZES[-1] and row["measure"].startswith("Tangent")
    return {
        "panel": f"{world.n_classes} classes",
        "n": row["n"],
        "estimate": row["measure"],
        "truth": row["truth"],
        "bias": scale * row["bias"],
        "error": scale * row["sd"] / np.sqrt(row["n_sets"]),
        "rmse": scale * row["rmse"],
        "part": abs(scale * row["bias"]) / 5 if is_claim else np.nan,
        "data_sets": row["n_sets"],
    }


def _sharpness_rows(n: int, repetitions: int | None, seed: int) -> list[dict[str, Any]]:
    """Rows of figure 2b: both corrections on the same data."""
    sets = repetitions or int(np.clip(REDRAWN // n, 10_000, 400_000))
    truth = _frequency() ** 2
    partial, full = _squares(n, sets, np.random.default_rng([seed, n])) / truth - 1
    used = 3 * abs(full.mean()) / abs(partial.mean()) if n == 256 else np.nan
    return [
        {
            "panel": "square at 0.17",
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
    happened, all_ = (quad(lambda u, power=power: _kernel(u)[0] * u**power, 0, 1, epsrel=1e-10)[0] for power in (1, 0))
    return float(happened / all_)


def _squares(n: int, sets: int, rng: np.random.Generator) -> np.ndarray:
    """The square of the frequency with both corrections, ``(2, sets)``."""
    values, size = [], max(1, (1 << 22) // n)
    for start in range(0, sets, size):
        u = rng.random((min(size, sets - start), n))
        happened = rng.random(u.shape) < u
        k = _kernel(u.ravel()).reshape(u.shape)
        w = k / k.sum(axis=1, keepdims=True)
        squares = w * w
        local = Softmax(
            np.log(k.sum(axis=1)),
            (w * happened).sum(axis=1, keepdims=True),
            squares.sum(axis=1),
            (squares * happened).sum(axis=1, keepdims=True),
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
