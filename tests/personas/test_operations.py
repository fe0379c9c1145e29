"""Who runs it every night: shards, pipes, two models, gates, and a stream with a bad row."""

import gzip
import io
import json
import sys

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

rng = np.random.default_rng(4)
P = rng.uniform(0.05, 0.95, (3, 80)).round(3)
Y = (rng.random(P.shape) < P) * 1


@pytest.fixture
def night(tmp_path, monkeypatch):
    """Three shards of two models, packed, and one file with both models' scores."""
    monkeypatch.chdir(tmp_path)
    for i, (y, p) in enumerate(zip(Y, P, strict=True)):
        for name, power in (("a", 1), ("b", 3)):
            rows = "".join(f"{t},{q**power}\n" for t, q in zip(y, p.tolist(), strict=True))
            (tmp_path / f"{name}-{i}.csv.gz").write_bytes(gzip.compress(f"clicked,p\n{rows}".encode()))
    rows = "".join(f"{t},{q},{q**3}\n" for t, q in zip(Y.ravel(), P.ravel().tolist(), strict=True))
    (tmp_path / "both.csv").write_text(f"clicked,old,new\n{rows}")
    return tmp_path


TRUTH = ("--y-true", "clicked")


def test_shards_are_one_data_set(run, night):
    code, _, err = run("estimate", *sorted(p.name for p in night.glob("a-*")), *TRUTH)
    assert code == 2
    assert "3 files: if they are parts of one data set, say --shards" in err
    ways = (["a-*.csv.gz"], ["a-0.csv.gz", "a-1.csv.gz", "a-2.csv.gz", "--shards"])
    outs = [run("estimate", *way, *TRUTH, "--estimator", "Brier()", "--format", "json") for way in ways]
    for code, out, err in outs:
        assert code == 0
        assert "3 files are read as one: a-0.csv.gz to a-2.csv.gz" in err
        assert json.loads(out)["estimates"][0]["value"] == pytest.approx(np.mean((P - Y) ** 2), rel=1e-9)


def test_models_in_shards_and_models_in_columns(run, night):
    _, shards, _ = run("report", "a-*.csv.gz", "b-*.csv.gz", *TRUTH, "--n-resamples", "99", "--format", "json")
    code, columns, err = run(
        "report", "both.csv", *TRUTH, "--y-pred", "old", "--y-pred", "new", "--n-resamples", "99", "--format", "json"
    )
    assert code == 0, err
    assert err.count("Note: ") == 0
    one, other = json.loads(shards), json.loads(columns)
    assert list(other["reports"]) == ["old", "new"]
    values = [[n["value"] for n in report["numbers"]] for found in (one, other) for report in found["reports"].values()]
    assert values[0] == pytest.approx(values[2], rel=1e-6)
    assert values[1] == pytest.approx(values[3], rel=1e-6)
    (night / "two.csv").write_text((night / "both.csv").read_text().replace(",", ";"))
    code, _, err = run(
        "report", "two.csv", *TRUTH, "--y-pred", "old", "--y-pred", "new", "--n-resamples", "99", "--format", "json"
    )
    assert (code, err.count("Note: ")) == (0, 1)
    code, _, err = run("estimate", "both.csv", *TRUTH, "--y-pred", "old", "--y-pred", "new")
    assert code == 2
    assert "several models, which calibrant report compares" in err


def test_parts_that_were_put_together_with_their_headings(run, night):
    (night / "all.csv").write_bytes(b"".join(gzip.decompress((night / f"a-{i}.csv.gz").read_bytes()) for i in range(3)))
    code, _, err = run("estimate", "all.csv", *TRUTH)
    assert code == 2
    assert "all.csv: row 81 is the heading again: leave it out, or give the parts as files of their own" in err


def test_gates_on_a_pipe(run, night, monkeypatch):
    content = (night / "b-0.csv.gz").read_bytes()
    for gate, code in (("ECE > 90%", 0), ("ECE > 1%", 1), ("ECE() > 1%", 1), ("ece > 1%", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run("estimate", "-", *TRUTH, "--fail-if", gate)[0] == code


def test_one_bad_row_does_not_stop_the_watch(run, night, monkeypatch):
    rows = [f"{t};{q}".replace(".", ",") for t, q in zip(Y.ravel(), P.ravel().tolist(), strict=True)]
    rows[100] = "what?"
    content = gzip.compress(("clicked;p\n" + "\n".join(rows) + "\n").encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, err = run("monitor", "-", *TRUTH, "--decimal", ",", "--window", "60", "--format", "json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["end"]["n"] == 239
    assert "1 line could not be used: line 102 is not a row of 2 values, but of 1: 'what?'" in err
