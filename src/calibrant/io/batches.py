"""Files and pipes of any length as data sets of some rows at a time, at constant memory."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import TextIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant._validate import InputError, check_count
from calibrant._wording import said
from calibrant.distributions.reading.conversion import as_problem
from calibrant.io.class_columns import Scale
from calibrant.io.columns import Columns, FramePart, check_exists, check_texts, polars_of
from calibrant.io.dataset import Dataset, dataset_of, names_of_groups, prediction_names_of, truth_names_of
from calibrant.io.layout import FileLayout
from calibrant.io.parts import Part, Parts, TextParts, parquet_parts
from calibrant.io.records import BadLines, Needed
from calibrant.results import how_many

if TYPE_CHECKING:
    import polars

MAX_BAD_ROWS = 1000
"""Rows of a batch that are looked at one by one; where more are refused, all are."""

ENDINGS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@dataclass(frozen=True, eq=False)
class FileBatch(Dataset):
    """Some consecutive good rows of a file; ``start`` is how many came before."""

    start: int


class Batches:
    """The rows of a file or pipe, some at a time: CSV, JSON lines or Parquet, in memory that does not grow.

    ``source`` is a path or a binary handle such as ``sys.stdin.buffer``; ``kind`` says what a handle gives where its first
    character does not. The other arguments name columns as for :func:`calibrant.io.read`. A batch has at most ``rows`` rows,
    and fewer where a pipe has not given more for ``flush`` seconds.

    Lines that are not JSON, have more or fewer values than the header has names, lack a column that is needed, or hold what no
    line should, such as a probability above 1, are left out. ``bad`` has their number and the first few; with ``strict``
    the first one is an error, which comes after the rows before it. Where no row of the first batch can be used, or the
    positive label never occurs, that is an error in any case.

    >>> from io import BytesIO
    >>> lines = BytesIO(b'{"y": 1, "p": 0.8}\\nwhat?\\n{"y": 0, "p": 0.3}\\n')
    >>> batches = Batches(lines, y_true="y", y_pred="p")
    >>> for batch in batches:
    ...     print(batch.y_true, batch.y_pred.probability(1))
    [1 0] [0.8 0.3]
    >>> print(batches.bad)
    1 line could not be used: line 2 is not JSON: 'what?'
    """

    def __init__(
        self,
        source: str | Path | IO[bytes],
        *,
        rows: int = 100_000,
        flush: float = 1.0,
        strict: bool = False,
        kind: Literal["csv", "jsonl"] | None = None,
        y_true: str | None = None,
        y_pred: str | None = None,
        predict: str | None = None,
        by: Sequence[str] = (),
        sample_weight: str | None = None,
        pos_label: str | None = None,
        scale: str | None = None,
        sep: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
    ) -> None:
        check_count(rows, "rows")
        if not flush > 0:
            raise InputError(f"flush must be a positive number of seconds; got {flush!r}")
        self.source = Path(source) if isinstance(source, str) else source
        if not isinstance(self.source, Path) and not callable(getattr(self.source, "read", None)):
            raise InputError(f"source must be a path or an open file; got a {type(source).__name__}")
        if isinstance(self.source, TextIOBase) and not hasattr(self.source, "buffer"):
            raise InputError("source gives text: open it in binary mode, or give its bytes, as sys.stdin.buffer does")
        self.rows, self.flush, self.strict, self.kind = rows, flush, strict, kind
        self.columns: dict[str, Any] = {
            "y_true": y_true,
            "y_pred": y_pred,
            "predict": predict,
            "by": by if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else by,
            "sample_weight": sample_weight,
            "pos_label": pos_label,
            "scale": scale,
        }
        self.layout = FileLayout(kind, sep, encoding, decimal)
        self.bad = BadLines()
        self.n = 0

    @property
    def path(self) -> Path:
        """What messages call the source."""
        if isinstance(self.source, Path):
            return self.source
        name = getattr(self.source, "name", None)
        return Path("standard input" if name == "<stdin>" else name if isinstance(name, str) else "the stream")

    def __iter__(self) -> Iterator[FileBatch]:
        self.bad, self.n, found = (
            BadLines(noun="row" if self._is_parquet else "line"),
            0,
            self.columns["pos_label"] is None,
        )
        for part in self._parts():
            for start in range(0, len(part.lines), self.rows):
                rows = slice(start, start + self.rows)
                for batch in self._usable(Part(part.frame[rows], part.lines[rows])):
                    self.n += len(batch.y_true)
                    found = found or bool(np.any(batch.y_true))
                    yield batch
            self._check_strict()
        if not self.n:
            raise InputError(f"{self.path.name} has no rows{f' of use: {self.bad}' if self.bad.count else ''}")
        if not found:
            raise InputError(
                f"{said('pos_label')} {self.columns['pos_label']!r} never occurs in {how_many(self.n, 'row')}"
            )

    def _usable(self, part: Part) -> Iterator[FileBatch]:
        """The rows as one batch, without those that are refused, which are counted; with ``strict``, those before the first."""
        if self.strict and self.bad.count:
            n = bisect_left(part.lines, self.bad.first[0][0])
            part = Part(part.frame[:n], part.lines[:n])
        try:
            if len(part.lines):
                yield self._batch(part.frame)
            return
        except InputError as error:
            refused = self._refused(part, MAX_BAD_ROWS)
            if refused is None or (len(refused) == len(part.lines) and not self.n):
                raise InputError(f"{self.path.name}, rows from {self.n:,}: {error}") from error
        for row, fault in refused.items():
            self.bad.add(part.lines[row], f"refused: {fault}")
        kept = [row for row in range(len(part.lines)) if row not in refused]
        kept = [row for row in kept if row < min(refused)] if self.strict else kept
        if kept:
            yield self._batch(part.frame[kept])

    def _refused(self, part: Part, most: int, first: int = 0) -> dict[int, str] | None:
        """Rows that cannot be used and why, found by halves; ``None`` where there are more than ``most``."""
        try:
            self._batch(part.frame)
            return {}
        except InputError as error:
            if len(part.lines) == 1:
                return {first: str(error)}
        half = len(part.lines) // 2
        found: dict[int, str] = {}
        for start, rows in ((0, slice(half)), (half, slice(half, None))):
            more = self._refused(Part(part.frame[rows], part.lines[rows]), most - len(found), first + start)
            if more is None or len(found) + len(more) > most:
                return None
            found |= more
        return found

    def _check_strict(self) -> None:
        if self.strict and self.bad.count:
            raise InputError(f"{self.path.name}: {self.bad}")

    def between(self, start: int, stop: int) -> Iterator[FileBatch]:
        """The rows of a Parquet file from start to stop, of which nothing else is read; there may be none."""
        self.n = start
        for part in parquet_parts(self.path, self._wish, start, stop):
            for first in range(0, len(part.frame), self.rows):
                try:
                    yield (batch := self._batch(part.frame[first : first + self.rows]))
                except InputError as error:
                    raise InputError(f"{self.path.name}, rows from {self.n:,}: {error}") from error
                self.n += len(batch.y_true)

    def _batch(self, frame: "polars.DataFrame") -> FileBatch:
        """These rows, of which every target is one that its prediction may have."""
        found = dataset_of(FramePart(self.path, frame, self.layout.decimal), **self.columns, is_part=True)
        as_problem(found.y_true, found.y_pred)
        return FileBatch(**vars(found), start=self.n)

    @property
    def _is_parquet(self) -> bool:
        return isinstance(self.source, Path) and ENDINGS.get(self.source.suffix.lower()) == "parquet"

    def _parts(self) -> Parts:
        polars_of(self.path)
        text = TextParts(self.path, self._wish, self.bad, self.layout)
        if not isinstance(self.source, Path):
            is_csv = None if self.kind is None else self.kind == "csv"
            handle = getattr(self.source, "buffer", self.source)  # bytes under text
            yield from text.parts(handle, is_csv=is_csv, rows=self.rows, flush=self.flush)
            return
        check_exists(self.source)
        kind = ENDINGS.get(self.source.suffix.lower())
        if kind is None:
            raise InputError(f"{self.path.name}: batches are read from {', '.join(ENDINGS)}; io.read takes more kinds")
        if kind == "parquet":
            yield from parquet_parts(self.source, self._wish)
            return
        with self.source.open("rb") as handle:
            yield from text.parts(handle, is_csv=kind == "csv", rows=self.rows, flush=None)

    def _wish(self, table: Columns) -> Needed:
        """The columns that data sets are made of."""
        return replace(needed_columns(table, **self.columns), decimal=self.layout.decimal)


def needed_columns(
    table: Columns,
    *,
    y_true: str | None = None,
    y_pred: str | None = None,
    predict: str | None = None,
    by: Sequence[str] = (),
    sample_weight: str | None = None,
    pos_label: str | None = None,  # noqa: ARG001  # so that both take the same
    scale: str | None = None,
) -> Needed:
    """The columns that :func:`calibrant.io.dataset.dataset_of` asks for with the same arguments."""
    check_texts(y_true=y_true, y_pred=y_pred, predict=predict, scale=scale)
    truth = truth_names_of(table, y_true)
    predictions = prediction_names_of(table, y_pred, predict)
    is_in_words = bool(Scale.parse(scale).words)
    weights = [] if sample_weight is None else table.find(sample_weight, (), "sample_weight")
    numbers = [*([] if is_in_words else predictions), *weights]
    sliced = [found for name in names_of_groups(by) for found in table.find(name, (), "by")]
    return Needed(tuple(dict.fromkeys([*truth, *predictions, *weights, *sliced])), frozenset(numbers))
