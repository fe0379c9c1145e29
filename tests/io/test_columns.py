import sys
import warnings
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.columns import ENDINGS, FramePart, check_ending
from calibrant.io.opening import open_columns

polars = pytest.importorskip("polars")

TEXT = 'id,y,p,note\n007,1,0.10,"a, b"\n010,0,1e-3,\n,1,0.5,""\n'


@pytest.fixture
def table(tmp_path):
    (tmp_path / "x.csv").write_text(TEXT)
    return open_columns(tmp_path / "x.csv")


def test_other_columns_of_a_csv_stay_to_the_letter(table, tmp_path):
    table.write({"p": np.array([[0.25], [1 / 3], [5e-324]])}, tmp_path / "out.csv")
    expected = TEXT.replace("0.10", "0.25").replace("1e-3", repr(1 / 3)).replace("0.5", "5e-324")
    assert (tmp_path / "out.csv").read_text() == expected


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("start", ENDINGS)
def test_from_every_format_to_every_format(start, ending, tmp_path, rng):
    p, q = rng.random(20), rng.random(20) ** 30
    frame = polars.DataFrame({"file": ["a", "bc"] * 10, "p": p, "y": np.arange(20)})
    first, second = tmp_path / f"first{start}", tmp_path / f"second{ending}"
    write = {".csv": frame.write_csv, ".parquet": frame.write_parquet}.get(start, frame.write_ndjson)
    if start == ".npz":
        open_csv = tmp_path / "way.csv"
        frame.write_csv(open_csv)
        open_columns(open_csv).write({}, first)
    else:
        write(first)
    open_columns(first).write({"p": q[:, None], "new": p[:, None]}, second)
    found = open_columns(second)
    assert found.names == ["file", "p", "y", "new"]
    assert np.array_equal(found.values(["p"])[:, 0], q)
    assert np.array_equal(found.values(["new"])[:, 0], p)
    assert found.values(["file"])[:, 0].tolist() == frame["file"].to_list()
    assert found.values(["y"])[:, 0].tolist() == list(range(20))


def test_arrays_keep_their_shapes(tmp_path, rng):
    p = rng.random((5, 2, 3))
    np.savez(tmp_path / "x.npz", p=p, y=np.arange(5), about=np.array("a note"))
    table = open_columns(tmp_path / "x.npz")
    assert [table.width(name) for name in ("p", "y")] == [6, 1]
    table.write({"p": table.values(["p"]) / 2}, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as archive:
        assert archive.files == ["p", "y", "about"]
        assert np.array_equal(archive["p"], p / 2)
        assert str(archive["about"]) == "a note"


def test_a_matrix_becomes_numbered_columns(tmp_path, rng):
    p = rng.random((4, 2))
    np.savez(tmp_path / "x.npz", p=p, y=np.arange(4))
    open_columns(tmp_path / "x.npz").write({}, tmp_path / "out.csv")
    table = open_columns(tmp_path / "out.csv")
    assert table.names == ["p_0", "p_1", "y"]
    assert np.array_equal(table.values(["p_0", "p_1"]), p)


def test_what_a_format_has_no_place_for(table, tmp_path):
    with pytest.raises(
        InputError, match=r"out.npz: column 'id' has missing values, for which NPZ has no place: write CSV"
    ):
        table.write({}, tmp_path / "out.npz")
    np.savez(tmp_path / "x.npz", p=np.ones(3), about=np.array("a note"))
    with pytest.raises(InputError, match="p, about must be arrays with equally many rows"):
        open_columns(tmp_path / "x.npz").write({}, tmp_path / "out.csv")
    polars.DataFrame({"p": [[0.1, 0.9]]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="out.csv cannot be written as csv: CSV format does not support nested data"):
        open_columns(tmp_path / "x.parquet").write({}, tmp_path / "out.csv")


def test_endings_are_refused_before_anything_is_written():
    with pytest.raises(InputError, match=r"x.xlsx: cannot write .xlsx; known: .npz, .csv, .parquet, .jsonl, .ndjson"):
        check_ending(Path("x.xlsx"))
    with pytest.raises(InputError, match="x: cannot write a file without ending"):
        check_ending(Path("x"))


def test_usual_names_are_those_of_the_first_pattern_that_any_has(table):
    assert table.usual(("q_*", "p*", "y")) == ["p"]
    assert table.usual(("z",)) == []


def test_columns_of_one_name_are_refused(tmp_path):
    csv, lines, archive = (tmp_path / f"a.{ending}" for ending in ("csv", "jsonl", "npz"))
    csv.write_text("y,p,p\n1,0.2,0.9\n0,0.3,0.1\n")
    with pytest.raises(InputError, match=r"a\.csv has 2 columns called 'p': give each column a name of its own"):
        open_columns(csv)
    lines.write_text('{"y": 1, "p": 0.2}\n{"y": 0, "p": 0.2, "p": 0.9, "z": 1, "z": 2}\n')
    with pytest.raises(
        InputError, match=r"a\.jsonl: line 2 is a record with 'p' twice: give each field a name of its own"
    ):
        open_columns(lines).load(["y", "p"])
    assert open_columns(lines).load(["y"]).tolist() == [[1], [0]]
    with ZipFile(archive, "w") as parts:
        for value in (0.2, 0.9):
            with warnings.catch_warnings(action="ignore"), parts.open("p.npy", "w") as part:
                np.lib.format.write_array(part, np.array([value]))
    with pytest.raises(InputError, match=r"a\.npz has 2 columns called 'p'"):
        open_columns(archive)


def test_columns_without_a_name_do_no_harm(tmp_path):
    csv = tmp_path / "a.csv"
    csv.write_text(",y,\n1,0.2,0.9\n")
    assert open_columns(csv).load(["y"]).tolist() == [[0.2]]


def test_an_equals_sign_too_few_is_answered(tmp_path):
    path = tmp_path / "stated.csv"
    path.write_text("answer,key,confidence\nA,A,0.9\nB,A,0.4\n")
    with pytest.raises(InputError, match=r"has no column 'answer=key' \(did you mean 'answer==key'\?\)$"):
        read(path, y_true="answer=key", y_pred="confidence")
    assert read(path, y_true="answer==key", y_pred="confidence").y_true.tolist() == [1, 0]


def test_a_name_that_no_file_can_have():
    with pytest.raises(InputError, match="there can be no file 'aaa"):
        read("a" * 5000 + ".csv")


def test_an_archive_that_memory_has_no_place_for(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    np.savez(tmp_path / "x.npz", y=np.array([0, 1]), p=np.array([0.2, 0.8]))
    monkeypatch.setattr(np.lib.format, "read_array", full)
    with pytest.raises(InputError, match="x.npz does not fit into memory: read a part of it"):
        read(tmp_path / "x.npz")


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_an_archive_in_the_newest_format(tmp_path):
    """Names of fields that are no Latin letters need its third version, whose header is not looked at."""
    np.savez(tmp_path / "x.npz", y=np.array([0, 1]), p=np.array([0.2, 0.8]), more=np.zeros(2, dtype=[("п", "f8")]))
    assert read(tmp_path / "x.npz", y_true="y", y_pred="p").y_pred.probability(1).tolist() == [0.2, 0.8]


def test_files_that_polars_reads_say_so_without_it(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text(TEXT)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match=r".csv files need polars: pip install 'calibrant\[cli\]'"):
        open_columns(tmp_path / "x.csv")


def test_complex_numbers_are_no_values(tmp_path):
    np.savez(tmp_path / "x.npz", y=np.array([0, 1]), p=np.array([0.2j, 0.8]))
    with pytest.raises(InputError, match="x.npz: 'p' holds complex128: give numbers or text"):
        read(tmp_path / "x.npz", y_true="y", y_pred="p")


def test_rows_at_hand_are_written(tmp_path):
    part = FramePart(tmp_path / "x.csv", polars.DataFrame({"y": [1, 0], "p": [0.2, 0.8]}))
    part.write({"p": np.array([0.5, 0.25])}, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "y,p\n1,0.5\n0,0.25\n"
