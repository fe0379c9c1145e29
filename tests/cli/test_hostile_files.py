"""Files that are broken, or made to break: one line, code 2, and nothing of them that commands a terminal."""

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("cyclopts")
polars = pytest.importorskip("polars")

ROWS = "".join(f"{i % 2},{i % 10 / 10}\n" for i in range(40))
GOOD = f"y,p\n{ROWS}"
DEEP = "[" * 200_000 + "]" * 200_000
LINE = '{"y": 1, "p": 0.25}\n'


def array(values, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(values), **options)
    return out.getvalue()


def declared(shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue()


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as parts:
        parts.writestr("y.npy", array([0, 1]))
        for name, content in members.items():
            parts.writestr(name.replace("_npy", ".npy"), content)
    return out.getvalue()


def parquet(frame):
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


FILES = {
    "long row.csv": (f"a,y,p\n1,0,0.5\n12,0,1,0.9\n{ROWS}", "line 3 is not a row of 3 values, but of 4: '12,0,1,0.9'"),
    "short row.csv": ("a,y,p,c\n1,0,0.5,1\n0,1,0.9\n", "line 3 is not a row of 4 values, but of 3"),
    "one of each.csv": ("y,p,c\n1,0.5,1\n5,0,1,0.9\n1,0.5\n", "line 3 is not a row of 3 values, but of 4"),
    "trailing commas.csv": ("y,p\n1,0.5,\n", "line 2 is not a row of 2 values, but of 3"),
    "duplicates.csv": ("\ufeffy,p,y\n1,0.5,0\n", "2 columns called 'y'"),
    "carriage returns.csv": (GOOD.replace("\n", "\r"), "a carriage return within a line"),
    "one carriage return.csv": (f"{GOOD}1,0.5\r0,0.5\n", "line 42 is not CSV, a carriage return within a line"),
    "open quote.csv": ('y,p,c\n1,0.5,"x\n0,0.5,y\n', "line 2 is not CSV, unexpected end of data"),
    "long name.csv": (f'y,p,"{"x" * 200_000}"\n1,0.5,1\n', "field larger than field limit"),
    "gzip.csv": (gzip.compress(GOOD.encode())[:-20], "is damaged, and cannot be unpacked"),
    "bzip2.csv": (bz2.compress(GOOD.encode())[:-9], "is damaged, and cannot be unpacked"),
    "xz.csv": (lzma.compress(GOOD.encode())[:40], "is damaged, and cannot be unpacked"),
    "wide letters.csv": (GOOD.encode("utf-16")[:-1], "no utf-16-le text: save it as UTF-8, or say"),
    "letters of long ago.csv": (
        "y,p,größe\n1,0.5,1\n".encode("latin-1"),
        "say how it is written, as --encoding latin-1",
    ),
    "zip.csv": (archive(), "a zip archive"),
    "parquet.csv": (parquet(polars.DataFrame({"y": [1], "p": [0.5]})), "a Parquet file"),
    "zero bytes.csv": (GOOD.replace("0.4", "0\0.4"), "holds zero bytes"),
    "2^64.csv": (
        f"y,p\n{2**64},0.5\n{ROWS}",
        "column 'y' has integers beyond 64 bits" if hasattr(polars, "Int128") else "as dtype `i64` at column 'y'",
    ),
    "2^63.jsonl": (f'{{"y": {2**63}, "p": 0.5}}\n{LINE}', "beyond 64 bits"),
    "half a letter.jsonl": ('{"y": "\\ud800", "p": 0.5}\n', "line 1 is without text that UTF-8 has, 'y'"),
    "deep.jsonl": (f'{{"y": 1, "p": 0.5, "c": {DEEP}}}\n{LINE}', "line 1 nests too deeply"),
    "bad line.jsonl": (f"{LINE}what?\n", "line 2 is not JSON: 'what?'"),
    "array.npz": (array([0.5, 0.5]), "cannot be read as NPZ"),
    "text.npz": (archive(p_npy=array([0.5, 0.5]), readme=b"hello"), "'readme' in it is no array"),
    "magic.npz": (archive(p_npy=b"hello"), "cannot be read as NPZ"),
    "10^12.npz": (archive(p_npy=declared((10**12,))), "fewer values than its shape"),
    "10^30.npz": (archive(p_npy=declared((10**30,))), "fewer values than its shape"),
    "objects.npz": (archive(p_npy=array([None] * 2, allow_pickle=True)), "Object arrays cannot be loaded"),
    "no columns.npz": (archive(p_npy=array(np.zeros((2, 0)))), "rows of no values"),
    "method.npz": (
        archive().replace(b"PK\x01\x02\x14\x03\x14\0\0\0\0\0", b"PK\x01\x02\x14\x03\x14\0\0\0\x63\0"),
        "NPZ",
    ),
    "blank.csv": ("\n\n", "blank.csv has no rows: begin with a line of names"),
    "structures.npz": (
        archive(p_npy=array(np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]))),
        "'p' holds [('a', '<f8'), (",
    ),
    "complex.npz": (archive(p_npy=array([0.5j, 0.5])), "'p' holds complex128: give numbers or text"),
    "dates.npz": (
        archive(p_0_npy=array([0.5, 0.5]), p_1_npy=array(np.zeros(2, dtype="m8[D]"))),
        "p_0, p_1 mix dates with numbers",
    ),
    "lists.parquet": (parquet(polars.DataFrame({"y": [[1], [0]], "p": [0.5, 0.4]})), "column 'y' holds List(Int64)"),
    "objects.parquet": (parquet(polars.DataFrame({"y": [{"a": 1}], "p": [0.5]})), "column 'y' holds Struct"),
    "bytes.parquet": (parquet(polars.DataFrame({"y": [b"1"], "p": [0.5]})), "column 'y' holds Binary"),
    "terminal.csv": ("\x1b[31mt\x07,q\n1,0.5\n", "has columns \\u001b[31mt\\u0007, q"),
    "long names.csv": (f"{'t' * 9999},q\n1,0.5\n", f"has columns {'t' * 200}…"),
}

with suppress(AttributeError, polars.exceptions.ComputeError):  # old releases cannot write such files
    LONG = polars.DataFrame({"y": [2**65], "p": [0.5]}, schema={"y": polars.Int128, "p": polars.Float64})
    FILES["2^64.parquet"] = parquet(LONG), "beyond 64 bits"


def refused(run, *arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("calibrant: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    return err


@pytest.mark.parametrize("name", FILES)
def test_files_of_predictions(run, tmp_path, name):
    content, message = FILES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(run, "estimate", str(path))


BAD = [name for name in FILES if name.endswith((".csv", ".jsonl")) and "." in name]


@pytest.mark.parametrize("name", [name for name in BAD if name != "2^63.jsonl"])
def test_the_monitor_refuses_them_where_it_is_strict(run, tmp_path, name):
    path = tmp_path / name
    content = FILES[name][0]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(run, "monitor", str(path), "--strict")


def test_a_row_that_is_too_long_raises_no_alarm(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y,p\n1,0,0.5\n12,0,1,0.9\n" + "".join(f"3,{row}\n" for row in ROWS.split()))
    code, out, err = run("monitor", str(path), "--format", "json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["end"]["n"] == 41
    assert "line 3 is not a row of 3 values" in " ".join(err.split())


@pytest.mark.skipif(os.name == "nt", reason="needs links")
@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "LOOP"),
        ("monitor", "LOOP"),
        ("report", "x.csv", "--out", "LOOP"),
        ("monitor", "x.csv", "--state", "LOOP"),
    ],
    ids=" ".join,
)
def test_links_that_lead_nowhere(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(GOOD)
    os.symlink("b.csv", "a.csv")
    os.symlink("a.csv", "b.csv")
    code, out, err = run(*(word.replace("LOOP", "a.csv") for word in arguments))
    assert (code, out) == (2, "")  # before any row is read
    assert "a.csv" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["x\0.csv", "x\ud800.csv"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "NAME"),
        ("monitor", "NAME"),
        ("report", "x.csv", "--out", "NAME"),
        ("monitor", "x.csv", "--state", "NAME"),
        ("recalibrate", "x.csv", "--apply", "NAME", "--out", "o.csv"),
    ],
    ids=" ".join,
)
def test_names_that_no_file_can_have(run, tmp_path, monkeypatch, arguments, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(GOOD)
    assert " no file " in refused(run, *(name if word == "NAME" else word for word in arguments))


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--estimator", "ECE('\ud800')", "cannot be read: it holds half a character"),
        ("--estimator", "ECE(norm=" + "-" * 30_000 + "1)", "nested too deeply"),
        ("--estimator", f"ECE(norm={10**30})", "norm must be a number of at least 1"),
        ("--estimator", "ECE(EqualMass(1000000000))", "n_bins must be at most 1,000,000"),
        ("--estimator", f"SKCE(block={10**30})", "block must be a whole number"),
    ],
    ids=lambda text: text[:20],
)
def test_settings(run, tmp_path, option, text, message):
    (tmp_path / "x.csv").write_text(GOOD)
    assert message in refused(run, "estimate", str(tmp_path / "x.csv"), option, text)


def test_what_is_written_of_a_long_name_does_not_hide_the_rest(run, tmp_path):
    (tmp_path / "x.csv").write_text(GOOD)
    err = refused(run, "monitor", str(tmp_path / "x.csv"), "--save-every", "9" * 5000)
    assert f"'{'9' * 200}…' cannot be read: write rows as 10000" in err


def test_a_window_without_end(run, tmp_path):
    (tmp_path / "x.csv").write_text(GOOD)
    assert "--window must be a whole number from 1 to" in refused(
        run, "monitor", str(tmp_path / "x.csv"), "--window", "9" * 30
    )


@pytest.mark.filterwarnings("default:class 0")
def test_a_warning_is_a_note(run, tmp_path):
    rows = "".join(f"{1 + i % 2},0.4,0.3,0.3\n" for i in range(60))
    (tmp_path / "x.csv").write_text(f"y,p_0,p_1,p_2\n{rows}")
    code, _, err = run("estimate", str(tmp_path / "x.csv"), "--predict", "Categorical('p_*')", "--estimator", "Brier()")
    assert code == 0
    assert err == "Note: class 0 never occurs in y_true though the predictions expect it: labels start at 0, not 1.\n"


@pytest.mark.parametrize(
    "content", [DEEP, f'{{"kind": "recalibration", "map": {DEEP}}}', "1" + "0" * 5000, b"\xff\xfe", "[]"]
)
def test_maps_and_states(run, tmp_path, content):
    path, data = tmp_path / "map.json", tmp_path / "x.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    data.write_text(GOOD)
    refused(run, "recalibrate", str(data), "--apply", str(path), "--out", str(tmp_path / "out.csv"))
    refused(run, "monitor", str(data), "--state", str(path))


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_another_name_of_the_input_is_no_output(run, tmp_path):
    data, other = tmp_path / "x.csv", tmp_path / "y.csv"
    data.write_text(GOOD)
    os.link(data, other)
    assert "is in use by this very command" in refused(run, "report", str(data), "--out", str(other))
    assert data.read_text() == GOOD
