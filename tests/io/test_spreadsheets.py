import io
import zipfile

import pytest

from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.spreadsheets import read_or_refused

pytest.importorskip("fastexcel")
pl = pytest.importorskip("polars")

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
RELATION = f'<Relationship Id="r1" Type="{OFFICE}/{{}}" Target="{{}}"/>'

ROWS = [["y", "p"], *([i % 2, 0.3 + 0.4 * (i % 2)] for i in range(10))]


def cell(place, value):
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def workbook(rows, more=""):
    """The parts that a reader looks for, written by hand."""
    lines = [
        "".join(cell(f"{'ABCDEF'[j]}{i}", value) for j, value in enumerate(row) if value is not None)
        for i, row in enumerate(rows, 1)
    ]
    sheet = "".join(f'<row r="{i}">{line}</row>' for i, line in enumerate(lines, 1))
    parts = {
        "_rels/.rels": RELATIONS.format(RELATION.format("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": RELATIONS.format(RELATION.format("worksheet", "worksheets/sheet1.xml")),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}{more}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def written(tmp_path):
    def write(rows, more=""):
        (tmp_path / "x.xlsx").write_bytes(workbook(rows, more))
        return tmp_path / "x.xlsx"

    return write


def test_rows_are_those_of_the_first_sheet(written):
    data = read(written(ROWS))
    assert data.y_true.tolist() == [row[0] for row in ROWS[1:]]


def test_columns_of_one_name_are_refused(written):
    with pytest.raises(InputError, match=r"x.xlsx has 2 columns called 'p': give each column a name of its own"):
        read(written([["y", "p", "p"], *([i % 2, 0.5, 0.4] for i in range(6))]))


def test_a_row_that_is_longer_than_the_header_is_refused(written):
    with pytest.raises(InputError, match=r"x.xlsx has 0.9 right of its last column, 'p': give that column a name"):
        read(written([*ROWS, [1, 0.5, 0.9]]))


def test_a_column_without_a_name_among_others_does_no_harm(written):
    assert len(read(written([["y", None, "p"], *([i % 2, 7, 0.5] for i in range(6))])).y_true) == 6


@pytest.mark.parametrize("place", ["XFD1048576", "B1048576000", "ZZZZ9"])
def test_one_far_cell_does_not_take_all_memory(written, place):
    row = '<row r="1048576"><c s="1" r="{}"><v>1</v></c></row>' + " " * 5_000_000
    with pytest.raises(InputError, match="remove those far from the table, or save it as CSV|cannot be read as xlsx"):
        read(written(ROWS, row.format(place)))


def test_far_cells_that_are_empty_do_no_harm(written):
    assert len(read(written(ROWS, '<row r="1048576"><c r="XFD1048576" s="1"/></row>')).y_true) == 10


def test_a_library_that_fails_is_no_traceback(written, capfd):
    with pytest.raises(InputError, match=r"x.xlsx cannot be read as xlsx: it is damaged; write it anew"):
        read(written(ROWS, '<row r="30"><c r="ZZZZZZZZZZ99999999999"><v>1</v></c></row>'))
    assert "panicked" in capfd.readouterr().err


def test_a_wish_to_end_is_not_taken_for_damage():
    with pytest.raises(KeyboardInterrupt), read_or_refused("x.xlsx", "xlsx", ValueError):
        raise KeyboardInterrupt
    with (
        pytest.raises(InputError, match="x.xlsx cannot be read as xlsx: ValueError"),
        read_or_refused("x.xlsx", "xlsx", ValueError),
    ):
        raise ValueError


@pytest.mark.parametrize("at", range(30, 90))
def test_parquet_with_a_bit_that_fell_over(tmp_path, at, capfd):
    """Some of these make Polars fail in Rust."""
    out = io.BytesIO()
    pl.DataFrame({"y": [0, 1] * 12, "p": [0.1, 0.9] * 12}).write_parquet(out, compression="uncompressed")
    content = bytearray(out.getvalue())
    content[at] ^= 4
    (tmp_path / "x.parquet").write_bytes(content)
    try:
        data = read(tmp_path / "x.parquet")
    except InputError as error:
        assert str(error).startswith("x.parquet")  # noqa: PT017  # most are read
    else:
        assert len(data.y_true)
