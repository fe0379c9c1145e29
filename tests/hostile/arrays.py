"""Arrays, lists and frames that are not what is asked for."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

N = 24


def kinds(n: int = N) -> dict[str, Callable[[], Any]]:
    """What stands where an array of n rows is expected, by what is odd about it."""
    rng = np.random.default_rng(5)
    p, labels = rng.random(n), rng.integers(0, 2, n)
    classes = rng.dirichlet(np.ones(3), n)
    made: dict[str, Callable[[], Any]] = {
        "good": p.copy,
        "labels": labels.copy,
        "classes": classes.copy,
        "empty": lambda: np.zeros(0),
        "empty list": list,
        "no columns": lambda: np.zeros((n, 0)),
        "no rows": lambda: np.zeros((0, 3)),
        "one row": lambda: p[:1].copy(),
        "a row more": lambda: np.append(p, 0.5),
        "a row less": lambda: p[:-1].copy(),
        "three axes": lambda: np.zeros((n, 2, 2)),
        "five axes": lambda: np.zeros((n, 1, 1, 1, 1)),
        "no axis": lambda: np.float64(0.5),
        "a number": lambda: 0.5,
        "nothing": lambda: None,
        "a text": lambda: "0.5",
        "bytes": lambda: b"0.5",
        "a mapping": lambda: {"a": 1},
        "a set": lambda: {0.5},
        "an object": object,
        "a class": lambda: int,
        "a generator": lambda: (x for x in p),
        "NaN": lambda: np.full(n, np.nan),
        "one NaN": lambda: np.where(np.arange(n) == 3, np.nan, p),
        "infinite": lambda: np.full(n, np.inf),
        "one infinite": lambda: np.where(np.arange(n) == 3, -np.inf, p),
        "huge": lambda: np.full(n, 1e300),
        "tiny": lambda: np.full(n, 5e-324),
        "negative": lambda: -p,
        "above one": lambda: p + 1,
        "all alike": lambda: np.full(n, 0.5),
        "zeros": lambda: np.zeros(n),
        "ones": lambda: np.ones(n, dtype=int),
        "sums of two": lambda: 2 * classes,
        "float16": lambda: p.astype(np.float16),
        "float32": lambda: p.astype(np.float32),
        "long double": lambda: p.astype(np.longdouble),
        "complex": lambda: p + 1j,
        "booleans": lambda: labels == 1,
        "int8": lambda: labels.astype(np.int8),
        "big uint64": lambda: np.full(n, 2**64 - 1, dtype=np.uint64),
        "big int64": lambda: np.full(n, -(2**63), dtype=np.int64),
        "big whole numbers": lambda: [10**400] * n,
        "dates": lambda: np.arange(n).astype("datetime64[D]"),
        "durations": lambda: np.arange(n).astype("timedelta64[s]"),
        "texts": lambda: np.array(["a", "\x1b[31m"] * (n // 2)),
        "half characters": lambda: ["\ud800", "a"] * (n // 2),
        "byte texts": lambda: np.array([b"a", b"\xff"] * (n // 2)),
        "objects": lambda: np.array([0.5, "a", None] * (n // 3), dtype=object),
        "lists of lists": lambda: [[0.5], [0.5, 0.5]] * (n // 2),
        "structured": lambda: np.zeros(n, dtype=[("a", "f8"), ("b", "i4")]),
        "void": lambda: np.zeros(n, dtype="V4"),
        "masked": lambda: np.ma.masked_array(p, mask=labels == 1),
        "a row": lambda: p[None].copy(),
        "read only": lambda: _read_only(p),
        "backwards": lambda: p[::-1],
        "big endian": lambda: p.astype(">f8"),
        "broadcast": lambda: np.broadcast_to(0.5, (n,)),
        "column": lambda: p[:, None].copy(),
        "nested lists": lambda: _nested(40),
        "a frame": lambda: pl.DataFrame({"a": p, "b": 1 - p}),
        "a frame of texts": lambda: pl.DataFrame({"a": ["x"] * n}),
        "a frame of nothing": pl.DataFrame,
        "a lazy frame": lambda: pl.LazyFrame({"a": p}),
        "a column of nulls": lambda: pl.Series([None] * n),
        "a column with a null": lambda: pl.Series([None, *p[1:]]),
        "a column of lists": lambda: pl.Series([[0.5]] * n),
        "a column of dates": lambda: pl.Series(range(n)).cast(pl.Date),
        "a column of categories": lambda: pl.Series(["a", "b"] * (n // 2)).cast(pl.Categorical),
        "a column of decimals": lambda: pl.Series(range(n)).cast(pl.Decimal(20, 3)),
    }
    return made


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _nested(depth: int) -> Any:
    value: Any = [0.5]
    for _ in range(depth):
        value = [value]
    return value


KINDS = kinds()


def hostile_array(chance: random.Random) -> tuple[str, Any]:
    """One of them, fresh."""
    name = chance.choice(list(KINDS))
    return name, KINDS[name]()
