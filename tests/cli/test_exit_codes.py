"""Every command leaves with the codes that ``calibrant --help`` lists."""

import os
import signal
import subprocess
import sys
import time

import pytest

from calibrant.cli.manual import EXIT_CODES, FAILURES

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


@pytest.fixture
def boastful(tmp_path, rng):
    """A file of claims that do not come true, of which recalibration by a constant makes worse what it can."""
    p = rng.random(200).round(3)
    y = (rng.random(200) < 0.35 + 0.3 * p).astype(int)
    path = tmp_path / "x.csv"
    path.write_text("y,p\n" + "".join(f"{a},{b}\n" for a, b in zip(y, p, strict=True)))
    return path


CASES = {
    "report": (["--n-resamples", "99", "--out", "x.json"], ["--fail-if", "ECE > 0.01"]),
    "estimate": (["--estimator", "Brier()"], ["--fail-if", "Brier > 0.01"]),
    "test": (["--n-resamples", "99"], ["--gate"]),
    "recalibrate": (["--method", "Platt()"], ["--method", "Isotonic()", "--folds", "2", "--save", "map.json"]),
    "simulate": (["--estimator", "ECE()", "--data-sets", "10"], None),
}


@pytest.mark.parametrize("command", CASES)
def test_commands_on_files(run, monkeypatch, tmp_path, boastful, command):
    monkeypatch.chdir(tmp_path)
    plain, gate = CASES[command]
    assert run(command, str(boastful), *plain)[0] == 0
    assert (command in FAILURES) == (gate is not None)
    if command == "recalibrate":  # rows whose order says everything about the claim and nothing about the truth
        boastful.write_text("y,p\n" + "".join(f"{i % 2},{(i + 1) / 42:.3f}\n" for i in range(40)))
    if gate is not None:
        code, _, err = run(command, str(boastful), *(gate if command == "recalibrate" else [*plain, *gate]))
        assert code == 1
        assert "gate failed" in err or "not saved" in err
    code, out, err = run(command, str(tmp_path / "nowhere.csv"))
    assert (code, out) == (2, "")
    assert err.startswith("calibrant: there is no file")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["demo", "digit"], ["doctor", "--fast"], ["completion", "tcsh"], ["hlep"]])
def test_other_commands_refuse_what_they_do_not_know(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("calibrant: ")


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["repport", "x.csv"], "report"),
        (["demo", "digit"], "digits"),
        (["report", "FILE", "--y-ture", "y"], "--y-true"),
        (["test", "FILE", "--formt", "json"], "--format"),
        (["estimate", "FILE", "--y-pred", "q"], "'p'"),
        (["estimate", "FILE", "--y-true", "Y"], "'y'"),
        (["estimate", "FILE", "--by", "pp"], "'p'"),
        (["estimate", "FILE", "--estimator", "ece()"], "'ECE'"),
        (["recalibrate", "FILE", "--method", "Plat()"], "'Platt'"),
        (["report", "FILE", "--fail-if", "ece > 1", "--n-resamples", "99", "--out", "x.json"], "'ECE'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_mistyped_words_get_a_suggestion(run, monkeypatch, tmp_path, boastful, arguments, near):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*(str(boastful) if word == "FILE" else word for word in arguments))
    assert code == 2
    if near != "'p'" or "q" not in arguments:  # one letter of one has nothing in common with another
        assert "did you mean" in err.lower()
    assert near.strip("'") in err


def started(*arguments, **options):
    command = [sys.executable, "-m", "calibrant", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_a_reader_that_leaves_before_a_table_is_no_failed_gate(boastful):
    """Tables have a console of their own; leaving with 1 would say that a gate failed."""
    child = started("estimate", str(boastful), "--y-true", "y", "--y-pred", "p")
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), err) == (141, "")


def test_a_reader_that_leaves_is_no_failure():
    child = started("report", "--help")
    child.stdout.close()  # before anything is written, as head may
    err = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), err) == (141, "")
    assert 141 in EXIT_CODES


@pytest.mark.skipif(sys.platform == "win32" or signal.getsignal(signal.SIGINT) == signal.SIG_IGN, reason="signals")
def test_an_interruption_is_quiet(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    child = started("estimate", str(path))  # waits for somebody to write
    handle = os.open(path, os.O_WRONLY)  # which blocks until it does
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    os.close(handle)
    assert (child.returncode, out, err) == (130, "", "")
    assert 130 in EXIT_CODES


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        (">&-", 0, ""),
        ("--fail-if 'Brier > 0.01' >&-", 1, "gate failed"),
        (">/dev/full", 2, "No space left on device"),
        ("--y-pred q 2>&- >&-", 2, ""),
    ],
)
def test_outputs_that_are_closed_or_full(boastful, ending, code, said):
    line = f'"{sys.executable}" -m calibrant estimate "{boastful}" --estimator "Brier()" --format json {ending}'
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONOPTIMIZE": "2", "COLUMNS": "0", "PYTHONIOENCODING": "ascii"},
        {"COLUMNS": "3", "PYTHONIOENCODING": "latin-1"},
        {"COLUMNS": "1", "PYTHONIOENCODING": "cp1252"},
    ],
    ids=lambda variables: "-".join(variables.values()),
)
def test_odd_terminals(tmp_path, variables):
    path = tmp_path / "x.csv"
    path.write_text(
        "y,p,Größe\n" + "".join(f"{i % 2},{i % 10 / 10},{'κλ'[i % 2]}\x1b[31m\n" for i in range(40)), "utf-8"
    )
    options = {"env": {**os.environ, **variables}, "encoding": variables["PYTHONIOENCODING"]}
    child = started("estimate", str(path), "--estimator", "Brier()", "--by", "Größe", **options)
    out, err = child.communicate()
    assert (child.returncode, err) == (0, "")
    assert "0.285" in out
    assert "\x1b" not in out


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_copies_of_a_pipe_are_removed_when_the_program_is_told_to_end(tmp_path):
    child = started("estimate", "-", stdin=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    child.stdin.write("y,p\n" + "1,0.5\n" * 10_000)
    child.stdin.flush()
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("calibrant-*/stdin*")):
        assert child.poll() is None
        assert time.monotonic() < deadline, "no copy was made"
        time.sleep(0.05)
    child.terminate()
    assert child.wait(60) == 143
    assert child.stderr.read() == ""
    assert not list(tmp_path.iterdir())
    for pipe in (child.stdin, child.stdout, child.stderr):
        pipe.close()


@pytest.mark.parametrize("command", ["estimate", "test", "report", "recalibrate", "simulate"])
def test_one_row(run, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("y,p\n1,0.5\n")
    code, _, err = run(command, "x.csv")
    assert code in (0, 2)
    assert err.count("\n") == (code == 2)


def test_a_bug_has_a_code_of_its_own(run, monkeypatch, boastful):
    from calibrant.cli import commands

    monkeypatch.setattr(commands, "default_set", lambda predictions: 1 / 0)
    assert run("estimate", str(boastful))[0] == 70
    assert 70 in EXIT_CODES


def test_so_has_one_that_comes_before_the_command(capsys):
    from calibrant.cli import guarded

    with pytest.raises(SystemExit) as left:
        guarded(lambda words: 1 / 0, [], "x")
    assert left.value.code == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_without_docstrings():
    child = started("monitor", "--help", env={**os.environ, "PYTHONOPTIMIZE": "2", "COLUMNS": "200"})
    out, err = child.communicate()
    assert (child.returncode, err) == (0, "")
    assert "rows, such as 10000, or seconds" in out


def test_all_codes_are_documented():
    from calibrant import cli

    codes = {0, cli.GATE_FAILED, cli.UNUSABLE, cli.MISTAKE, cli.INTERRUPTED, cli.NO_READER, cli.HUNG_UP, cli.TERMINATED}
    assert codes == set(EXIT_CODES)
