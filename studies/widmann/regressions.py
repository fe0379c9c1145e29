"""Calibration of regressions: figures 1, 3, 4, 5 and 12 of Widmann, Lindsten & Zachariah (2021).

Ten networks learn the problem Friedman 1 from 100 rows of ten features; 50 other rows test them. Each predicts normal
distributions, with one standard deviation that is the likeliest for the rows it learns from. They are trained anew here, on
the published data and from other random weights, ten times 5,000 iterations of Adam. The kernel is
``exp(-W2) exp(-(y - y')^2 / 2)``.

The figure shows the range of ten models and their mean, and the mixture of all ten, the ensemble. Crosses are published
means of ten models, rings published ensembles. On the test rows, the likelihood of the ensemble is best after some 280
iterations and its kernel error after some 220.

After more than 1,000 iterations the published test, a bootstrap, rejects the models on the test rows, with mean p-values below
0.05, and not the ensemble. That is a lack of power, and no sign of calibration: the exact test rejects the ensemble as well.
Its p-values for the published ensemble are 0.0165 after 1,000 iterations and 0.0005, the least that 1,999 resamples can
give, after 1,500; for the new one 0.009 and 0.0015. Averaging lowers the unbiased kernel error to 0.43 and 0.29 of the mean of
the ten new networks, and 0.43 and 0.35 of that of the published ones, which is not yet calibration. After 100 and 500
iterations neither test finds anything.

Published kernel errors of ensembles are too small by 6 to 14 %: the program that computed them left out some pairs of
components of the mixture, 9 of 100. This lowers the curves of ensembles for SKCE in figures 3 and 12, by some 9 % where models
agree; dashes show what it does. With the same pairs left out, the published numbers come out to all digits. Published
p-values of ensembles are hardly touched, as the draws they are ranked among are lowered alike. Rings in the figures
are the published ensembles with all pairs.

The column `part` is how much of the allowed difference is used up: a relative 1e-9 for all that is computed from published
models, four standard errors for their p-values (of 1,000 draws) and for the means of ten models trained anew, and a
quarter for the iterations at which curves turn.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.results import Table, number
from calibrant.typing import Engine
from studies import pictures
from studies.layout import Section, wide
from studies.widmann import figures, least_squares
from studies.widmann import friedman as networks
from studies.widmann.data import DATA, EXACT, MEASURED, QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED, BOUND = 0, 1.0
UNIT = "parts of what is allowed"

LEFT_OUT = "ensemble, pairs left out"

SIX = ("MSE", "NLL", "pinball", "SKCE (unbiased)", "SKCE (biased)", "p-value")
"""The panels of figure 12."""

DIFFERENCES = """The largest relative differences over six iterations, both samples and ten models; absolute ones of p-values. Of
these, one of 240 is off by more than 0.05: the published ones are shares of 1,000 draws, with standard errors up to
0.016."""

EXACT_TEST = """P-values on the same rows, by the bootstrap as published and by `ExactTest` with 1,999 resamples; of ten models the
mean, and in parentheses the least and the largest."""

PAIRS = """Crosses are the published numbers, and for all pairs those of an independent program.

The paper remarks that the biased error, too, is consistently better of the ensemble than on average of its members. That was
owed to the pairs left out. With all of them it is worse on the train rows after 100, 500 and 1,000 iterations, and on
the test rows after 100."""

ITERATIONS = tuple(sorted({*networks.COMPARED, *np.geomspace(10, 5000, 100).round().astype(int).tolist()}))
"""After which the new networks are measured."""


def study(
    *,
    iterations: Sequence[int] = ITERATIONS,
    n_resamples: int = networks.PUBLISHED_DRAWS,
    published_resamples: int = networks.DRAWS,
    exact_resamples: int = networks.EXACT_DRAWS,
    seed: int = SEED,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Table:
    """All numbers of the three experiments, what was published, and how much of the allowed difference is used up.

    Of ten models, ``value`` is the mean, between ``low`` and ``high``. P-values of new and of published networks are ranks
    among so many draws, those of the exact test among draws of its own. Needs torch.
    """
    options: Any = {"exact_resamples": exact_resamples, "engine": engine}
    new = networks.measure_new(iterations, n_resamples=n_resamples, seed=seed, folder=folder, **options)
    published = networks.measure_published(n_resamples=published_resamples, **options)
    rows = [
        *networks.new_rows(new),
        *networks.published_rows(published, published_resamples),
        *least_squares.rows(seed),
    ]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def summary(table: Table) -> Table:
    """New networks after the iterations that were published: one row per quantity, published numbers in parentheses."""
    rows = [r for r in table.rows() if r["experiment"] == "new networks" and r["iteration"] in networks.COMPARED]
    rows = [{**r, "iteration": int(r["iteration"])} for r in sorted(rows, key=_place)]
    shown = Table({key: [row[key] for row in rows] for key in rows[0]})
    return wide(shown, ("quantity", "data", "model"), _beside, across="iteration")


def figure(table: Table) -> "Figure":
    """Figure 3: the first 1,500 iterations."""
    return figures.training_curves(table, ("MSE", "NLL", "SKCE (biased)", "p-value"), last=1500, is_log=False)


def sections(table: Table) -> list[Section]:
    """The other figures, and tables of all that is compared."""
    _, _, words = (least_squares.__doc__ or "").strip().partition("\n\n")
    return [
        Section(
            "figure-12",
            "Figure 12: all iterations, and where the curves of the test rows turn",
            _columns([row for row in table.rows() if "iteration" in row["quantity"]]),
            figures.training_curves(table, SIX, last=5000, is_log=True),
        ),
        Section(
            "figure-1",
            "Figures 1, 4 and 5: a straight line and its quantiles",
            _columns([row for row in table.rows() if row["experiment"] == "least squares"]),
            figures.line_and_quantiles(),
            words,
        ),
        Section(
            "published-networks",
            "The published networks, measured again",
            _largest_differences(table),
            text=DIFFERENCES,
        ),
        Section("exact-test", "What the exact test says of the published networks", _pvalues(table), text=EXACT_TEST),
        Section(
            "ensembles",
            "Ensembles of the published networks, with all pairs of components and without some",
            _pairs(table),
            _pairs_figure(table),
            PAIRS,
        ),
    ]


def _columns(rows: list[networks.Row]) -> Table:
    """What was found and what was expected."""
    names = ("model", "quantity", "value", "expected", "part")
    return Table({name: [row[name] for row in rows] for name in names})


def _largest_differences(table: Table) -> Table:
    """A row a quantity, a column a kind of model."""
    largest: dict[str, dict[str, float]] = {quantity: {} for quantity in QUANTITIES}
    for row in table.rows():
        if row["experiment"] == "published networks" and row["quantity"] in largest:
            cells = largest[row["quantity"]]
            cells[row["model"]] = max(cells.get(row["model"], 0.0), row["difference"])
    columns = {kind: [_power(cells.get(kind, np.nan)) for cells in largest.values()] for kind in networks.PLACES}
    return Table({"quantity": list(largest), **columns})


def _pvalues(table: Table) -> Table:
    """A row an iteration and data: p-values of the published bootstrap and of the exact test."""
    chosen = [r for r in table.rows() if r["experiment"] == "published networks" and "p-value" in r["quantity"]]
    found = {(int(r["iteration"]), r["data"], r["model"], r["quantity"]): r for r in chosen}
    keys = list(dict.fromkeys(key[:2] for key in found))
    columns = {
        f"{kind}, {name}": [_range(found[*key, kind, quantity]) for key in keys]
        for kind in ("models", "ensemble")
        for name, quantity in (("bootstrap", "p-value"), ("exact", EXACT))
    }
    return Table({"iteration": [key[0] for key in keys], "data": [key[1] for key in keys], **columns})


def _range(row: networks.Row) -> str:
    """The value; of ten models their mean, least and largest."""
    value, low, high = (f"{row[key]:.4f}" if row[key] >= 1e-4 else "< 0.0001" for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})" if row["model"] == "models" else value


def _power(difference: float) -> str:
    """Differences of rounding by their size, others as they are."""
    return "" if np.isnan(difference) else f"{difference:.0e}" if difference < 1e-6 else f"{difference:.3f}"


def _pairs(table: Table) -> Table:
    """A row an iteration, data and error: with all pairs, without some, and by how many percent the latter is smaller."""
    chosen = [r for r in table.rows() if r["experiment"] == "published networks" and "SKCE" in r["quantity"]]
    found = {(r["quantity"], r["data"], int(r["iteration"]), r["model"]): r for r in chosen}
    keys = [key for key in found if key[-1] == "ensemble"]
    whole = np.array([found[key]["value"] for key in keys])
    incomplete = np.array([found[*key[:-1], LEFT_OUT]["value"] for key in keys])
    return Table(
        {
            "iteration": [key[2] for key in keys],
            "data": [key[1] for key in keys],
            "error": [key[0] for key in keys],
            "published": [found[*key[:-1], LEFT_OUT]["expected"] for key in keys],
            "pairs left out": incomplete,
            "all pairs": whole,
            "too small by": [f"{x:.1f} %" for x in 100 * (1 - incomplete / whole)],
        }
    )


def _pairs_figure(table: Table) -> "Figure":
    """The biased errors of the published networks from 100 iterations on."""
    rows = [
        {**row, "data": f"{row['data']} rows"}
        for row in table.rows()
        if row["experiment"] == "published networks" and row["quantity"] == "SKCE (biased)" and row["iteration"] >= 100
    ]
    shown = Table({key: [row[key] for row in rows] for key in rows[0]})
    line: Any = {"x": "iteration", "y": "value", "line": "model", "published": "expected"}
    return pictures.lines(shown, panels=("data",), label="SKCE (biased)", **line)


def _place(row: networks.Row) -> tuple[int, int, int, float]:
    """The order of rows: by quantity, data, kind of model and iteration."""
    return (
        MEASURED.index(row["quantity"]),
        DATA.index(row["data"]),
        list(networks.PLACES).index(row["model"]),
        row["iteration"],
    )


def _beside(row: networks.Row) -> str:
    """The value, with the published one in parentheses where there is one."""
    published = f" ({number(row['expected'])})" if np.isfinite(row["expected"]) else ""
    return number(row["value"]) + published
