"""Files in parts are the files."""

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.engines import connect, stream
from calibrant.kernels import Exponential

polars = pytest.importorskip("polars")
N = 5000


@pytest.fixture
def table(rng):
    p = rng.dirichlet(np.ones(3), N)
    y = np.array([rng.choice(3, p=row) for row in p])
    return polars.DataFrame({"y": y, "w": rng.uniform(1, 2, N), **{f"p_{k}": p[:, k] for k in range(3)}})


@pytest.fixture
def folder(table, tmp_path):
    """Three files, of which one has several row groups and one is in a folder of its own."""
    (tmp_path / "later").mkdir()
    table[:3000].write_parquet(tmp_path / "a.parquet", row_group_size=700)
    table[3000:3001].write_parquet(tmp_path / "b.parquet")
    table[3001:].write_parquet(tmp_path / "later" / "c.parquet")
    return tmp_path


def truth(table):
    return table["y"].to_numpy(), table.select("^p_.*$").to_numpy()


@pytest.mark.parametrize("rows", [None, 450, 1])
def test_a_folder_has_the_digits_of_memory(rows, folder, table):
    if rows == 1:
        folder, table = folder / "b.parquet", table[3000:3001]
    chosen = ECE(lens=TopLabel()), Brier()
    found = stream(folder, *chosen, rows=rows)
    assert [e.value for e in found] == pytest.approx([e(*truth(table)).value for e in chosen], rel=1e-14)
    assert found[0].n == len(table)


def test_engines_change_no_digit(folder, table):
    alone = ECE(lens=ClassWise())(*truth(table), sample_weight=table["w"]).value
    with connect("threads:2") as threads:
        for engine in (None, threads):
            names = {"y_true": "y", "y_pred": "p_*", "sample_weight": "w"}
            assert stream(folder, ECE(lens=ClassWise()), engine=engine, rows=999, **names).value == alone


def test_a_cluster_reads_files_itself(folder, table, engine):
    found = stream(str(folder), Brier(), engine=engine, rows=500)
    assert (
        found.value == stream(folder, Brier(), rows=77).value == pytest.approx(Brier()(*truth(table)).value, rel=1e-14)
    )


def test_blocks_go_across_files(folder, table):
    skce = SKCE(Exponential(0.5), block=7)
    found = stream([folder / "a.parquet", folder / "b.parquet", folder / "later"], skce, rows=450)
    assert found.value == pytest.approx(skce(*truth(table)).value, rel=1e-12)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "there is no file 'nowhere'"),
        (3, "source must be a Parquet file, a folder, a list of those, a Dask data frame or .*; got a int"),
        ([], "got a list"),
        ("empty", "holds no .parquet files"),
        ("table.csv", "table.csv: stream reads .parquet files"),
        ("none.parquet", "none.parquet has no rows"),
    ],
)
def test_what_is_no_source_is_refused(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "table.csv").write_text("y,p\n1,0.5\n")
    polars.DataFrame({"y": [], "p": []}).write_parquet("none.parquet")
    with pytest.raises(InputError, match=message):
        stream(source, Brier())


def test_a_column_that_is_not_there_is_refused_before_rows_are_read(folder):
    with pytest.raises(InputError, match="has no column 'q'"):
        stream(folder, Brier(), y_pred="q")
