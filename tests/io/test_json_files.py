import json

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.io import Batches, read

pytest.importorskip("polars")

ROWS = [{"y": i % 2, "p": i / 10, "about": {"site": "a" if i < 5 else "b"}} for i in range(10)]
SHAPES = {
    "list": json.dumps(ROWS),
    "columns": json.dumps({name: [row[name] for row in ROWS] for name in ("y", "p")}),
    "columns by row": json.dumps({name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ("y", "p")}),
    "lines": "".join(json.dumps(row) + "\n" for row in ROWS),
    "pretty": json.dumps(ROWS, indent=2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["x.json", "x"])
def test_shapes(tmp_path, shape, name):
    (tmp_path / name).write_text(SHAPES[shape])
    data = read(tmp_path / name)
    assert data.y_true.tolist() == [0, 1] * 5
    assert data.y_pred.probability(1).tolist() == [i / 10 for i in range(10)]


def test_objects_within_objects(tmp_path):
    rows = [
        {"key": "A", "probs": {"A": 0.75, "B": 0.25}, "m": {"n": {"o": 1}}},
        {"key": "B", "probs": {"A": 0.5, "B": 0.5}, "m": {"n": {"o": 2}}},
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = read(tmp_path / "x.jsonl", y_true="key", y_pred="probs.*", by=["m.n.o"])
    assert data.y_pred.labels == ("A", "B")
    assert data.by["m.n.o"].tolist() == [1, 2]
    (batch,) = Batches(tmp_path / "x.jsonl", y_true="key", y_pred="probs.*")
    assert batch.y_pred.matrix.tolist() == [[0.75, 0.25], [0.5, 0.5]]


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_values_that_nest_too_deeply_for_a_table(tmp_path, name):
    deep = '{"y": 1, "p": 0.5, "c": ' + "[" * 300 + "]" * 300 + "}"
    (tmp_path / name).write_text(f"[{deep}]" if name == "x.json" else f'{{"y": 0, "p": 0.5}}\n{deep}\n')
    with pytest.raises(InputError, match=rf"{name}: line [12] nests too deeply: give one value per column"):
        read(tmp_path / name)
    if name == "x.jsonl":
        assert sum(len(batch.y_true) for batch in Batches(tmp_path / name)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "is JSON, but no table"),
        ("[1, 2]", "is JSON, but no table: give a list of objects"),
        ("[", "is not JSON"),
        ('{"y": [1], "p": [0.5, 0.4]}', "its lists have different lengths"),
        ("[" * 100_000, "is not JSON"),
    ],
    ids=["number", "numbers", "open", "lengths", "deep"],
)
def test_what_is_no_table(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"y": 1, "p": 0.5}, {"y": 1, "y": 0, "p": 0.9}]', "x.json has an object with 'y' twice"),
        ('{"y": [1, 0], "p": [0.5, 0.4], "p": [0.1, 0.2]}', "x.json has an object with 'p' twice"),
        ('{"y": {"0": 1}, "p": {"0": 0.9, "1": 0.7}}', "x.json: its columns have different rows"),
    ],
)
def test_nothing_is_lost_in_silence(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.json")


HARNESS = '{"doc_id": 0, "doc": {}, "target": "0", "filtered_resps": [["-1"], ["-2"]]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HARNESS + "what?\n", "x.jsonl: line 2 is no object of JSON: b'what"),
        (HARNESS + "[" * 100_000 + "]" * 100_000, "x.jsonl: line 2 is no object of JSON"),
        (HARNESS + '{"doc_id": ' + "9" * 6000 + "}", "x.jsonl: line 2 is no object of JSON"),
        (
            HARNESS + '{"doc_id": 1}',
            r"x.jsonl is a log with a sample that its program did not write so \(KeyError: 'doc'",
        ),
        (HARNESS + HARNESS.replace('"-1"', '"inf"'), "column 'p_0' has missing values in 1 of 2 rows"),
        ('{"eval": {}, "samples": [1]}', "x.jsonl is a log with a sample that its program did not write so"),
        (
            '{"eval": {}, "samples": [{"scores": 7}]}',
            "x.jsonl is a log with a sample that its program did not write so",
        ),
    ],
)
def test_logs_that_are_damaged(tmp_path, text, message):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.jsonl")


def test_nan_is_missing(tmp_path):
    (tmp_path / "x.json").write_text('[{"y": 1, "p": NaN}, {"y": 0, "p": 0.5}]')
    assert read(tmp_path / "x.json", missing="drop").y_true.tolist() == [0]
    np.savez(tmp_path / "x.npz", y=[1, 0], p=[np.nan, 0.5])
    assert read(tmp_path / "x.npz", missing="drop").y_true.tolist() == [0]
    with pytest.raises(InputError, match="column 'p' has missing values in 1 of 2 rows, first in row 1"):
        read(tmp_path / "x.npz")


def test_spreadsheets(tmp_path):
    pytest.importorskip("fastexcel")
    workbooks = pytest.importorskip("xlsxwriter")
    with workbooks.Workbook(tmp_path / "x.xlsx") as book:
        first, _ = book.add_worksheet("scores"), book.add_worksheet("other")
        for i, row in enumerate([("y", "p"), (1, 0.9), (0, "20%"), (1, "0,5")]):
            first.write_row(i, 0, row)
    data = read(tmp_path / "x.xlsx")
    assert data.y_pred.probability(1).tolist() == [0.9, 0.2, 0.5]
    assert data.notes[0] == "the sheet 'scores' of x.xlsx is read, of 2: save another as CSV, or move it to the front"
    (tmp_path / "y.xlsx").write_bytes(b"PK\3\4 xl/")
    with pytest.raises(InputError, match="y.xlsx cannot be read as xlsx"):
        read(tmp_path / "y.xlsx")


def test_spreadsheets_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    (tmp_path / "x.xlsx").write_bytes(b"")
    with pytest.raises(
        InputError, match=r"spreadsheets need fastexcel: pip install 'calibrant\[excel\]', or save it as CSV"
    ):
        read(tmp_path / "x.xlsx")
