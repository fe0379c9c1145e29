"""The command that shows what there is to see, on predictions that ship with calibrant."""

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from calibrant import io
from calibrant._files import write_whole
from calibrant.cli import display
from calibrant.cli.flags import Fields, Seed, check_writable
from calibrant.cli.pipes import DASH
from calibrant.cli.program import OUTPUT
from calibrant.cli.reporting import check_place, made, show, write


class Demo(NamedTuple):
    """An example file, what its columns hold, and the heading of its page."""

    columns: dict[str, Any]
    title: str
    usage: str


DEMOS = {
    "digits": Demo(
        {"y_true": "digit", "y_pred": "p_*", "by": ["ink"]},
        "Handwritten digits, read by a small neural network",
        "calibrant report FILE --y-true COLUMN --y-pred 'p_*' --by COLUMN",
    ),
    "diabetes": Demo(
        {"y_true": "progression", "predict": "Normal(mu, sigma)", "by": ["sex"]},
        "Progression of diabetes, by linear regression",
        'calibrant report FILE --y-true COLUMN --predict "Normal(COLUMN, COLUMN)" --by COLUMN',
    ),
}


def demo(
    name: Annotated[Literal["digits", "diabetes"], Parameter(help="classes or numbers")] = "digits",
    /,
    *,
    out: Annotated[Path, Parameter(group=OUTPUT)] = Path("calibrant-demo.html"),
    data: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    seed: Seed = 0,
) -> int:
    """Make a report on predictions that ship with calibrant.

    They are those of a small neural network that reads handwritten digits, or of a linear regression of the progression of
    diabetes, on rows that the model had not seen.

    Parameters
    ----------
    out
        where to write the page; - for the standard output
    data
        where to write the predictions and the truth, as CSV, to try other commands on
    """
    chosen = DEMOS[name]
    check_place(out, "table")
    if data is not None:
        check_writable(data, "--data")
        write_whole(data, io.example(name).read_bytes())
    fields = Fields(**{key: value for key, value in chosen.columns.items() if key != "by"})
    source = fields.source(data or Path(f"{name}.csv"))
    report = made(io.read(io.example(name), **chosen.columns), chosen.title, 999, seed, source)
    write(report, out)
    show(report, out, "table")
    with display.aside(out == DASH):
        display.say(f"\nThe same for your own file:  {chosen.usage}")
    return 0
