"""Text in any encoding, packed or not, with any separator, gives the same rows; what may be two things is refused."""

import bz2
import gzip
import io
import lzma

import pytest

from calibrant._validate import InputError
from calibrant._wording import SPEAKS_OPTIONS
from calibrant.io import Batches, read
from calibrant.io.layout import PLAIN, Commas, FileLayout, Utf8

pytest.importorskip("polars")

ROWS = "".join(f"{i % 2};{i / 50:.2f};é{i}\n" for i in range(50)).replace(".", ",")
TEXT = f"y;p;größe\n{ROWS}"
PLAIN_TEXT = "y,p,größe\n" + ROWS.replace(",", ".").replace(";", ",")

WRITTEN = {
    "semicolons.csv": (TEXT.encode(), {}),
    "tabs.tsv": (TEXT.replace(";", "\t").encode(), {}),
    "tabs.csv": (TEXT.replace(";", "\t").encode(), {}),
    "bars.csv": (TEXT.replace(";", "|").encode(), {}),
    "quoted.csv": (TEXT.replace("é7\n", '"é;7"\n').encode(), {}),
    "says so.csv": (f"sep=;\n{TEXT}".encode(), {}),
    "colons.csv": (TEXT.replace(";", ":").encode(), {"sep": ":"}),
    "utf-8 with a mark.csv": (TEXT.encode("utf-8-sig"), {}),
    "utf-16.csv": (TEXT.encode("utf-16"), {}),
    "utf-16-be.csv": (TEXT.encode("utf-16-be"), {"encoding": "utf-16-be"}),
    "latin-1.csv": (TEXT.encode("latin-1"), {"encoding": "latin-1"}),
    "x.csv.gz": (gzip.compress(TEXT.encode("utf-16")), {}),
    "x.csv.bz2": (bz2.compress(TEXT.encode()), {}),
    "x.csv.xz": (lzma.compress(TEXT.encode()), {}),
    "returns.csv": (TEXT.replace("\n", "\r\n").encode(), {}),
    "no ending": (TEXT.encode(), {}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_rows_are_the_same_however_they_are_written(tmp_path, name):
    content, options = WRITTEN[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "plain.csv").write_text(PLAIN_TEXT, "utf-8")
    found, plain = read(tmp_path / name, **options), read(tmp_path / "plain.csv")
    assert found.y_true.tolist() == plain.y_true.tolist()
    assert found.y_pred.probability(1).tolist() == plain.y_pred.probability(1).tolist()
    assert any("decimal commas" in note for note in found.notes)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "no ending" and not name.startswith("x.")])
def test_streams_are_the_same(tmp_path, name):
    content, options = WRITTEN[name]
    (tmp_path / name).write_bytes(content)
    (batch,) = Batches(tmp_path / name, y_true="y", y_pred="p", decimal=",", **options)
    assert batch.y_true.tolist() == [i % 2 for i in range(50)]
    assert batch.y_pred.probability(1)[10] == 0.2


def test_streams_are_unpacked_as_they_come():
    (batch,) = Batches(io.BytesIO(gzip.compress(TEXT.encode())), y_true="y", y_pred="p", decimal=",")
    assert len(batch.y_true) == 50


def test_faults_keep_their_lines(tmp_path):
    (tmp_path / "x.csv").write_text(f'{TEXT}1;0,5;"a\nb"\n\n1;0,5\n')
    with pytest.raises(InputError, match="line 55 is not a row of 3 values, but of 2"):
        read(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text(f'{TEXT}1;0,5;"open\n')
    with pytest.raises(InputError, match="line 52 is not a row of 3 values"):
        read(tmp_path / "x.csv")


def test_one_bad_row_of_many_is_counted():
    batches = Batches(io.BytesIO(f"{TEXT}what;0,5\n1;0,5;a\n".encode()), y_true="y", y_pred="p", decimal=",")
    assert sum(len(batch.y_true) for batch in batches) == 51
    assert batches.bad.first[0][0] == 52


def test_two_ways_to_read_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("y;a,p\n1;2,0.5\n0;2,0.5\n")
    with pytest.raises(
        InputError, match="x.csv can be read with commas or semicolons between values: say sep=',' or sep=';'"
    ):
        read(tmp_path / "x.csv", y_true="y", y_pred="p")
    assert read(tmp_path / "x.csv", sep=",", y_true="y;a", y_pred="p", pos_label="1;2").y_true.tolist() == [
        "1;2",
        "0;2",
    ]


def test_a_line_that_ends_within_a_line_is_refused_in_words(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"y,p;q\n0,0\r1;2\n1,0.7;3\n")
    with pytest.raises(InputError, match=r"x\.csv: line 2 is "):
        read(tmp_path / "x.csv")


def test_values_with_semicolons_are_values():
    assert Commas.of(b"y,p,tags\n1,0.5,a;b\n0,0.4,c;d\n", PLAIN, "x").sep == ","


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"sep": ";;"}, r"sep must be one sign, such as ';' or tab; got ';;'"),
        ({"decimal": ";"}, "decimal must be , or ."),
        ({"encoding": "utf-99"}, "encoding 'utf-99' is not known; known are utf-8, latin-1"),
        ({"encoding": "rot13"}, "encoding 'rot13' is not known"),
    ],
)
def test_bad_layouts(layout, message):
    with pytest.raises(InputError, match=message):
        FileLayout(**layout)


def test_commands_speak_of_options():
    token = SPEAKS_OPTIONS.set(True)
    with pytest.raises(InputError, match="--encoding 'utf-99' is not known"):
        FileLayout(encoding="utf-99")
    SPEAKS_OPTIONS.reset(token)


def test_text_in_another_encoding(tmp_path):
    (tmp_path / "x.csv").write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8.*or say how it is written, as encoding='latin-1' or cp1252"):
        read(tmp_path / "x.csv")
    with pytest.raises(InputError, match="x is no ascii text"):
        Utf8(io.BytesIO(b"\xff\xff\xff\xff"), FileLayout(encoding="ascii"), "x").read()


def test_half_a_letter_waits_for_the_other():
    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(3)

    source = Utf8(Slow("größe".encode("utf-16")), PLAIN, "x")
    assert b"".join(iter(source.read, b"")).decode() == "größe"


def test_text_is_read_by_half_letters():
    source = Utf8(io.BytesIO("größe".encode("utf-16-le")), FileLayout(encoding="utf-16-le"), "x")
    parts = iter(lambda: source.read(1), b"")
    assert b"".join(parts).decode() == "größe"
