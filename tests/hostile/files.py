"""Files of predictions, of every kind and family, that are broken in one way."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tests.hostile.content import damaged
from tests.hostile.values import DEEP, NUMBERS, TEXTS, VALUES, cell

Table = dict[str, list[Any]]


class File(NamedTuple):
    """What was done to it, its ending, its bytes, and the options that name its columns."""

    kind: str
    ending: str
    content: bytes
    options: tuple[str, ...]


def tables(n: int = 24) -> list[tuple[Table, tuple[str, ...]]]:
    """Good ones: two classes, three, several labels, and forecasts; and the options that name their columns."""
    rng = np.random.default_rng(0)
    p, q = rng.random(n).round(3), rng.dirichlet(np.ones(3), n).round(6)
    q[:, 2] = (1 - q[:, :2].sum(axis=1)).round(6)
    y = (rng.random(n) < p).astype(int)
    group = ["abc"[i % 3] for i in range(n)]
    ends = np.sort(rng.normal(size=(n, 3)), axis=1).round(3)
    normal = {"y": rng.normal(size=n).round(3).tolist(), "mu": rng.normal(size=n).round(3).tolist(), "s": [1.5] * n}
    both = {"y": y.tolist(), "p": p.tolist(), "w": (rng.random(n) + 0.1).round(3).tolist(), "g": group}
    names = ["no", "yes"]
    return [
        (both, ()),
        (both, ("--sample-weight", "w", "--by", "g")),
        ({"y": [names[i] for i in y], "p": p.tolist()}, ("--pos-label", "yes")),
        ({"y": rng.integers(0, 3, n).tolist(), **{f"p_{i}": q[:, i].tolist() for i in range(3)}}, ()),
        ({"y": ["abc"[i] for i in rng.integers(0, 3, n)], **{f"p_{'abc'[i]}": q[:, i].tolist() for i in range(3)}}, ()),
        ({"y_a": y.tolist(), "y_b": (1 - y).tolist(), "p_a": p.tolist(), "p_b": p.tolist()}, ("--y-true", "y_*")),
        (normal, ("--predict", "Normal(mu, s)")),
        ({"y": normal["y"], **{f"m_{i}": ends[:, i].tolist() for i in range(3)}}, ("--predict", "Ensemble('m_*')")),
        (
            {"y": normal["y"], **{f"q_{u}": ends[:, i].tolist() for i, u in enumerate((0.1, 0.5, 0.9))}},
            ("--predict", "Quantiles('q_*')"),
        ),
    ]


def csv_of(table: Table) -> bytes:
    """Commas between values, which are written as they are."""
    rows = [list(table), *zip(*table.values(), strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def jsonl_of(table: Table) -> bytes:
    """An object per line."""
    return "".join(
        json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in zip(*table.values(), strict=True)
    ).encode()


def npz_of(table: Table) -> bytes:
    """An array per column."""
    return archive({name: _saved(np.array(column)) for name, column in table.items()})


def parquet_of(table: Table) -> bytes:
    """As Polars writes it."""
    out = io.BytesIO()
    pl.DataFrame(table, strict=False).write_parquet(out)
    return out.getvalue()


WRITERS: dict[str, Callable[[Table], bytes]] = {
    "csv": csv_of,
    "jsonl": jsonl_of,
    "npz": npz_of,
    "parquet": parquet_of,
}


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Members of an NPZ."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as parts:
        for name, content in members.items():
            parts.writestr(f"{name}.npy", content)
    return out.getvalue()


def _saved(values: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, values, allow_pickle=True)
    return out.getvalue()


def declared(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """The head of an array, and nothing of what it says."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": shape})
    return out.getvalue()


def arrays_of(good: list[Any]) -> list[bytes]:
    """Members of NPZ that are not the columns they should be."""
    n = len(good)
    kinds = ["<f2", "<f4", "<f16", "<c16", "<u8", "|b1", "<M8[s]", "<m8[D]", "|S3", "<U3", "|V4", ">f8", "|i1"]
    shapes = [(0,), (n, 0), (0, n), (n + 1,), (n, 2), (n, 1, 1), (), (1,), (n - 1,), (n, 1)]
    return [
        *(_saved(np.zeros(n, dtype=kind)) for kind in kinds),
        *(_saved(np.zeros(shape)) for shape in shapes),
        *(declared(shape) for shape in ((10**12,), (10**30,), (-1,), (n, 10**9), (2**62, 4), (n,), (True,))),
        *(_saved(np.full(n, value)) for value in (np.nan, np.inf, -1.0, 1e300, 2.0, 0.5)),
        *(_saved(np.array(values, dtype=object)) for values in (good, [None] * n)),
        _saved(np.zeros(n, dtype=[("a", "f8"), ("b", "i4")])),
        b"",
        b"hello",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (",
        b"\x93NUMPY\x07\x00" + b"\0" * 100,
    ]


def series_of(good: list[Any]) -> list[pl.Series]:
    """Columns of Parquet of other types than they should be."""
    n = len(good)
    plain = pl.Series(good, strict=False)
    made: list[pl.Series] = [
        *(
            pl.Series([value] * n, strict=False)
            for value in (None, 1.5, -1, 2, "x", "", True, float("nan"), float("inf"))
        ),
        *(pl.Series([value] * n) for value in ([0.5], [], {"a": 1}, b"\xff", [[1]])),
        pl.Series([None, *good[1:]], strict=False),
        *([pl.Series([2**70] * n, dtype=pl.Int128)] if hasattr(pl, "Int128") else ()),  # since 1.18
        pl.Series(range(n)).cast(pl.Datetime),
        pl.Series(range(n)).cast(pl.Date),
        pl.Series(range(n)).cast(pl.Duration),
        pl.Series(range(n)).cast(pl.Time),
        pl.Series(range(n)).cast(pl.Decimal(20, 3)),
        pl.Series([str(v) for v in good]).cast(pl.Categorical),
        pl.Series([str(v) for v in good]).cast(pl.Enum(sorted({str(v) for v in good}))),
        pl.Series([str(v) for v in good]),
        *(plain.cast(kind, strict=False) for kind in (pl.Float32, pl.Int8, pl.UInt64)),
    ]
    return made


def in_a_cell(chance: random.Random, table: Table, ending: str) -> bytes:
    """Another value in one cell, or in all of a column."""
    name = chance.choice(list(table))
    column: list[Any] = list(table[name])
    rows = range(len(column)) if chance.random() < 0.2 else [chance.randrange(len(column))]
    value = cell(chance) if ending == "csv" or chance.random() < 0.3 else chance.choice([v for v in VALUES if v != {}])
    for row in rows:
        column[row] = value
    try:
        return WRITERS[ending]({**table, name: column})
    except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):  # what such a file cannot hold
        return csv_of({**table, name: column})


def in_a_name(chance: random.Random, table: Table, ending: str) -> bytes:
    """Another name of a column, also that of its neighbour."""
    name, other = chance.choice(list(table)), chance.choice([*TEXTS, *NUMBERS, *table])
    if ending == "csv":
        rows = [[other if n == name else n for n in table], *zip(*table.values(), strict=True)]
        return "".join(",".join(map(str, row)) + "\n" for row in rows).encode("utf-8", "surrogatepass")
    renamed = {other if n == name else n: column for n, column in table.items()}
    try:
        return WRITERS[ending](renamed)
    except (ValueError, TypeError, OSError, IndexError, struct.error, pl.exceptions.PolarsError):
        return jsonl_of(renamed)


def in_its_rows(chance: random.Random, table: Table, ending: str) -> bytes:
    """Rows that are longer, shorter, fewer or none; objects with fields twice, deep or missing."""
    lines = (csv_of if ending == "csv" else jsonl_of)(table).decode().splitlines()
    row = chance.randrange(len(lines))
    if ending == "csv":
        other = [
            lines[row] + ",0.9",
            "12," + lines[row],
            lines[row].rpartition(",")[0],
            "",
            ",",
            "," * 9,
            '"',
            "x" * 200,
        ]
        lines[row] = chance.choice([*other, lines[row] + ","])
        return "\n".join(chance.choice([lines, lines[:1], lines[:2], lines[1:], lines[: row + 1]])).encode()
    first = next(iter(table))
    body = lines[row][1:-1]
    other = ["{}", "[]", "1", "null", "what?", "{" + body, f'{{{body}, "{first}": 0}}', f'{{"c": {DEEP}, {body}}}']
    other += [f'{{{body}, "c": {{"d": [1, {{"e": null}}]}}}}', f"{{{body}}} {{{body}}}", '{"' + first + '": 1}', "NaN"]
    lines[row] = chance.choice(other)
    return "\n".join(chance.choice([lines, lines[:1], lines[row : row + 1], [*lines, ""]])).encode()


def in_its_arrays(chance: random.Random, table: Table, ending: str) -> bytes:
    """Columns of other types and shapes than they should be."""
    name = chance.choice(list(table))
    if ending == "parquet":
        out = io.BytesIO()
        frame = pl.DataFrame(table).with_columns(chance.choice(series_of(table[name])).alias(name))
        frame[: chance.choice([0, 1, len(frame)])].write_parquet(out)
        return out.getvalue()
    members = {n: _saved(np.array(column)) for n, column in table.items()}
    compression = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    return archive({**members, name: chance.choice(arrays_of(table[name]))}, compression)


WAYS: dict[str, Callable[[random.Random, Table, str], bytes]] = {
    "cell": in_a_cell,
    "name": in_a_name,
    "rows": in_its_rows,
    "arrays": in_its_arrays,
}
TABLES = tables()


def hostile_file(chance: random.Random) -> File:
    """A file that is broken in one way, sometimes under the ending of another kind."""
    table, options = chance.choice(TABLES)
    ending = chance.choice(["csv", "csv", "jsonl", "npz", "parquet"])
    if chance.random() < 0.1:
        return File("good", ending, WRITERS[ending](table), options)
    if chance.random() < 0.4:
        kind, content = damaged(WRITERS[ending](table), chance)
    else:
        fitting = {"csv": ["cell", "name", "rows"], "jsonl": ["cell", "name", "rows"]}.get(
            ending, ["cell", "name", "arrays"]
        )
        kind = chance.choice(fitting)
        content = WAYS[kind](chance, table, ending)
    if chance.random() < 0.05:
        kind, ending = "ending", chance.choice([*WRITERS, "npy", "txt", "gz", ""])
    return File(f"{ending or 'no ending'}: {kind}", ending, content, options)
