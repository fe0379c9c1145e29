"""What commands share: options, outputs, JSON."""

import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from calibrant import io
from calibrant._clusters import as_clusters
from calibrant._files import check_name
from calibrant._validate import InputError
from calibrant.cli import console
from calibrant.cli.pipes import DASH, is_stream, local, name_of
from calibrant.cli.program import DATA, OUTPUT, SETTINGS
from calibrant.inference.dependence import TimeBlocks
from calibrant.io.layout import FileLayout
from calibrant.io.opening import Source
from calibrant.results import jsonable


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class Fields:
    """Which columns of the file hold what."""

    y_true: Annotated[
        str | None,
        Parameter(help="column of the truth; 'y_*' for several labels per row, answer==key for two that agree"),
    ] = None
    y_pred: Annotated[
        tuple[str, ...],
        Parameter(
            help="column of probabilities; 'p_*' for a column per class; report compares several",
            negative="",
            show_default=False,
        ),
    ] = ()
    predict: Annotated[
        str | None, Parameter(help="a family and its columns: \"Categorical.from_logits(logits='z_*')\"")
    ] = None
    sample_weight: Annotated[str | None, Parameter(help="column of weights")] = None
    pos_label: Annotated[str | None, Parameter(help="the label whose probability a single column gives")] = None
    input_format: Annotated[
        Literal["csv", "tsv", "parquet", "jsonl", "json", "xlsx", "npz"] | None,
        Parameter(help="format of FILE, where neither its ending nor its first bytes say it"),
    ] = None
    sep: Annotated[str | None, Parameter(help="what stands between values of text: ';' or tab")] = None
    encoding: Annotated[str | None, Parameter(help="of text that is not UTF-8: latin-1, cp1252, utf-16-le")] = None
    decimal: Annotated[str | None, Parameter(help="decimal sign, where 1,234 may mean two numbers: , or .")] = None
    scale: Annotated[
        str | None, Parameter(help="of probabilities: percent, log, logit, or what words mean: high=0.9,low=0.4")
    ] = None

    def read(self, file: Source, told: Sequence[str] = ()) -> io.Dataset:
        """The file's targets and predictions; notes on them are shown, but for those that have been told."""
        return self._read(file, told)

    def _read(self, file: Source, told: Sequence[str], exclude: Sequence[str] = ()) -> io.Dataset:
        said = {name: value for name, value in asdict(self).items() if name not in (*exclude, "input_format", "shards")}
        found = io.read(self.local(file), **{**said, "y_pred": self.single(), "format": self.input_format})
        for note in found.notes:
            if note not in told:
                console.complain(f"Note: {note}.")
        return found

    def local(self, file: Source) -> Source:
        """The file itself; of a pipe, one with what came through."""
        return local(file, self.input_format) if isinstance(file, Path) else file

    @property
    def layout(self) -> FileLayout:
        """How the file is written."""
        return FileLayout(self.input_format, self.sep, self.encoding, self.decimal)

    def single(self) -> str | None:
        """The column of predictions, or the pattern of several."""
        if len(self.y_pred) > 1:
            both = " ".join(f"--y-pred {shlex.quote(name)}" for name in self.y_pred)
            alone = f"of a column per class say --y-pred {','.join(self.y_pred)}"
            raise InputError(f"{both} are several models, which calibrant report compares; {alone}")
        return self.y_pred[0] if self.y_pred else None

    def source(self, file: Path) -> list[str]:
        """The words that name the file and its columns to other commands; of a pipe, a file to be saved first."""
        words = ["FILE" if is_stream(file) else str(file)]
        for f in fields(self):
            if f.name in ("by", "shards") or (value := getattr(self, f.name)) == f.default:
                continue
            for one in value if isinstance(value, tuple) else (value,):
                words += [f"--{f.name.replace('_', '-')}", *([] if one is True else [str(one)])]
        return words


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class TableFields(Fields):
    """Which columns of the file hold what, and what becomes of rows that are not as they should be."""

    missing: Annotated[
        Literal["fail", "drop"], Parameter(help="rows without a value: fail, or drop them; the page counts them")
    ] = "fail"
    normalise: Annotated[bool, Parameter(help="divide rows of class probabilities by their sums", negative="")] = False
    rearrange: Annotated[bool, Parameter(help="sort quantiles that cross", negative="")] = False
    forecast_id: Annotated[
        str | None, Parameter(help="columns that the lines of a forecast share, where each member has a line")
    ] = None


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class ClusteredFields(TableFields):
    """Which columns of the file hold what, and which rows belong together."""

    clusters: Annotated[
        str | None, Parameter(help="column of labels of rows that belong together, such as question_id or patient")
    ] = None
    time: Annotated[
        str | None, Parameter(help="column of times: rows near each other may be alike, and are tested in blocks")
    ] = None
    block: Annotated[int | None, Parameter(help="steps in time of a block; without --time, consecutive rows")] = None

    def read(self, file: Source, told: Sequence[str] = ()) -> io.Dataset:
        """The file's targets and predictions; blocks are made clusters, and this is told."""
        found = self._read(file, told, exclude=("block",))
        if found.clusters is not None:
            as_clusters(found.clusters, len(found.clusters), f"--clusters {self.clusters}")
        if self.time is None and self.block is None:
            return found
        if self.clusters is not None:
            said = "--time" if self.time is not None else "--block"
            raise InputError(f"--clusters and {said} both say which rows belong together: leave one out")
        blocks = TimeBlocks.of(found.y_true, found.y_pred, found.time, self.block)
        console.complain(f"Note: {blocks.in_words()}.")
        return replace(found, clusters=blocks.labels, notes=(*found.notes, blocks.in_words()))


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class Data(ClusteredFields):
    """Which columns of the file hold what, which slice it, and which rows belong together."""

    by: Annotated[
        tuple[str, ...], Parameter(help="column to slice by; may be repeated", negative="", show_default=False)
    ] = ()
    shards: Annotated[
        bool,
        Parameter(
            help="the files are parts of one data set; a quoted pattern, 'part_*.csv', needs no --shards", negative=""
        ),
    ] = False

    def check_others(self, others: Sequence[Path]) -> None:
        """Refuse further columns of an option, which the command line takes for files."""
        for other in others if self.y_pred else ():
            looks_like_a_column = not (other.suffix or is_stream(other) or any(sign in str(other) for sign in "*/"))
            if looks_like_a_column and not other.exists():
                together = f"--y-pred {','.join([*self.y_pred[-1:], *map(str, others)])}"
                raise InputError(f"there is no file {str(other)!r}: if it is a column of probabilities, say {together}")

    def together(self, file: Path, others: Sequence[Path]) -> Source:
        """One file, or several that are parts of one data set."""
        self.check_others(others)
        if not others:
            return file
        if not self.shards:
            said = "if they are parts of one data set, say --shards; calibrant report compares models of the same rows"
            raise InputError(f"{len(others) + 1} files: {said}")
        if streams := [path for path in (file, *others) if is_stream(path)]:
            raise InputError(f"--shards takes files, and {name_of(streams[0])} is a pipe: cat the parts into one")
        return [file, *others]


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class FoldedData(Data):
    """The same, and which of several models, trained on other rows, made the prediction of each."""

    fold: Annotated[
        str | None, Parameter(help="column of folds: predictions are of several models, each trained without its fold")
    ] = None


File = Annotated[
    Path, Parameter(help="predictions and truth: text, Parquet, JSON, Excel, NPZ, a log; - reads from a pipe")
]
Others = Annotated[Path, Parameter(help="further files of the same rows, one per model, to compare with", show=True)]
Shards = Annotated[Path, Parameter(help="further files, with --shards", show=True)]
Output = Annotated[Literal["table", "json"], Parameter(name="--format", help="for people or programs", group=OUTPUT)]
Comment = Annotated[
    Literal["table", "json", "markdown"],
    Parameter(name="--format", help="for people, programs or pull requests", group=OUTPUT),
]
Texts = tuple[str, ...]
Gates = Annotated[
    Texts,
    Parameter(
        name="--fail-if",
        help="leave with code 1 if this holds: 'ECE > 0.05'; may be repeated",
        negative="",
        show_default=False,
        group=OUTPUT,
    ),
]
Certify = Annotated[
    float | None,
    Parameter(
        help="leave with code 1 unless the calibration error is certified to be below this margin: 0.02 for 2 points",
        group=OUTPUT,
    ),
]
Seed = Annotated[int, Parameter(help="seed of all random draws", group=SETTINGS)]
Place = Annotated[
    str | None,
    Parameter(name="--engine", help="where to work: threads:8, processes:4, gpus or dask://host:8786", group=SETTINGS),
]


def sentences(notes: Sequence[str]) -> tuple[str, ...]:
    """What was told of a file, as a page says it.

    >>> sentences(["rows are sorted"])
    ('Rows are sorted.',)
    """
    return tuple(f"{note[:1].upper()}{note[1:]}." for note in notes)


def opened(engine: str | None) -> Any:
    """The engine of a text, for ``with``; nothing without one."""
    if engine is None:
        return nullcontext()
    from calibrant.engines import connect

    return connect(engine)


def check_writable(path: Path, option: str) -> None:
    """Refuse a place where no file can be."""
    check_name(path)
    if path == DASH:
        raise InputError(f"{option} takes a file: the standard output has no room for it")
    if not path.parent.is_dir():
        raise InputError(f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise InputError(f"{option} {str(path)!r} is a folder: name a file in it")
    if (path.is_file() or not path.exists()) and not os.access(Path(os.path.realpath(path)).parent, os.W_OK):
        raise InputError(f"{option} {str(path)!r}: nothing can be written to the folder {str(path.parent)!r}")
    with suppress(FileNotFoundError):
        path.stat()  # a loop of links is an error that names it


def check_outputs(inputs: Sequence[Path], outputs: Mapping[str, Path | None]) -> None:
    """Refuse to write where nothing can be, over what is read, and twice to one place."""
    taken = {key for path in inputs for key in _keys(path)}
    for option, path in outputs.items():
        if path is None:
            continue
        check_writable(path, option)
        keys = _keys(path)
        if taken & keys:
            raise InputError(f"{option} {str(path)!r} is in use by this very command: choose another name")
        taken |= keys


def _keys(path: Path) -> set[object]:
    """What a file is known by: its place without links and, if it is there, its number, which hard links share."""
    check_name(path)
    keys: set[object] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):
        found = path.stat()
        if stat.S_ISREG(found.st_mode) and found.st_ino:
            keys.add((found.st_dev, found.st_ino))
    return keys


def print_json(value: object) -> None:
    """For programs."""
    console.emit(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False))
