"""``python -m studies NAME``: a published experiment or one of our own, repeated."""

import sys
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter

from calibrant._validate import InputError, check_count
from calibrant.cli import display, guarded
from calibrant.cli.flags import Output, print_json
from calibrant.cli.program import OUTPUT, SETTINGS
from calibrant.results import Table
from studies import layout, pictures

MIN_DATA_SETS, DATA_SETS_OF_BOUNDS = 10, 100
"""Data sets of a cell: as many as a look needs, and as a bound in standard errors needs."""

app = App(
    name="python -m studies", help_format="plaintext", version_flags=[], default_parameter=Parameter(group=SETTINGS)
)


def main(arguments: list[str] | None = None) -> None:
    """Run a study and leave with 0, with 1 where a cell lies too far off, with 2 and one line on bad input."""
    guarded(lambda _: app, sys.argv[1:] if arguments is None else arguments, "studies")


@app.default
def reproduce(
    study: Literal[
        "estimator-error",
        "rejection-rates",
        "widmann",
        "roelofs",
        "popordanoska",
        "berta",
        "berta-methods",
        "berta-coverage",
        "coverage",
    ],
    /,
    *,
    data_sets: int | None = None,
    seed: Annotated[
        int | None, Parameter(help="seed of all random draws; without it, the one of our own table")
    ] = None,
    workers: int = 1,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    keep: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    format: Output = "table",
) -> int:
    """Repeat a published experiment or one of our own, and say how far its numbers are from what was published or promised.

    Leaves with code 1 where a cell lies further off than chance allows.

    Parameters
    ----------
    study
        estimator-error: errors and variances of the kernel error (Widmann, Lindsten & Zachariah 2021, figures 6 to 9);
        rejection-rates: how often tests reject (figures 2, 10 and 11; hours);
        widmann: its regressions, a line and networks (figures 1, 3 to 5 and 12; minutes; needs torch);
        roelofs: bias and spread of binned errors (Roelofs et al. 2022, figures 4 and 9 to 14);
        popordanoska: canonical errors by kernels and bins (Popordanoska, Sayer & Blaschko 2022, figures 1 to 3; ten minutes);
        berta: variational errors (Berta et al. 2026, figures 1 and 3, table 2; ten minutes);
        berta-methods: every recalibrator they compare, and table 1 on other data (ten minutes);
        berta-coverage: how often their lower bounds hold on such data (ten minutes);
        coverage: whether everything that is stated of uncertainty holds, in seventy worlds (hours)
    data_sets
        simulated data sets a cell; without it as many as were published. Fewer than 100 are for a look: bounds are for more
    workers
        processes that share the work; the digits do not depend on them
    out
        folder for the table and the figure, as STUDY.md and STUDY.svg
    keep
        folder for finished cells, so that a study that is broken off goes on where it stopped
    """
    from studies.berta import bounds, compared, variational
    from studies.coverage import study as coverage
    from studies.popordanoska import errors as popordanoska
    from studies.roelofs import bias
    from studies.widmann import estimator_error, regressions, rejection_rates

    if data_sets is not None:
        check_count(data_sets, "--data-sets", least=MIN_DATA_SETS)
    check_count(workers, "--workers")
    for folder in filter(None, (out, keep)):
        folder.mkdir(parents=True, exist_ok=True)
    papers: dict[str, Any] = {
        "estimator-error": estimator_error,
        "rejection-rates": rejection_rates,
        "widmann": regressions,
        "roelofs": bias,
        "popordanoska": popordanoska,
        "berta": variational,
        "berta-methods": compared,
        "berta-coverage": bounds,
        "coverage": coverage,
    }
    paper = papers[study]
    sets = {} if data_sets is None else {"n_sets": data_sets}
    if sets and "n_sets" not in signature(paper.study).parameters:
        raise InputError(f"--data-sets goes with simulations, and {study} has data of its own; leave it out")
    engine = display.ProgressEngine(workers, study)
    table: Table = paper.study(seed=paper.SEED if seed is None else seed, engine=engine, folder=keep, **sets)
    if out is not None:
        _write_study(out / study, paper, table)
    if out is not None and study == "roelofs":
        _write_figures(out, engine, sets)
    worst = max(float(np.nanmax(table[name])) for name in layout.differences(table))
    if format == "json":
        print_json({"study": study, "bound": paper.BOUND, **table.to_dict()})
    else:
        title = study if study == "coverage" else f"{study}, with the published values"
        display.show_table(paper.summary(table), title)
        if hasattr(paper, "remark"):
            display.say(f"\n{paper.remark(table)}")
        display.say(f"\nlargest difference: {worst:.2f} {paper.UNIT} (bound {paper.BOUND})")
        if data_sets is not None and data_sets < DATA_SETS_OF_BOUNDS:
            display.say(
                f"{data_sets} data sets are few: chance alone may exceed the bound; it is for {DATA_SETS_OF_BOUNDS} and more"
            )
    return 1 if worst > paper.BOUND else 0


def _write_study(path: Path, paper: Any, table: Table) -> None:
    """The page and the picture of a study."""
    picture = path.with_suffix(".svg")
    picture.write_text(pictures.svg(paper.figure(table)), "utf-8")
    title, _, text = paper.__doc__.strip().partition("\n\n")
    agreement = paper.tally(table) if hasattr(paper, "tally") else layout.agreement(table, paper.BOUND, paper.UNIT)
    page = [f"# {title}", text, f"![{title}]({picture.name})", agreement, paper.summary(table).to_markdown()]
    for section in paper.sections(table) if hasattr(paper, "sections") else ():
        page += _section(path.parent, path.name, section)
    path.with_suffix(".md").write_text("\n\n".join(page) + "\n", "utf-8")


def _section(folder: Path, study: str, section: Any) -> list[str]:
    """The paragraphs of a part of a page; its picture goes to the folder."""
    paragraphs = [f"## {section.title}", *filter(None, [section.text])]
    if section.figure is not None:
        name = f"{study}-{section.name}.svg"
        (folder / name).write_text(pictures.svg(section.figure), "utf-8")
        paragraphs.append(f"![{section.title}]({name})")
    return paragraphs if section.table is None else [*paragraphs, section.table.to_markdown()]


def _write_figures(folder: Path, engine: display.ProgressEngine, sets: dict[str, int]) -> None:
    """The other figures and tables of the paper."""
    from studies.roelofs import pages

    title, _, text = (pages.__doc__ or "").strip().partition("\n\n")
    page = [f"# {title}", text]
    for section in pages.sections(engine=engine, **sets):
        page += _section(folder, "roelofs", section)
    (folder / "roelofs-figures.md").write_text("\n\n".join(page) + "\n", "utf-8")


if __name__ == "__main__":
    main()
