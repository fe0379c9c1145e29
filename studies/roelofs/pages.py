"""Figures 6 to 8 and tables 1 to 3 of Roelofs, Cain, Shlens & Mozer (2022) from the published fits.

Errors are in points (hundredths), p = 2. The paper prints no numbers for its figures: what can be checked are its
statements, and these hold. Over all fits and sizes of figure 6 the mean size of the bias is 0.33 points for the sweep with
equal mass (EM), 0.49 debiased, 0.67 for fifteen bins of equal mass, 2.0 for as many of equal width (EW) and 3.9 for the
sweep with equal width. In figure 8 the sweep with equal mass misses least wherever anything is missed.
"""

from calibrant.results import Table
from calibrant.typing import Engine
from studies import pictures
from studies.layout import Section, wide
from studies.roelofs import figures


def sections(n_sets: int = 1000, *, seed: int = 0, engine: Engine | None = None) -> list[Section]:
    """All parts of the page, simulated anew."""
    six = figures.figure_6(n_sets, seed=seed, engine=engine)
    seven = figures.figure_7(n_sets, seed=seed, engine=engine)
    eight = figures.figure_8(n_sets, seed=seed, engine=engine)
    levels = Table({**eight, "true error": [f"true error {x:.0f} points" for x in eight["true_error"]]})
    shapes = [f"Beta({row['alpha']:g}, {row['beta']:g}), n = {row['n']:,}" for row in seven.rows()]
    powers = Table({**seven, "scores": shapes})
    return [
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
        Section("table-1", "Table 1: the fits and their true errors", figures.table_1()),
        Section("table-2", "Table 2: twelve curves on data simulated from a fit", figures.table_2(seed=seed)),
        Section("table-3", "Table 3: mean errors on simulated data sets", figures.table_3(seed=seed, engine=engine)),
    ]
