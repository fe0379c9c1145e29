import io
import os
import sys
import threading

import numpy as np
import pytest

from calibrant import cli
from calibrant._validate import InputError
from calibrant.cli import pipes as streams


@pytest.fixture
def standard_input(monkeypatch):
    """Put bytes into the standard input."""

    def put(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


CONTENT = {
    "csv": b"y,p\n1,0.9\n",
    "jsonl": b'\xef\xbb\xbf\n {"y": 1}\n',
    "parquet": b"PAR1" + b"\0" * 20,
    "npz": b"PK\x03\x04" + b"\0" * 20,
}


@pytest.mark.parametrize("format", CONTENT)
def test_the_first_bytes_tell_the_format(standard_input, format):
    content = CONTENT[format] * 2000  # more than is looked at
    standard_input(content)
    path = streams.local(streams.DASH)
    assert path.name == f"stdin.{format}"
    assert path.read_bytes() == content


def test_what_is_said_goes_first(standard_input):
    standard_input(b"\0\0")
    assert streams.local(streams.DASH, "npz").suffix == ".npz"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing came through the standard input"),
        (b" \n", "nothing came through"),
        (b"\x1f\x8b\x08", "is damaged, and cannot be unpacked"),
        (b"\x01\x00\x02", "of no known format: say which with format='csv'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_remedy(standard_input, content, message):
    standard_input(content)
    with pytest.raises(InputError, match=message):
        streams.local(streams.DASH)


def test_a_terminal_is_no_pipe(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for nothing in (Terminal(), None):
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(InputError, match="- reads from a pipe, and there is none: cat predictions.csv | calibrant"):
            streams.local(streams.DASH)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_other_pipes_are_read_once_too(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CONTENT["csv"],))
    writer.start()
    path = streams.local(pipe)
    writer.join()
    assert path.read_bytes() == CONTENT["csv"]
    assert streams.name_of(pipe) == streams.name_of(streams.DASH) == "the standard input"


def test_a_dash_alone_is_no_option():
    dash = str(streams.DASH)
    found = cli._renamed(["report", "-", "--out", "-", "--y-true", "a-b"])
    assert found == ["report", dash, "--out", dash, "--y-true", "a-b"]


def test_files_are_left_where_they_are(tmp_path):
    path = tmp_path / "x.csv"
    assert streams.local(path) == path
    assert streams.name_of(path) == "x.csv"


def test_a_file_into_the_output(tmp_path, capfdbinary):
    (tmp_path / "x").write_bytes(bytes(range(256)))
    streams.pour(tmp_path / "x")
    assert capfdbinary.readouterr().out == bytes(range(256))


class TestCommands:
    """Every command that takes a file takes a pipe, in each format, and gives the same numbers."""

    @pytest.fixture
    def forms(self, rng, tmp_path):
        polars = pytest.importorskip("polars")
        p = rng.random(60).round(3)
        columns = {"y": (rng.random(60) < p).astype(int), "p": p}
        frame = polars.DataFrame(columns)
        frame.write_csv(tmp_path / "x.csv")
        frame.write_ndjson(tmp_path / "x.jsonl")
        frame.write_parquet(tmp_path / "x.parquet")
        np.savez(tmp_path / "x.npz", **columns)
        return tmp_path

    @pytest.mark.parametrize("format", CONTENT)
    def test_estimates(self, run, forms, standard_input, format):
        pytest.importorskip("cyclopts")
        direct = run("estimate", str(forms / f"x.{format}"), "--format", "json")
        standard_input((forms / f"x.{format}").read_bytes())
        assert run("estimate", "-", "--format", "json") == direct
        assert direct[0] == 0
        other = forms / "of no ending"
        other.write_bytes((forms / f"x.{format}").read_bytes())
        assert run("estimate", str(other), "--input-format", format, "--format", "json") == direct

    @pytest.mark.parametrize(
        "command",
        [
            ["test", "--n-resamples", "99"],
            ["simulate", "--data-sets", "10", "--estimator", "ECE()"],
            ["recalibrate", "--method", "Platt()"],
        ],
        ids=lambda command: command[0],
    )
    def test_others(self, run, forms, standard_input, command):
        pytest.importorskip("cyclopts")
        standard_input((forms / "x.csv").read_bytes())
        code, out, err = run(command[0], "-", *command[1:], "--format", "json")
        assert (code, err) == (0, "")
        assert out.startswith("{")

    def test_a_page_from_pipe_to_pipe(self, run, forms, standard_input, monkeypatch, tmp_path):
        pytest.importorskip("cyclopts")
        pytest.importorskip("matplotlib")
        monkeypatch.chdir(tmp_path)
        before = sorted(tmp_path.iterdir())
        standard_input((forms / "x.csv").read_bytes())
        buffer = io.BytesIO()
        monkeypatch.setattr(streams, "pour", lambda path: buffer.write(path.read_bytes()))
        monkeypatch.setattr("calibrant.cli.reporting.pour", streams.pour)
        code, out, err = run("report", "-", "--out", "-", "--n-resamples", "99")
        assert (code, out) == (0, "")
        assert buffer.getvalue().startswith(b"<!doctype html>")
        assert b"Calibration of the standard input" in buffer.getvalue()
        assert "Brier score" in err
        assert sorted(tmp_path.iterdir()) == before

    def test_two_things_do_not_fit_the_output(self, run, forms):
        pytest.importorskip("cyclopts")
        code, _, err = run("report", str(forms / "x.csv"), "--out", "-", "--format", "json")
        assert (code, "--out - and --format json both go to the standard output" in err) == (2, True)

    def test_better_rows_keep_the_format_of_the_input(self, run, forms, standard_input, monkeypatch):
        pytest.importorskip("cyclopts")
        poured = []
        monkeypatch.setattr("calibrant.cli.recalibrate.pour", poured.append)
        learn = ["recalibrate", str(forms / "x.csv"), "--method", "Platt()", "--force"]
        assert run(*learn, "--save", str(forms / "map.json"))[0] == 0
        for format in CONTENT:
            standard_input((forms / f"x.{format}").read_bytes())
            code, out, err = run("recalibrate", "-", "--apply", str(forms / "map.json"), "--out", "-")
            assert (code, out) == (0, "")
            assert "Written to the standard output: 60 rows" in err
            assert poured[-1].suffix == f".{format}"
            assert poured[-1].stat().st_size > 500
        code, _, err = run("recalibrate", str(forms / "x.csv"), "--save", "-")
        assert (code, "--save takes a file" in err) == (2, True)


def test_a_dash_without_a_pipe_is_refused(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run("monitor", "-", "--y-true", "y", "--y-pred", "p")
    assert code == 2
    assert "- reads from a pipe, and there is none: tail -f log.jsonl | calibrant monitor -" in err
