"""The first sheet of a workbook as CSV, refused where it says less, or takes more, than it seems to."""

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from calibrant._validate import InputError, check_names_once

if TYPE_CHECKING:
    import polars

MAX_CELLS = 100_000_000
"""Cells between the first and the last of a sheet, which the reader takes memory for, empty ones too."""

MAX_COLUMNS = 1 << 14
"""Columns that a workbook can have, up to XFD."""

CELL = re.compile(rb"""<(?:\w+:)?c\s[^<>]*?\br=["']([A-Z]{1,9})(\d{1,18})["'][^<>]*(?<!/)>""")
"""A cell of a sheet that holds something, and where it is."""


@contextmanager
def read_or_refused(name: str, kind: str, *errors: type[BaseException]) -> Iterator[None]:
    """Errors of a library that reads files, refused in our words; those in which it fails itself are no ``Exception``."""
    try:
        yield
    except errors as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{name} cannot be read as {kind}: {said}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of which every library of Rust has its own
            raise
        raise InputError(f"{name} cannot be read as {kind}: it is damaged; write it anew") from error


def spreadsheet(path: Path) -> tuple[bytes, list[str]]:
    """The first sheet of a workbook as CSV, and what is to be told."""
    import polars as pl

    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path.name}: spreadsheets need fastexcel: pip install 'calibrant[excel]', or save it as CSV"
        ) from error
    with read_or_refused(path.name, "xlsx", fastexcel.FastExcelError, pl.exceptions.PolarsError):
        book = fastexcel.read_excel(path)
        check_extent(path)
        header = book.load_sheet(0, header_row=None, n_rows=1).to_polars()
        frame = pl.read_excel(path, engine="calamine", infer_schema_length=None)
    _check_header([None if name is None else str(name) for row in header.rows() for name in row], frame, path.name)
    sheets = book.sheet_names
    more = f", of {len(sheets)}: save another as CSV, or move it to the front" if len(sheets) > 1 else ""
    return frame.write_csv().encode(), [f"the sheet {sheets[0]!r} of {path.name} is read{more}"]


def _check_header(names: Sequence[str | None], frame: "polars.DataFrame", name: str) -> None:
    """Refuse names that stand twice, and values beyond the last name, as in a row that is longer than the header."""
    check_names_once([n or "" for n in names], name)
    last = max((i for i, n in enumerate(names) if n), default=-1)
    for column in (f"__UNNAMED__{i}" for i in range(last + 1, len(names))):
        values: list[Any] = frame[column].drop_nulls().to_list() if column in frame.columns else []
        if values:
            raise InputError(
                f"{name} has {values[0]!r} right of its last column, {names[last]!r}: give that column a name, or empty it"
            )


def check_extent(path: Path) -> None:
    """Refuse a workbook with a sheet that one far cell makes larger than memory."""
    try:
        with ZipFile(path) as archive:
            for part in archive.namelist():
                if re.fullmatch(r"xl/worksheets/[^/]+\.xml", part):
                    with archive.open(part) as text:
                        _check_sheet(iter(lambda text=text: text.read(1 << 22), b""), path.name)  # type: ignore[misc]
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error):
        return  # which the reader itself refuses


def _check_sheet(blocks: Iterator[bytes], name: str) -> None:
    """One sheet, block by block."""
    columns, rows, rest = {b"A"}, 1, b""
    for block in blocks:
        text = rest + block
        found = CELL.findall(text)
        columns.update(column for column, _ in found)
        rows = max([rows, *(int(row) for _, row in found)])
        rest = text[max(text.rfind(b"<"), len(text) - 4096) :]
        last = max(columns, key=lambda letters: (len(letters), letters))
        width = 0
        for letter in last:
            width = 26 * width + letter - 64
        if width * rows > MAX_CELLS or width > MAX_COLUMNS:
            raise InputError(
                f"{name} has a cell in column {last.decode()} and one in row {rows:,}, {width * rows:,} cells in all: remove "
                "those far from the table, or save it as CSV"
            )
