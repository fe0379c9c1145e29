"""The program, and what its commands share: options, JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

import calibrant
from calibrant import io
from calibrant._validate import InputError
from calibrant.results import jsonable

app = App(
    name="calibrant",
    version=calibrant.__version__,
    help="Can I believe these probabilities? Start with `calibrant demo`, then `calibrant report FILE`.",
)


@Parameter(name="*")
@dataclass(frozen=True)
class Fields:
    """Which columns of the file hold what."""

    y_true: Annotated[str | None, Parameter(help="column of the truth; 'y_*' for several labels a row")] = None
    y_pred: Annotated[str | None, Parameter(help="column of probabilities; 'p_*' for a column a class")] = None
    predict: Annotated[
        str | None, Parameter(help="a family and its columns: \"Categorical.from_logits(logits='z_*')\"")
    ] = None
    sample_weight: Annotated[str | None, Parameter(help="column of weights")] = None
    pos_label: Annotated[str | None, Parameter(help="the label whose probability a single column gives")] = None

    def read(self, file: Path) -> io.Dataset:
        """The file's targets and predictions."""
        return io.read(file, **asdict(self))


@Parameter(name="*")
@dataclass(frozen=True)
class Data(Fields):
    """Which columns of the file hold what, and which slice it."""

    by: Annotated[tuple[str, ...], Parameter(help="column to slice by; may be repeated", negative="")] = ()


Output = Annotated[Literal["table", "json"], Parameter(name="--format", help="for people or for programs")]
Texts = tuple[str, ...]
Gates = Annotated[Texts, Parameter(name="--fail-if", help="leave with code 1 if this holds: 'ECE > 0.05'", negative="")]
Seed = Annotated[int, Parameter(help="seed of all random draws")]


def check_writable(path: Path, option: str) -> None:
    """Refuse a place where no file can be."""
    if not path.parent.is_dir():
        raise InputError(f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise InputError(f"{option} {str(path)!r} is a folder: name a file in it")


def print_json(value: object) -> None:
    """For programs."""
    print(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False))
