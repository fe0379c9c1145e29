"""The command that shows what there is to see, on predictions that ship with calibrant."""

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from calibrant import io
from calibrant._files import write_whole
from calibrant._validate import InputError
from calibrant.cli import display
from calibrant.cli.flags import Fields, Seed, check_writable
from calibrant.cli.pipes import DASH
from calibrant.cli.program import OUTPUT
from calibrant.cli.reporting import check_place, made, show, write
from calibrant.reports.core.model import check_page_ending


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
        where to write the predictions and the truth, as CSV, to try other commands on; beside the page unless it is said
    """
    chosen = DEMOS[name]
    check_place(out, "table")
    check_page_ending(out, "--out")
    data = written(name, out, data)
    fields = Fields(**{key: value for key, value in chosen.columns.items() if key != "by"})
    source = fields.source(data)
    report = made(io.read(io.example(name), **chosen.columns), chosen.title, 999, seed, source)
    write(report, out)
    show(report, out, "table")
    with display.aside(out == DASH):
        display.say(f"\nThe predictions are in {data}. The same for your own file:  {chosen.usage}")
    return 0


def written(name: str, out: Path, data: Path | None) -> Path:
    """The file that the advice of the page names, written where it was wished, else beside the page.

    A file of that name that is not ours is left alone. A page for the standard output has none beside it: the advice then names
    the file that ships with the package.
    """
    content = io.example(name).read_bytes()
    if data is None and out == DASH:
        return io.example(name)
    place = out.parent / f"calibrant-{name}.csv" if data is None else data
    check_writable(place, "--data")
    if data is None and place.is_file() and place.read_bytes() != content:
        raise InputError(
            f"{str(place)!r} is there and holds something else: say where to write the predictions, --data FILE"
        )
    write_whole(place, content)
    return place
