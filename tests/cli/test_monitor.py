import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

COLUMNS = ("--y-true", "y", "--y-pred", "p")


def lines(n=600, change=None, seed=1):
    """JSON lines of a stream that is calibrated, up to a row."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    said = p if change is None else np.where(np.arange(n) < change, p, 5 * p / (1 + 4 * p))
    y = (rng.random(n) < p).astype(int)
    return [json.dumps({"y": int(a), "p": round(float(b), 6)}) for a, b in zip(y, said, strict=True)]


@pytest.fixture
def quiet(tmp_path):
    path = tmp_path / "quiet.jsonl"
    path.write_text("\n".join(lines()) + "\n")
    return str(path)


@pytest.fixture
def drifting(tmp_path):
    path = tmp_path / "drifting.jsonl"
    path.write_text("\n".join(lines(1500, change=800)) + "\n")
    return str(path)


def objects(out):
    return [json.loads(line) for line in out.splitlines()]


def test_a_calibrated_stream_raises_no_alarm(run, quiet):
    code, out, err = run("monitor", quiet, *COLUMNS, "--window", "250")
    assert code == 0
    assert "600 rows" in out
    assert "no alarm" in out
    assert "1 to 250" in out
    assert "501 to 600" in out
    assert not err


def test_a_drift_raises_one_and_says_which_way(run, drifting):
    code, out, _ = run("monitor", drifting, *COLUMNS)
    assert code == 1
    assert "ALARM at row 8" in out or "ALARM at row 9" in out
    assert "too high" in out


def test_for_programs_every_line_is_an_object(run, drifting):
    code, out, _ = run("monitor", drifting, *COLUMNS, "--window", "500", "--format", "json")
    found = objects(out)
    assert code == 1
    assert [next(iter(x)) for x in found] == ["window", "alarm", "window", "window", "end"]
    assert found[-1]["end"]["n"] == 1500
    assert found[-1]["end"]["alarm"]["row"] > 800
    assert {"first", "last", "claimed", "happened", "error", "pvalue", "log_evalue"} <= set(found[0]["window"])


def test_what_was_impossible_is_told_in_words(run, tmp_path):
    path = tmp_path / "certain.jsonl"
    path.write_text('{"y": 1, "p": 0.0}\n{"y": 0, "p": 0.5}\n')
    code, out, _ = run("monitor", str(path), *COLUMNS)
    assert code == 1
    assert "infinite" in out


def test_stop_reads_no_further_than_the_batch_of_the_alarm(run, drifting):
    code, out, _ = run("monitor", drifting, *COLUMNS, "--window", "100", "--stop", "--format", "json")
    assert code == 1
    assert objects(out)[-1]["end"]["n"] < 1100


def test_lines_that_are_not_json_are_counted_and_reported(run, tmp_path):
    path = tmp_path / "torn.jsonl"
    rows = lines(300)
    rows[5], rows[7] = "what?", '{"y": 1}'
    path.write_text("\n".join(rows))
    code, out, err = run("monitor", str(path), *COLUMNS, "--format", "json")
    assert code == 0
    assert objects(out)[-1]["end"]["n"] == 298
    assert objects(out)[-1]["end"]["bad_lines"] == 2
    assert "2 lines could not be used: line 6" in " ".join(err.split())


def test_strict_fails_at_the_first_such_line(run, tmp_path):
    path = tmp_path / "torn.jsonl"
    path.write_text("\n".join([*lines(20), "what?"]))
    code, _, err = run("monitor", str(path), *COLUMNS, "--strict")
    assert code == 2
    assert "line 21" in err


def test_a_state_goes_on_where_it_was_left(run, drifting, tmp_path):
    rows = lines(1500, change=800)
    whole_code, whole, _ = run("monitor", drifting, *COLUMNS, "--format", "json")
    state = tmp_path / "state.json"
    for start, end in ((0, 700), (700, 1500)):
        part = tmp_path / f"{start}.jsonl"
        part.write_text("\n".join(rows[start:end]))
        code, out, _ = run("monitor", str(part), *COLUMNS, "--state", str(state), "--format", "json")
    assert (code, whole_code) == (1, 1)
    assert objects(out)[-1]["end"]["alarm"] == objects(whole)[-1]["end"]["alarm"]
    assert objects(out)[-1]["end"]["n"] == 1500
    assert next(x["window"] for x in objects(out) if "window" in x)["first"] == 701


@pytest.mark.parametrize("content", ["nonsense", "{}", '{"kind": "report"}', "[1]"])
def test_another_file_is_no_state(run, quiet, tmp_path, content):
    path = tmp_path / "state.json"
    path.write_text(content)
    code, _, err = run("monitor", quiet, *COLUMNS, "--state", str(path))
    assert code == 2
    assert "holds no state of a monitor" in err
    assert path.read_text() == content


def test_a_state_keeps_its_level(run, quiet, tmp_path):
    state = str(tmp_path / "state.json")
    run("monitor", quiet, *COLUMNS, "--state", state)
    code, _, err = run("monitor", quiet, *COLUMNS, "--state", state, "--alpha", "0.01")
    assert code == 2
    assert "--alpha 0.05 --seed 0" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--alpha", "2"), "alpha"),
        (("--window", "0"), "--window"),
        (("--sample-weight", "w"), "--sample-weight"),
        (("--y-pred", "q"), "no column 'q'"),
    ],
)
def test_refusals(run, quiet, options, words):
    code, _, err = run(
        "monitor", quiet, "--y-true", "y", *(() if "--y-pred" in options else ("--y-pred", "p")), *options
    )
    assert code == 2
    assert words in err


def test_reads_the_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines(50)).encode())))
    code, out, _ = run("monitor", "-", *COLUMNS)
    assert code == 0
    assert "50 rows" in out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_the_alarm_comes_before_the_pipe_ends():
    """Rows flow slowly: the alarm is out while the writer still holds the pipe open."""
    command = [sys.executable, "-m", "calibrant", "monitor", "-", *COLUMNS, "--format", "json"]
    watching = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    clock = threading.Timer(60, watching.kill)
    clock.start()
    try:
        watching.stdin.write("\n".join(['{"y": 1, "p": 0.02}'] * 20) + "\n")
        watching.stdin.flush()
        assert "alarm" in json.loads(watching.stdout.readline())
        watching.stdin.close()
        assert "window" in json.loads(watching.stdout.readline())
        assert watching.wait(60) == 1
    finally:
        clock.cancel()
        watching.kill()
        watching.stdout.close()
