import sqlite3
from contextlib import closing

import numpy as np
import pytest

from calibrant import ECE, EqualMass, EqualWidth
from calibrant._validate import InputError
from calibrant.estimators import Edges
from calibrant.streams import bin_query, from_bins


@pytest.fixture
def table(rng):
    p = np.concatenate([rng.beta(0.5, 0.5, 2000), np.arange(16) / 15, [0.0, 1.0]])
    return (rng.random(len(p)) < p) * 1, p, rng.lognormal(0, 1, len(p))


def sqlite(rows):
    def ask(query):
        with closing(sqlite3.connect(":memory:")) as base:
            base.execute("CREATE TABLE t (y INTEGER, p REAL, w REAL)")
            base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            return base.execute(query).fetchall()

    return ask


def duck(rows):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: the same query runs in SQLite")
    base = duckdb.connect()
    base.execute("CREATE TABLE t (y INTEGER, p DOUBLE, w DOUBLE)")
    base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return lambda query: base.execute(query).fetchall()


@pytest.mark.parametrize("database", [sqlite, duck])
@pytest.mark.parametrize("ece", [ECE(), ECE(EqualWidth(1)), ECE(Edges((0, 0.1, 0.5, 1)), norm=2)], ids=repr)
def test_the_database_gives_the_error(database, ece, table):
    y, p, w = table
    ask = database([*map(tuple, np.stack(table, axis=1).tolist()), (None, 0.5, 1.0)])
    plain = from_bins(ece, ask(bin_query(ece, "t"))).finalize()
    assert plain.value == pytest.approx(ece(y, p).value, rel=1e-12)
    assert plain.n == len(y)
    assert plain.table["weight"].tolist() == ece(y, p).table["weight"].tolist()  # also of scores that are edges
    weighted = from_bins(ece, ask(bin_query(ece, "t", sample_weight="w"))).finalize()
    assert weighted.value == pytest.approx(ece(y, p, sample_weight=w).value, rel=1e-12)


def test_tables_of_several_places(table):
    y, p, _ = table
    rows = np.stack(table, axis=1).tolist()
    query = bin_query(ECE(), "t")
    one, other = (from_bins(ECE(), sqlite(part)(query)) for part in (rows[:500], rows[500:]))
    assert one.merge(other).finalize().value == pytest.approx(ECE()(y, p).value, rel=1e-12)


def test_what_is_refused():
    with pytest.raises(InputError, match="bins that do not depend on the data"):
        bin_query(ECE(EqualMass(5)), "t")
    with pytest.raises(InputError, match="bin must be a number from 0 to 14; got 15"):
        from_bins(ECE(), [(15, 1, 1, 1)])
    with pytest.raises(InputError, match="observed must not exceed weight; got 50.0 of 10.0"):
        from_bins(ECE(), [(14, 10, 9.5, 50)])


def test_duckdb_on_a_file(table, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: the same query runs in SQLite")
    y, p, _ = table
    pytest.importorskip("polars").DataFrame({"y": y, "p": p}).write_parquet(tmp_path / "x.parquet")
    rows = duckdb.sql(bin_query(ECE(), f"'{tmp_path / 'x.parquet'}'")).fetchall()
    assert from_bins(ECE(), rows).finalize().value == pytest.approx(ECE()(y, p).value, rel=1e-12)
