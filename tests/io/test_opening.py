import gzip

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.layout import FileLayout
from calibrant.io.opening import kind_of, open_columns, parts_of

polars = pytest.importorskip("polars")


@pytest.fixture
def parts(tmp_path):
    """Three files of two rows, one of them of another kind, and the columns in another order."""
    (tmp_path / "part-1.csv").write_text("y,p\n1,0.9\n0,0.2\n")
    (tmp_path / "part-2.csv").write_text("p;y\n0,5;1\nN/A;0\n")
    polars.DataFrame({"y": [1, 0], "p": [0.25, 0.75]}).write_parquet(tmp_path / "part-3.parquet")
    return tmp_path


def test_parts_are_read_in_the_order_of_their_names(parts):
    data = read(parts / "part-*", missing="drop")
    assert data.y_true.tolist() == [1, 0, 1, 1, 0]
    assert data.y_pred.probability(1).tolist() == [0.9, 0.2, 0.5, 0.25, 0.75]
    assert "3 files are read as one: part-1.csv to part-3.parquet" in data.notes
    one = read([parts / "part-1.csv", parts / "part-3.parquet"])
    assert len(one.y_true) == 4


def test_a_part_that_is_named_twice(parts):
    (parts / "part-1-again.csv").symlink_to(parts / "part-1.csv")
    for again in ("part-1.csv", "part-1-again.csv"):
        with pytest.raises(InputError, match=r"part-1.csv is named twice, and its rows would count twice"):
            read([parts / "part-1.csv", parts / again])


def test_parts_with_other_columns(parts):
    (parts / "part-4.csv").write_text("y,q\n1,0.9\n")
    with pytest.raises(
        InputError, match="parts of one data set have the same columns: 'p' is not in part-1.csv and part-4.csv both"
    ):
        read(parts / "part-*")
    np.savez(parts / "x.npz", y=[1], p=[0.5])
    with pytest.raises(InputError, match="x.npz: parts of one data set are text, JSON, Excel or Parquet"):
        read([parts / "part-1.csv", parts / "x.npz"])


def test_patterns(parts):
    assert [path.name for path in parts_of(str(parts / "part-[12].csv"))] == ["part-1.csv", "part-2.csv"]
    (parts / "a[1].csv").write_text("y,p\n1,0.5\n")
    assert parts_of(parts / "a[1].csv") == [parts / "a[1].csv"]
    with pytest.raises(InputError, match=r"no file is called like .*none-\*.csv"):
        parts_of(parts / "none-*.csv")


def test_folders_and_formats(parts):
    with pytest.raises(InputError, match=r"is a folder: name the files in it, as '.*\*.csv'"):
        open_columns(parts)
    with pytest.raises(InputError, match="format 'exel' is not known"):
        read(parts / "part-1.csv", format="exel")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("x.csv.gz", b"", ".csv"),
        ("x.gz", gzip.compress(b"y,p\n", mtime=0), ".csv"),
        ("x.log", b'{"y": 1}\n{"y": 2}\n', ".jsonl"),
        ("x", b'{\n "y": [1]}', ".json"),
        ("x.v2.TSV", b"", ".csv"),
        ("x.pq", b"PAR1", ".parquet"),
        ("x", b"PK\3\4 header.json", ".eval"),
        ("x", b"PK\3\4 [Content_Types].xml", ".xlsx"),
        ("x", b"PK\3\4 y.npy", ".npz"),
    ],
)
def test_kinds(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    assert kind_of(tmp_path / name, FileLayout()) == kind


def test_no_files_are_none():
    with pytest.raises(InputError, match="path is an empty list: name a file"):
        parts_of([])


def test_parts_are_written_as_one(parts):
    table = open_columns(parts / "part-*", FileLayout())
    table.write({"p": np.arange(6) / 10}, parts / "all.csv")
    assert read(parts / "all.csv").y_pred.probability(1).tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
