from io import BytesIO
from pathlib import Path

import pytest

from calibrant._validate import InputError
from calibrant.io import lines as _lines
from calibrant.io import parts as _parts
from calibrant.io.parts import TextParts, parquet_length, parquet_parts, part_of
from calibrant.io.records import BadLines, Needed

polars = pytest.importorskip("polars")


def wish(table):
    table.find("y", (), "--y-true")
    table.find("p", (), "--y-pred")
    return Needed(("y", "p"), frozenset({"p"}))


def rows(text, *, is_csv=None):
    bad = BadLines()
    parts = list(TextParts(Path("x"), wish, bad).parts(BytesIO(text), is_csv=is_csv, rows=1000, flush=None))
    assert all(len(part.frame) == len(part.lines) for part in parts)
    return [row for part in parts for row in part.frame.rows()], bad


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", 40)


def test_types_may_widen_from_block_to_block():
    text = b"note,y,p\n" + b"a,0,0\n" * 20 + b"b,1,0.5\n" * 20 + b"c,0.5,1e-3\n" + b"d,cat,1\n"
    found, bad = rows(text)
    assert [(str(y), p) for y, p in found] == [("0", 0)] * 20 + [("1", 0.5)] * 20 + [("0.5", 1e-3), ("cat", 1)]
    assert found[0] == (0, 0.0)  # numbers, where a block has nothing else
    assert bad.count == 0


def test_bad_lines_of_csv_are_left_out_wherever_they_are():
    lines = [b"y,p", *(b"%d,0.%d" % (i % 2, i) for i in range(1, 60))]
    lines[10] += b",7"
    lines[30] = b"1,high"
    lines[31] = b""
    lines[50] = b"0"
    found, bad = rows(b"\r\n".join(lines))
    assert [p for _, p in found] == [float(f"0.{i}") for i in range(1, 60) if i not in (10, 30, 31, 50)]
    assert [line for line, _ in bad.first] == [11, 31, 51]


def test_rows_know_their_lines(monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", 1000)
    text = b'y,p,note\r\n1,0.5,"two\nlines"\r\n\r\n0,0.5,b\r\n1,high,c\r\n1,0.25,d'
    parts = list(TextParts(Path("x"), wish, bad := BadLines()).parts(BytesIO(text), is_csv=True, rows=9, flush=None))
    assert [row for part in parts for row in part.frame.rows()] == [(1, 0.5), (0, 0.5), (1, 0.25)]
    assert [line for part in parts for line in part.lines] == [2, 5, 7]
    assert bad.first == [(6, "without a number 'p': 'high'")]


def test_json_with_fields_that_come_late_and_others_that_change_type():
    text = (
        b'{"hello": "%s"}\n' % (b"x" * 20)
        + b'{"id": 1, "y": 0, "p": 0}\n' * 5
        + b'{"id": [2], "y": 1, "p": 0.5}\n{"y": true, "p": 1}\n'
    )
    found, bad = rows(text)
    assert found == [(0, 0.0)] * 5 + [(1, 0.5), (1, 1.0)]
    assert bad.first == [(1, "of no use: --y-true: x has no column 'y'; known: hello")]


def test_a_wrong_name_is_found_out(monkeypatch):
    monkeypatch.setattr(_parts, "PATIENCE", 10)
    with pytest.raises(InputError, match=r"--y-true: x has no column 'y'; known: truth"):
        rows(b'{"truth": 0, "p": 0}\n' * 30)


def test_parquet_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(_parts, "PARQUET_ROWS", 7)
    frame = polars.DataFrame({"p": [i / 20 for i in range(20)], "other": ["a"] * 20, "y": [0, 1] * 10})
    frame.write_parquet(tmp_path / "x.parquet")
    parts = list(parquet_parts(tmp_path / "x.parquet", wish))
    assert [len(part.frame) for part in parts] == [7, 7, 6]
    assert [part.lines[0] for part in parts] == [1, 8, 15]
    assert polars.concat([part.frame for part in parts]).equals(frame.select("y", "p"))


def test_the_length_of_a_parquet_file_and_some_of_its_rows(tmp_path):
    path = tmp_path / "x.parquet"
    polars.DataFrame({"y": range(10), "p": range(10), "z": range(10)}).write_parquet(path, row_group_size=3)
    assert parquet_length(path, wish) == (10, 2)
    (part,) = parquet_parts(path, wish, 4, 9)
    assert part.frame["y"].to_list() == [4, 5, 6, 7, 8]
    assert list(parquet_parts(path, wish, 10, 12)) == []


def test_columns_in_memory_are_a_part():
    assert part_of("here", {"y": [1, 0]}).values(["y"]).tolist() == [[1], [0]]
