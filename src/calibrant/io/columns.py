"""Files as named columns: CSV, Parquet, JSON lines and NPZ, read and written."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np

from calibrant._validate import InputError, check_names_once, did_you_mean
from calibrant.io.records import JsonLines

if TYPE_CHECKING:
    import polars

T = TypeVar("T")

ENDINGS = (".npz", ".csv", ".parquet", ".jsonl", ".ndjson")
"""What can be read and written."""


class Columns(ABC):
    """The columns of a file, by name."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, list(names)

    @abstractmethod
    def load(self, names: Sequence[str]) -> np.ndarray:
        """These columns side by side, ``(n, columns)``."""

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
            raise InputError(f"{self.path.name} has columns {', '.join(self.names[:20])}: say which with {option}")
        found = []
        for part in [wish] if wish in self.names else wish.split(","):
            matches = [name for name in self.names if name == part or fnmatchcase(name, part)]
            if not matches:
                raise InputError(f"{option}: {self.path.name} has no column {part!r}{did_you_mean(part, self.names)}")
            found += matches
        return found

    def usual(self, patterns: Sequence[str]) -> list[str]:
        """The columns of the first pattern that any has, if one does."""
        for pattern in patterns:
            if found := [name for name in self.names if fnmatchcase(name, pattern)]:
                return found
        return []

    def values(self, names: Sequence[str]) -> np.ndarray:
        """These columns side by side, ``(n, columns)``, with at least one row."""
        values = self.load(names)
        if not len(values):
            raise InputError(f"{self.path.name} has no rows")
        return values

    def single(self, name: str, option: str) -> np.ndarray:
        """One column, ``(n,)``."""
        found = self.find(name, (), option)
        values = self.values(found)
        if values.shape[1] != 1:
            raise InputError(f"{option} takes one column at a time; {name!r} means {', '.join(found[:5])}")
        if values.dtype == object and any(isinstance(v, list | np.ndarray) for v in values[:100, 0]):
            raise InputError(f"{option}: column {name!r} holds lists")
        return values[:, 0]


def open_columns(path: Path, format: str | None = None) -> Columns:
    """The columns of a file, by its ending or in the format that is said."""
    check_exists(path)
    kind = path.suffix.lower() if format is None else f".{format}"
    if format is None:
        check_ending(path, "read")
    elif kind not in ENDINGS:
        raise InputError(f"format {format!r} is not known{did_you_mean(format, [ending[1:] for ending in ENDINGS])}")
    return _Archive(path) if kind == ".npz" else Frame(path, kind)


def check_exists(path: Path) -> None:
    """Refuse a file that is not there."""
    if not path.exists():
        near = did_you_mean(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file {str(path)!r}{near if 'did you mean' in near else ''}")


def check_ending(path: Path, verb: str) -> None:
    """Refuse files of a kind that is not known."""
    if path.suffix.lower() not in ENDINGS:
        ending = path.suffix or "a file without ending"
        raise InputError(f"{path.name}: cannot {verb} {ending}; known: {', '.join(ENDINGS)}")


class _Archive(Columns):
    """NPZ: arrays with equally many rows, of which some may have several columns."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
                names = list(archive.files)
                self.arrays: dict[str, np.ndarray] = {name: archive[name] for name in names}
        except (BadZipFile, ValueError, EOFError, OSError) as error:
            raise InputError(f"{path.name} cannot be read as NPZ: {_first_line(error)}") from error
        check_names_once(names, path.name)
        super().__init__(path, names)

    def load(self, names: Sequence[str]) -> np.ndarray:
        self.check_rows(names)
        parts = [self.arrays[name] for name in names]
        return np.concatenate([part.reshape(len(part), -1) if part.size else part[:, None] for part in parts], axis=1)

    def check_rows(self, names: Sequence[str]) -> None:
        """Refuse arrays of different lengths."""
        parts = [self.arrays[name] for name in names]
        if any(part.ndim == 0 for part in parts) or len({len(part) for part in parts}) > 1:
            raise InputError(f"{self.path.name}: {', '.join(names)} must be arrays with equally many rows")

    def width(self, name: str) -> int:
        array = self.arrays[name]
        return array.size // len(array)

    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        shapes = {name: self.arrays[name].shape if name in self.arrays else (-1,) for name in new}
        arrays = {**self.arrays, **{name: values.reshape(shapes[name]) for name, values in new.items()}}
        if out.suffix.lower() == ".npz":
            _write_archive(arrays, out)
            return
        pl = _polars(out)
        self.check_rows(self.names)
        flat: dict[str, np.ndarray] = {}
        for name, array in arrays.items():
            columns = array.reshape(len(array), -1).T
            flat |= {name: array} if array.ndim == 1 else {f"{name}_{i}": c for i, c in enumerate(columns)}
        _write_frame(pl.DataFrame(flat), out)


class Frame(Columns):
    """What Polars reads."""

    def __init__(self, path: Path, kind: str) -> None:
        _polars(path)
        self.path, self.kind = path, kind
        if kind == ".csv":
            check_names_once(_header(path), path.name)
        self.lazy = self.reading(self.scan)
        super().__init__(path, self.reading(lambda: self.lazy.collect_schema().names()))

    def scan(self, *, as_text: bool = False) -> "polars.LazyFrame":
        """The file, types inferred from all rows: a column may begin with a hundred zeros. Brackets in a name are no pattern."""
        pl = _polars(self.path)
        if self.kind == ".csv":
            return pl.scan_csv(self.path, glob=False, infer_schema=not as_text, infer_schema_length=None)
        if self.kind == ".parquet":
            return pl.scan_parquet(self.path, glob=False)
        return pl.scan_ndjson(self.path.read_bytes(), infer_schema_length=None)

    def reading(self, step: Callable[[], T]) -> T:
        """What a step gives; what Polars refuses is refused in our words."""
        try:
            return step()
        except (_polars(self.path).exceptions.PolarsError, OSError) as error:
            raise InputError(f"{self.path.name} cannot be read as {self.kind[1:]}: {_first_line(error)}") from error

    def selected(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns in memory."""
        from polars.selectors import by_name

        if self.kind in (".jsonl", ".ndjson"):
            repeated = JsonLines().repeated(self.path.read_bytes(), names)
            if repeated is not None:
                raise InputError(
                    f"{self.path.name} has records with {repeated!r} twice: give each field a name of its own"
                )
        return self.reading(lambda: self.lazy.select(by_name(*names)).collect().select(names))

    def load(self, names: Sequence[str]) -> np.ndarray:
        """These columns as an array; missing values are refused."""
        frame = self.selected(names)
        missing = {name: frame[name].null_count() for name in names if frame[name].null_count()}
        if missing:
            name, count = next(iter(missing.items()))
            raise InputError(
                f"{self.path.name}: column {name!r} has missing values in {count:,} of its rows; drop or fill them"
            )
        return frame.to_numpy()

    def width(self, name: str) -> int:
        """One: columns of frames hold numbers."""
        return 1

    def write(self, new: Mapping[str, np.ndarray], out: Path) -> None:
        """The table with columns replaced or added, to a file."""
        pl = _polars(out)
        # From CSV to CSV other columns stay text, to the letter: 007 is not 7.
        as_text = self.kind == out.suffix.lower() == ".csv"
        frame = self.reading(lambda: self.scan(as_text=as_text).collect())
        frame = frame.with_columns([pl.Series(name, values.reshape(-1)) for name, values in new.items()])
        if out.suffix.lower() == ".npz":
            _write_archive({name: _plain(frame[name], out) for name in frame.columns}, out)
        else:
            _write_frame(frame, out)


class FramePart(Frame):
    """Some rows of a file, as a data frame in memory."""

    def __init__(self, path: Path, frame: "polars.DataFrame") -> None:
        self.frame = frame
        self.kind = path.suffix.lower()
        Columns.__init__(self, path, frame.columns)

    def scan(self, *, as_text: bool = False) -> "polars.LazyFrame":
        """The rows at hand."""
        return self.frame.lazy()

    def selected(self, names: Sequence[str]) -> "polars.DataFrame":
        """These columns as they are."""
        return self.frame.select(names)


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV, as they are written."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        return next(csv.reader(lines), [])


def _write_frame(frame: "polars.DataFrame", out: Path) -> None:
    kind = out.suffix.lower()
    write: Callable[[Path], Any] = frame.write_csv if kind == ".csv" else frame.write_ndjson
    write = frame.write_parquet if kind == ".parquet" else write
    try:
        write(out)
    except _polars(out).exceptions.PolarsError as error:
        raise InputError(f"{out.name} cannot be written as {kind[1:]}: {_first_line(error)}") from error


def _write_archive(arrays: Mapping[str, np.ndarray], out: Path) -> None:
    """NPZ under names that ``numpy.savez`` would take for its own, such as ``file``."""
    with ZipFile(out, "w") as archive:
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


def check_polars(path: Path) -> None:
    """Refuse to read where Polars is not installed."""
    _polars(path)


def _polars(path: Path) -> Any:
    try:
        import polars
    except ModuleNotFoundError as error:
        raise InputError(f"{path.suffix} files need polars: pip install 'calibrant[cli]'") from error
    return polars


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
