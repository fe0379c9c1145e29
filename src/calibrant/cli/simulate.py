"""The command that simulates data like one's own."""

from typing import Annotated

from cyclopts import Parameter

from calibrant._validate import check_count
from calibrant.cli import display
from calibrant.cli.flags import Fields, File, Output, Seed, Texts, print_json
from calibrant.cli.settings import parse_estimator
from calibrant.estimators.binned.binning import EqualMass, EqualWidth
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.binned.sweep import Sweep
from calibrant.lenses.class_lenses import default_lens
from calibrant.results import brief

USUAL = [
    *(ECE(EqualWidth(15)), ECE(EqualMass(15)), ECE(Sweep()), DebiasedECE(EqualMass(15), norm=1)),
    *(ECE(EqualWidth(15), norm=2), ECE(EqualMass(15), norm=2), ECE(Sweep(), norm=2), DebiasedECE(EqualMass(15))),
]
"""What `simulate` compares when nothing is asked for."""


def simulate(
    file: File,
    /,
    *,
    data: Fields = Fields(),  # noqa: B008  # frozen
    estimator: Annotated[Texts, Parameter(negative="", show_default=False)] = (),
    size: Annotated[tuple[int, ...], Parameter(negative="", show_default=False)] = (),
    data_sets: int = 200,
    workers: int = 1,
    seed: Seed = 0,
    format: Output = "table",
) -> int:
    """How biased are calibration errors on data like mine?

    Fits a world with known truth to the file (beta-distributed scores, and the best of twelve calibration curves), draws
    data sets from it, and shows how far each estimator is off.

    Parameters
    ----------
    estimator
        such as "ECE(bins=Sweep(), norm=2)"; may be repeated; without any, the usual binned errors
    size
        rows of the simulated data sets; may be repeated; without any, as many as the file has
    data_sets
        simulated data sets
    workers
        processes that share the work; the digits do not depend on them
    """
    from calibrant.lab.fits import fit_curves, fit_world
    from calibrant.lab.study import bias_study

    check_count(data_sets, "--data-sets", least=10)
    check_count(workers, "--workers")
    for n in size:
        check_count(n, "--size", least=2)
    chosen = [parse_estimator(text) for text in estimator] or USUAL
    read = data.read(file)
    lens = default_lens(read.y_pred)
    curves, world = fit_curves(read.y_true, read.y_pred, lens=lens), fit_world(read.y_true, read.y_pred, lens=lens)
    sizes = list(dict.fromkeys(size)) or [len(read.y_pred)]
    table = bias_study(world, chosen, sizes, data_sets, seed=seed, engine=display.ProgressEngine(workers, "Simulating"))
    if format == "json":
        print_json({"world": repr(world), "curves": curves.to_dict(), "bias": table.to_dict()})
        return 0
    display.say(f"Data like these: {brief(world)}")
    display.show_table(curves, "calibration curves, best first")
    display.show_table(table, f"estimators on {data_sets} data sets of that world")
    return 0
