"""Files as named columns: text with separators, Parquet, JSON, Excel and NPZ, read and written."""

import math
import sys
import zlib
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from calibrant._files import replacing
from calibrant._validate import InputError, check_is, check_names_once, did_you_mean
from calibrant._wording import said
from calibrant.io.json_files import json_lines
from calibrant.io.layout import PLAIN, Commas, FileLayout, Utf8, other_encoding
from calibrant.io.lines import BLOCK, line_feeds, whole_lines
from calibrant.io.records import CsvLines, JsonLines, check_text, deep_line, split_header
from calibrant.io.spreadsheets import read_or_refused
from calibrant.io.written_numbers import Role, inferred, refuse_text, tidied
from calibrant.results import how_many

if TYPE_CHECKING:
    import polars

T = TypeVar("T")

KINDS = "biufUSTOmM"
"""What columns may hold, by NumPy's letters: numbers, text, dates; neither complex numbers nor structures."""

ENDINGS = (".npz", ".csv", ".parquet", ".jsonl", ".ndjson")
"""What can be read and written."""


class Columns(ABC):
    """The columns of a file, by name."""

    notes: dict[str, None]
    """What a reader must know of how values were read."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names, self.notes = path, list(names), {}

    @abstractmethod
    def load(self, names: Sequence[str], role: Role = "label") -> np.ndarray:
        """These columns side by side, ``(n, columns)``; text that says numbers as numbers."""

    @abstractmethod
    def are_missing(self, name: str, role: Role) -> np.ndarray:
        """Which rows have no value there, ``(n,)``."""

    @abstractmethod
    def of_rows(self, keep: np.ndarray) -> Self:
        """The same columns of some rows."""

    def complete(self, roles: Mapping[str, Role]) -> Self:
        """The rows that have a value in each of these columns; how many have none is noted."""
        missing = {name: self.are_missing(name, role) for name, role in roles.items()}
        gone = np.any(list(missing.values()), axis=0)
        if not gone.any():
            return self
        if gone.all():
            raise InputError(f"{self.path.name}: every row lacks a value in one of {', '.join(missing)}")
        which = ", ".join(f"{name!r} ({rows.sum():,})" for name, rows in missing.items() if rows.any())
        found = self.of_rows(~gone)
        note = f"{how_many(int(gone.sum()), 'row')} of {len(gone):,} left out, without a value in {which}"
        found.notes = {**self.notes, note: None}
        return found

    @abstractmethod
    def width(self, name: str) -> int:
        """How many columns of :meth:`load` this name stands for."""

    @abstractmethod
    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        """Write all columns, in their order, with new values ``(n, width)`` in some; names that are new come last."""

    def find(self, wish: str | None, usual: Sequence[str], option: str) -> list[str]:
        """The columns a wish names: one, several separated by commas, or a pattern."""
        if wish is None:
            if found := self.usual(usual):
                return found
            raise InputError(
                f"{self.path.name} has columns {', '.join(self.names[:20])}: say which with {said(option)}"
            )
        check_is(wish, str, said(option), "the name of a column")
        wish = wish if wish in self.names else _as_written(wish)
        found = []
        for part in [wish] if wish in self.names else wish.split(","):
            matches = [name for name in self.names if name == part or fnmatchcase(name, part)]
            if not matches:
                inside = [name for name in self.names if name.startswith(f"{part}.")]  # of an object within an object
                near = f" (did you mean '{part}.*'?)" if len(inside) > 1 else did_you_mean(part, self.names)
                sides = part.split("=")
                if len(sides) == 2 and all(side.strip() in self.names for side in sides):
                    near = f" (did you mean '{'=='.join(sides)}'?)"
                raise InputError(f"{said(option)}: {self.path.name} has no column {part!r}{near}")
            found += matches
        return found

    def without_value(self, name: str, gone: np.ndarray) -> str:
        """What is wrong with a column in which some rows have no value, and what to do."""
        rows = f"{int(gone.sum()):,} of {how_many(len(gone), 'row')}, first in row {int(gone.argmax()) + 1}"
        remedy = f"leave such rows out with {said('missing', 'drop')}"
        return f"{self.path.name}: column {name!r} has missing values in {rows}: {remedy}"

    def usual(self, patterns: Sequence[str]) -> list[str]:
        """The columns of the first pattern that any has, if one does."""
        for pattern in patterns:
            if found := [name for name in self.names if fnmatchcase(name.strip().lower(), pattern)]:
                return found
        return []

    def values(self, names: Sequence[str], role: Role = "label") -> np.ndarray:
        """These columns side by side, ``(n, columns)``, with at least one row."""
        values = self.load(names, role)
        if not len(values):
            raise InputError(f"{self.path.name} has no rows")
        return values

    def single(self, name: str, option: str) -> np.ndarray:
        """One column, ``(n,)``."""
        found = self.find(name, (), option)
        values = self.values(found, "number" if option == "sample_weight" else "group")
        if values.shape[1] != 1:
            raise InputError(f"{said(option)} takes one column at a time; {name!r} means {', '.join(found[:5])}")
        return values[:, 0]


def check_exists(path: Path) -> None:
    """Refuse a file that is not there."""
    try:
        is_there = path.exists()
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long or has a zero byte
        raise InputError(f"there can be no file {str(path)!r}: {error}") from error
    if not is_there and path.is_symlink():
        raise InputError(f"{str(path)!r} is a link to a file that is not there, or to itself: name the file")
    if not is_there:
        near = did_you_mean(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file {str(path)!r}{near if 'did you mean' in near else ''}")


def check_ending(path: Path) -> None:
    """Refuse to write files of a kind that is not known."""
    if path.suffix.lower() not in ENDINGS:
        ending = path.suffix or "a file without ending"
        raise InputError(f"{path.name}: cannot write {ending}; known: {', '.join(ENDINGS)}")


class Archive(Columns):
    """NPZ: arrays with equally many rows, of which some may have several columns."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as handle, ZipFile(handle) as archive:
                names = [member.filename.removesuffix(".npy") for member in archive.infolist()]
                if other := [name for name in archive.namelist() if not name.endswith(".npy")]:
                    raise ValueError(f"{other[0]!r} in it is no array: keep arrays alone")
                found = [_array(archive, member) for member in archive.infolist()]
        except (BadZipFile, ValueError, ArithmeticError, EOFError, OSError, RuntimeError, zlib.error) as error:
            raise InputError(f"{path.name} cannot be read as NPZ: {_first_line(error)}") from error
        except MemoryError as error:
            raise InputError(f"{path.name} does not fit into memory: read a part of it") from error
        self.arrays: dict[str, np.ndarray] = dict(zip(names, found, strict=True))
        check_names_once(names, path.name)
        super().__init__(path, names)

    def are_missing(self, name: str, role: Role) -> np.ndarray:
        """Those with NaN."""
        array = self.joined([name])
        rows: np.ndarray = np.isnan(array).any(axis=1) if array.dtype.kind == "f" else np.zeros(len(array), dtype=bool)
        return rows

    def of_rows(self, keep: np.ndarray) -> Self:
        """Of arrays with as many rows."""
        found = copy(self)
        found.arrays = {name: array[keep] if len(array) == len(keep) else array for name, array in self.arrays.items()}
        return found

    def load(self, names: Sequence[str], role: Role = "label") -> np.ndarray:
        """Arrays as columns; NaN is refused."""
        values = self.joined(names)
        if values.dtype.kind == "f" and (gone := np.isnan(values).any(axis=1)).any():
            raise InputError(self.without_value(names[0], gone))
        return values

    def joined(self, names: Sequence[str]) -> np.ndarray:
        """Arrays as columns."""
        self.check_rows(names)
        parts = [self.arrays[name] for name in names]
        if odd := [name for name, part in zip(names, parts, strict=True) if part.dtype.kind not in KINDS]:
            raise InputError(f"{self.path.name}: {odd[0]!r} holds {self.arrays[odd[0]].dtype}: give numbers or text")
        parts = [part.reshape(len(part), -1) if part.size else part[:, None] for part in parts]
        try:
            return np.concatenate(parts, axis=1)
        except TypeError as error:
            raise InputError(f"{self.path.name}: {', '.join(names[:5])} mix dates with numbers") from error

    def check_rows(self, names: Sequence[str]) -> None:
        """Refuse arrays of different lengths."""
        parts = [self.arrays[name] for name in names]
        if any(part.ndim == 0 for part in parts) or len({len(part) for part in parts}) > 1:
            raise InputError(f"{self.path.name}: {', '.join(names)} must be arrays with equally many rows")
        if empty := [name for name in names if len(self.arrays[name]) and not self.arrays[name].size]:
            raise InputError(f"{self.path.name}: {empty[0]} has rows of no values")

    def width(self, name: str) -> int:
        """As many as the array has."""
        array = self.arrays[name]
        return array.size // len(array)

    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        """The arrays with some replaced or added, to a file."""
        shapes = {name: self.arrays[name].shape if name in self.arrays else (-1,) for name in new}
        arrays = {**self.arrays, **{name: values.reshape(shapes[name]) for name, values in new.items()}}
        if out.suffix.lower() == ".npz":
            _write_archive(arrays, out)
            return
        pl = polars_of(out)
        self.check_rows(self.names)
        flat: dict[str, np.ndarray] = {}
        for name, array in arrays.items():
            columns = array.reshape(len(array), -1).T
            flat |= {name: array} if array.ndim == 1 else {f"{name}_{i}": c for i, c in enumerate(columns)}
        _write_frame(pl.DataFrame(flat), out)


class Frame(Columns):
    """What Polars reads."""

    keep: "polars.Series | None" = None
    """Rows that are taken; all of them without."""

    decimal: str | None = None

    def __init__(self, path: Path, kind: str, layout: FileLayout = PLAIN) -> None:
        polars_of(path)
        super().__init__(path, ())
        self.kind, self.decimal = kind, layout.decimal
        self.content: bytes | None = None
        header = None
        if kind == ".csv":
            header, self.content, told = _checked_text(path, layout)
            self.notes = dict.fromkeys(told)
        elif kind != ".parquet":
            self.kind, self.content, told = json_lines(path, kind, layout)
            self.notes = dict.fromkeys(told)
            if self.kind == ".jsonl" and (deep := deep_line(self.content)) is not None:
                raise InputError(f"{path.name}: line {deep + 1} nests too deeply: give one value per column")
        self.lazy = self.reading(self.scan)
        self.names = self.reading(lambda: self.lazy.collect_schema().names())
        if header is not None and len(header) != len(self.names):
            raise InputError(
                f"{path.name} begins with {len(self.names)} columns, and {len(header)} names: give each a name"
            )

    def scan(self, *, as_text: bool = False) -> "polars.LazyFrame":
        """The file, types inferred from all rows: a column may begin with a hundred zeros. Brackets in a name are no pattern."""
        pl = polars_of(self.path)
        source = self.path if self.content is None else self.content
        if self.kind == ".csv":
            return pl.scan_csv(source, glob=False, infer_schema=not as_text, infer_schema_length=None)
        if self.kind == ".parquet":
            return pl.scan_parquet(source, glob=False)
        return _flat(pl.scan_ndjson(source, infer_schema_length=None))

    def reading(self, step: Callable[[], T]) -> T:
        """What a step gives; what Polars refuses is refused in our words."""
        try:
            with read_or_refused(self.path.name, self.kind[1:]):
                return step()
        except (polars_of(self.path).exceptions.PolarsError, OSError) as error:
            if self.kind == ".jsonl":
                JsonLines().check(self.content or b"", None, 1, self.path.name)
            if self.kind == ".csv" and not _is_utf8(self.path if self.content is None else self.content):
                raise InputError(f"{self.path.name} is no UTF-8 text: {other_encoding()}") from error
            raise InputError(f"{self.path.name} cannot be read as {self.kind[1:]}: {_first_line(error)}") from error

    def collected(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns in memory."""
        from polars.selectors import by_name

        if self.kind == ".jsonl":
            JsonLines().check(self.content or b"", names, 1, self.path.name)
        found = self.reading(lambda: self.lazy.select(by_name(*names)).collect().select(names))
        if self.kind == ".jsonl" and sum(found.null_count().row(0)):  # so old releases read long integers
            JsonLines().check(self.content or b"", names, 1, self.path.name, is_doubted=True)
        return found

    def tidy(self, names: Sequence[str], role: Role) -> "polars.DataFrame":
        """These columns, text that says numbers as numbers."""
        frame = self.collected(names)
        frame = frame.with_columns([tidied(frame[n], self.decimal, role, self.notes) for n in names])
        if self.keep is None:
            return frame
        frame = frame.filter(self.keep)
        return frame.with_columns([inferred(frame[n]) for n in names]) if self.kind == ".csv" else frame

    def are_missing(self, name: str, role: Role) -> np.ndarray:
        """Those that are empty, NaN or say so."""
        return self.tidy([name], role)[name].is_null().to_numpy()

    def of_rows(self, keep: np.ndarray) -> Self:
        """The same file, of which some rows are taken."""
        import polars as pl

        found = copy(self)
        found.keep = pl.Series(keep)
        return found

    def load(self, names: Sequence[str], role: Role = "label") -> np.ndarray:
        """These columns as an array; missing values are refused."""
        frame = self.tidy(names, role)
        if missing := [name for name in names if frame[name].null_count()]:
            raise InputError(self.without_value(missing[0], frame[missing[0]].is_null().to_numpy()))
        if odd := [name for name in names if is_no_value(frame[name].dtype)]:
            raise InputError(
                f"{self.path.name}: column {odd[0]!r} holds {frame[odd[0]].dtype}: give one number or text per row"
            )
        if long := [name for name in names if is_too_long(frame[name].dtype)]:
            raise InputError(
                f"{self.path.name}: column {long[0]!r} has integers beyond 64 bits: write them as fractions"
            )
        if role == "number" and (text := [name for name in names if str(frame[name].dtype) == "String"]):
            raise refuse_text(frame[text[0]], self.path.name)
        return frame.to_numpy()

    def width(self, name: str) -> int:
        """One: columns of frames hold numbers."""
        return 1

    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        """The table with columns replaced or added, to a file."""
        pl = polars_of(out)
        # From CSV to CSV other columns stay text, to the letter: 007 is not 7.
        as_text = self.kind == out.suffix.lower() == ".csv"
        frame = self.reading(lambda: self.scan(as_text=as_text).collect())
        frame = frame if self.keep is None else frame.filter(self.keep)
        frame = frame.with_columns([pl.Series(name, values.reshape(-1)) for name, values in new.items()])
        if out.suffix.lower() == ".npz":
            _write_archive({name: _plain(frame[name], out) for name in frame.columns}, out)
        else:
            _write_frame(frame, out)


class FramePart(Frame):
    """Some rows of a file, as a data frame in memory."""

    def __init__(self, path: Path, frame: "polars.DataFrame", decimal: str | None = None) -> None:
        Columns.__init__(self, path, frame.columns)
        self.frame, self.decimal = frame, decimal
        self.kind = path.suffix.lower()

    def scan(self, *, as_text: bool = False) -> "polars.LazyFrame":
        """The rows at hand."""
        return self.frame.lazy()

    def without_value(self, name: str, gone: np.ndarray) -> str:
        """What is wrong: who reads parts leaves such rows out, and counts them."""
        return f"column {name!r} has missing values"

    def collected(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns as they are."""
        return self.frame.select(names)


def _flat(lazy: "polars.LazyFrame") -> "polars.LazyFrame":
    """Objects within objects as columns ``probs.A``."""
    import polars as pl

    while nested := [name for name, dtype in lazy.collect_schema().items() if isinstance(dtype, pl.Struct)]:
        lazy = lazy.with_columns([pl.col(name).name.prefix_fields(f"{name}.") for name in nested]).unnest(nested)
    return lazy


def _checked_text(path: Path, layout: FileLayout) -> tuple[list[str], bytes | None, list[str]]:
    """The names in the first line of a CSV, of which every other line must have as many values.

    Where it is not ordinary, its content in ordinary text and what is to be told of it come with them.
    """
    names: list[str] = []
    commas, kept, line = Commas(","), [], 1
    with path.open("rb") as handle:
        source = Utf8(handle, layout, path.name)
        for text in whole_lines(source, rows=sys.maxsize, flush=None, is_csv=True):
            if not names:
                check_text(text, path.name)
                commas = Commas.of(text, layout, path.name)
            text = commas(text)
            if not source.is_plain or commas.sep != "," or commas.notes:
                kept.append(text if names else text.lstrip(b"\r\n"))
            if not names:
                names, rest = split_header(text, path.name)
                check_names_once(names, path.name)
                line, text = 1 + line_feeds(text) - line_feeds(rest), rest
            if text:
                CsvLines(names).check(text, (), line, path.name)
            line += line_feeds(text)
    return names, b"".join(kept) if kept else None, commas.notes


def _is_utf8(source: Path | bytes) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    with source.open("rb") if isinstance(source, Path) else BytesIO(source) as handle, suppress(UnicodeDecodeError):
        while block := handle.read(BLOCK):
            decoder.decode(block)
        return True
    return False


HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""How the shape of an array is read, by the version of its format."""


def _array(archive: ZipFile, member: ZipInfo) -> np.ndarray:
    """An array of an NPZ, whose shape is no larger than what there is of it."""
    with archive.open(member) as part:
        version = np.lib.format.read_magic(part)
        if version in HEADERS:
            shape, _, dtype = HEADERS[version](part)
            if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} has fewer values than its shape {shape} says")
    with archive.open(member) as part:
        found: np.ndarray = np.lib.format.read_array(part, allow_pickle=False)
        return found


def is_too_long(dtype: "polars.DataType | type[polars.DataType]") -> bool:
    """Whether these are integers that arrays have no place for."""
    return str(dtype) in ("Int128", "UInt128")


def is_no_value(dtype: "polars.DataType") -> bool:
    """Whether these are several values per row, or bytes."""
    return dtype.is_nested() or str(dtype) in ("Binary", "Object")


def _write_frame(frame: "polars.DataFrame", out: Path) -> None:
    kind = out.suffix.lower()
    write: Callable[[IO[bytes]], Any] = frame.write_csv if kind == ".csv" else frame.write_ndjson
    write = frame.write_parquet if kind == ".parquet" else write
    try:
        with replacing(out) as handle:
            write(handle)
    except polars_of(out).exceptions.PolarsError as error:
        raise InputError(f"{out.name} cannot be written as {kind[1:]}: {_first_line(error)}") from error


def _write_archive(arrays: Mapping[str, np.ndarray], out: Path) -> None:
    """NPZ under names that ``numpy.savez`` would take for its own, such as ``file``."""
    with replacing(out) as handle, ZipFile(handle, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, values, allow_pickle=False)


def _plain(column: "polars.Series", out: Path) -> np.ndarray:
    """A column as an array of numbers or text."""
    if column.null_count():
        raise InputError(
            f"{out.name}: column {column.name!r} has missing values, for which NPZ has no place: write CSV"
        )
    values = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


def polars_of(path: Path) -> Any:
    """Polars, or words on how to get it."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise InputError(f"{path.suffix} files need polars: pip install 'calibrant[cli]'") from error
    return polars


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _as_written(wish: str) -> str:
    """A text in UTF-8 as it was written, where the language of the terminal hands over its bytes one by one."""
    try:
        return wish.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return wish


def check_texts(**options: object) -> None:
    """Refuse options that name columns by anything but a text."""
    for name, value in options.items():
        check_is(value, (str, type(None)), said(name), "the name of a column")
