"""Figures 1, 6 to 8 and 15, and tables 1 to 3 of Roelofs, Cain, Shlens & Mozer (2022) from the published fits.

Errors are in points (hundredths), p = 2. The paper prints no numbers for its figures: what can be checked are its
statements, and all but one hold. Over all fits and sizes of figure 6 the mean size of the bias is 0.33 points for the sweep with
equal mass (EM), 0.49 debiased, 0.67 for fifteen bins of equal mass, 2.0 for as many of equal width (EW) and 3.9 for the
sweep with equal width. In figure 8 the sweep with equal mass misses least wherever anything is missed.

KDE is the estimate of Zhang, Kailkhura & Han (2020), on fewer data sets as it takes one after the other. The paper says that its
bias is much higher than that of all others. It is 1.6 points on average: more than with equal mass, less than with equal width.
"""

from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.layout import Section, wide
from studies.roelofs import figures


def sections(n_sets: int = 1000, *, seed: int = 0, engine: Engine | None = None) -> list[Section]:
    """All parts of the page, simulated anew."""
    one = figures.figure_1(100 * n_sets, seed=seed, engine=engine)
    six = figures.figure_6(n_sets, seed=seed, engine=engine)
    kde = figures.figure_6_kde(max(n_sets // 10, 2), seed=seed, engine=engine)
    six = Table({key: [*six[key], *kde[key]] for key in six})
    fifteen = figures.figure_15(n_sets, seed=seed, engine=engine)
    seven = figures.figure_7(n_sets, seed=seed, engine=engine)
    eight = figures.figure_8(n_sets, seed=seed, engine=engine)
    levels = Table({**eight, "true error": [f"true error {x:.0f} points" for x in eight["true_error"]]})
    shapes = [f"Beta({row['alpha']:g}, {row['beta']:g}), n = {row['n']:,}" for row in seven.rows()]
    powers = Table({**seven, "scores": shapes})
    return [
        Section(
            "figure-1",
            "Figure 1: what is found in 200 rows of a calibrated model",
            Table({key: one[key][:-1] for key in ("error", "share")}),
            text=f"The mean is {one['middle'][-1]:.2f} points, where the truth is 0.",
        ),
        Section(
            "figure-6",
            "Figure 6: bias of every method with its default bins",
            wide(six, ("fit", "method"), lambda row: f"{row['bias']:+.2f}"),
            pictures.lines(six, panels=("fit",), x="n", y="bias", line="method", label="bias in points"),
        ),
        Section(
            "figure-7",
            "Figure 7: bias where the truth is a power of the score",
            Table({key: powers[key] for key in ("scores", "degree", "method", "tce", "mean", "bias")}),
            pictures.lines(powers, panels=("scores",), x="degree", y="bias", line="method", label="bias in points"),
        ),
        Section(
            "figure-8",
            "Figure 8: how often miscalibration is missed at 5 % false alarms",
            wide(levels, ("true error", "method"), lambda row: f"{row['missed']:.3f}"),
            pictures.lines(levels, panels=("true error",), x="n", y="missed", line="method", label="share missed"),
        ),
        Section(
            "figure-15",
            "Figure 15: which number of bins the sweep takes",
            wide(fifteen, ("model", "bins"), lambda row: f"{row['mean']:.2f}"),
            pictures.lines(fifteen, panels=("model",), x="bins", y="mean", line="n", label="mean error in points"),
            text=chosen(fifteen),
        ),
        Section("table-1", "Table 1: the fits and their true errors", figures.table_1()),
        Section("table-2", "Table 2: twelve curves on data simulated from a fit", figures.table_2(seed=seed)),
        Section(
            "table-3",
            "Table 3: mean errors on simulated data sets",
            figures.table_3(min(n_sets, 100), seed=seed, engine=engine),
            text=figures.TABLE_3,
        ),
    ]


def chosen(table: Table) -> str:
    """How many bins the sweep takes, in words."""
    found = {(row["model"], row["n"]): (row["chosen"], row["tce"]) for row in table.rows()}
    return "\n".join(
        f"* {model}, n = {n:,}: {bins:.1f} bins on average; the true error is {truth:.2f} points"
        for (model, n), (bins, truth) in found.items()
    )
