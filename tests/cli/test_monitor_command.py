import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from calibrant import Monitor

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
    assert {"first", "last", "predicted", "observed", "error", "pvalue", "log_evalue"} <= set(found[0]["window"])


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("way", ["-", "pipe"])
def test_stop_leaves_while_the_pipe_is_open(tmp_path, way):
    """The thread that waits for more rows does not keep the program, nor make it fail."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    place = str(pipe) if way == "pipe" else "-"
    command = [sys.executable, "-m", "calibrant", "monitor", place, *COLUMNS, "--stop", "--input-format", "jsonl"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as watching:
        clock = threading.Timer(60, watching.kill)
        clock.start()
        with pipe.open("wb") if way == "pipe" else watching.stdin as writer:
            writer.write(b'{"y": 1, "p": 0.02}\n' * 20)
            writer.flush()
            code = watching.wait(60)
        clock.cancel()
        assert (code, watching.stderr.read()) == (1, b"")


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupt_while_the_pipe_is_open_keeps_the_state(tmp_path):
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "calibrant", "monitor", "-", *COLUMNS, "--window", "20", "--state", str(state)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as watching:
        clock = threading.Timer(60, watching.kill)
        clock.start()
        watching.stdin.write("".join(f"{line}\n" for line in lines(20)).encode())
        watching.stdin.flush()
        assert b"rows" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130
        clock.cancel()
        assert watching.stderr.read() == b""
        assert b"20 rows, p = " in watching.stdout.read()
    assert json.loads(state.read_text("utf-8"))["n"] == 20


def rows_of(p):
    return "".join(f"{i % 2},{p}\n" for i in range(30))


def test_a_value_that_no_row_should_have_is_a_bad_line(run, tmp_path):
    path, state = tmp_path / "x.csv", tmp_path / "state.json"
    path.write_text(f"y,p\n{rows_of(0.5)}1,1.5\n{rows_of(0.5)}7,0.5\n")
    code, out, err = run("monitor", str(path), "--state", str(state), "--format", "json")
    assert code == 0
    assert objects(out)[-1]["end"]["n"] == 60
    assert objects(out)[-1]["end"]["bad_lines"] == 2
    told = " ".join(err.split())
    assert "line 32 is refused: y_pred must lie in [0, 1]; found 1.5" in told
    assert "line 63 is refused: y_true must be labels from 0 to 1; found 7" in told


def test_strict_fails_after_keeping_the_rows_before(run, tmp_path):
    path, state = tmp_path / "x.csv", tmp_path / "state.json"
    for bad in ("1,1.5", "1,0.5,7"):
        path.write_text(f"y,p\n{rows_of(0.5)}{bad}\n{rows_of(0.5)}")
        code, _, err = run("monitor", str(path), "--strict", "--state", str(state))
        assert code == 2
        assert "line 32 is" in err
        assert json.loads(state.read_text("utf-8"))["n"] == 30
        state.unlink()


@pytest.fixture(params=["SIGTERM", "SIGHUP"])
def signalled(request, monkeypatch):
    """The number of a signal that is sent after the first batch of rows, and does what it does by default: whoever started
    the tests may ignore it."""
    from calibrant.io import Batches

    rows, number = Batches.__iter__, getattr(signal, request.param)

    def endless(self):
        yield next(rows(self))
        os.kill(os.getpid(), number)
        yield from rows(self)

    monkeypatch.setattr(Batches, "__iter__", endless)
    before = signal.signal(number, signal.SIG_DFL)
    yield number
    signal.signal(number, before)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_signal_keeps_the_state(run, quiet, tmp_path, signalled):
    state = tmp_path / "state.json"
    code, out, err = run("monitor", quiet, *COLUMNS, "--window", "200", "--state", str(state))
    assert (code, err) == (128 + signalled, "")
    assert "200 rows, p = " in out
    assert Monitor.from_dict(json.loads(state.read_text("utf-8"))).n == 200
    assert signal.getsignal(signalled) == signal.SIG_DFL


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_signal_that_is_ignored_stays_ignored(run, quiet, signalled):
    """As ``nohup calibrant monitor ...`` asks for."""
    signal.signal(signalled, signal.SIG_IGN)
    code, out, _ = run("monitor", quiet, *COLUMNS, "--window", "200")
    assert code == 0
    assert "800 rows" in out  # the first batch twice
    assert signal.getsignal(signalled) == signal.SIG_IGN


def test_the_state_is_kept_every_so_many_rows(run, quiet, tmp_path, monkeypatch):
    from calibrant.cli import monitor_command

    kept = []
    monkeypatch.setattr(monitor_command, "write_whole", lambda path, text: kept.append(json.loads(text)["n"]))
    run("monitor", quiet, *COLUMNS, "--window", "50", "--state", str(tmp_path / "state.json"), "--save-every", "200")
    assert kept == [200, 400, 600, 600]


def test_or_every_so_many_seconds(monkeypatch):
    from calibrant.cli import monitor_command

    clock = iter([0.0, 5.0, 31.0, 31.0, 32.0, 61.0, 61.0])
    monkeypatch.setattr(monitor_command, "monotonic", lambda: next(clock))
    pace = monitor_command.Pace(None, 30.0, moment=next(clock))
    assert [pace.is_due(n) for n in (10, 20, 30, 40)] == [False, True, False, True]


@pytest.mark.parametrize("text", ["0", "-5", "often", "1.5", "0s", "3 days", "1e9", "9" * 400])
def test_other_words_are_no_pace(run, quiet, text):
    code, _, err = run("monitor", quiet, *COLUMNS, "--save-every", text)
    assert code == 2
    assert "--save-every" in err


@pytest.mark.parametrize(("place", "value"), [("width", 0), ("width", 10**400), ("closed", "x"), ("most", None)])
def test_a_state_that_was_tampered_with_is_refused(run, quiet, tmp_path, place, value):
    state = tmp_path / "state.json"
    run("monitor", quiet, *COLUMNS, "--state", str(state))
    data = json.loads(state.read_text("utf-8"))
    data["history"]["windows"][place] = value
    state.write_text(json.dumps(data))
    code, _, err = run("monitor", quiet, *COLUMNS, "--state", str(state))
    assert code == 2
    assert f"state.history.windows.{place} must be" in " ".join(err.split())


def stopped(tmp_path, times):
    """A stream that never ends, stopped at random: its state is whole, and nothing else is left."""
    chance, state, n = np.random.default_rng(0), tmp_path / "kept" / "state.json", 0
    state.parent.mkdir()
    command = [sys.executable, "-m", "calibrant", "monitor", "-", *COLUMNS, "--window", "5", "--state", str(state)]
    part = "".join(f"{line}\n" for line in lines(100)).encode()
    for _ in range(times):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([*command, "--save-every", "1"], **pipes) as watching:
            watching.stdin.write(part)
            watching.stdin.flush()
            watching.stdout.readline()
            time.sleep(chance.uniform(0, 0.2))
            watching.terminate()
            assert watching.wait(120) == 143
            assert watching.stderr.read() == b""
        kept = Monitor.from_dict(json.loads(state.read_text("utf-8"))).n
        assert n < kept <= n + 100
        n = kept
        assert os.listdir(state.parent) == ["state.json"]


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_stopped_by_a_signal_it_goes_on(tmp_path):
    stopped(tmp_path, 2)


@pytest.mark.study
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_stopped_by_many_signals_it_goes_on(tmp_path):
    stopped(tmp_path, 50)


class TestPages:
    """What ``--report`` writes."""

    @pytest.fixture(autouse=True)
    def needed(self):
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")

    def test_a_page_of_the_stream(self, run, drifting, tmp_path):
        page = tmp_path / "page.html"
        code, out, _ = run("monitor", drifting, *COLUMNS, "--window", "100", "--report", str(page))
        assert code == 1
        assert f"Page written to {page}" in " ".join(out.split())
        html = page.read_text("utf-8")
        assert "Not calibrated any more since about row " in html
        assert "<title>Calibration of drifting.jsonl</title>" in html

    def test_by_its_ending_the_data_or_a_comment(self, run, drifting, tmp_path):
        for name in ("page.json", "page.md"):
            run("monitor", drifting, *COLUMNS, "--report", str(tmp_path / name), "--title", "Mine", "--format", "json")
        data = json.loads((tmp_path / "page.json").read_text("utf-8"))
        assert (data["title"], data["n"]) == ("Mine", 1500)
        assert (tmp_path / "page.md").read_text("utf-8").startswith("### ❌ Not calibrated any more")

    def test_the_data_are_those_of_the_lines(self, run, drifting, tmp_path):
        page = tmp_path / "page.json"
        _, out, _ = run("monitor", drifting, *COLUMNS, "--window", "500", "--report", str(page), "--format", "json")
        end, data = objects(out)[-1]["end"], json.loads(page.read_text("utf-8"))
        assert data["alarm"] == end["alarm"]
        assert data["verdict"]["pvalue"] == end["pvalue"]
        lines = [x["window"] for x in objects(out) if "window" in x]
        table = data["pictures"][1]["gap"]
        assert table["last"] == [line["last"] for line in lines]
        assert table["claimed"] == pytest.approx([line["predicted"] for line in lines])
        assert table["happened"] == pytest.approx([line["observed"] for line in lines])

    def test_a_comment_on_the_standard_output(self, run, drifting, quiet):
        code, out, _ = run("monitor", drifting, *COLUMNS, "--format", "markdown")
        assert code == 1
        assert out.startswith("### ❌ Not calibrated any more")
        assert "ALARM" not in out
        assert run("monitor", quiet, *COLUMNS, "--format", "markdown")[1].startswith("### ✅ No alarm in 600 rows")

    def test_lines_left_out_are_told(self, run, tmp_path):
        path, page = tmp_path / "torn.jsonl", tmp_path / "page.json"
        path.write_text("\n".join([*lines(60), "what?", "<b>"]))
        code, _, _ = run("monitor", str(path), *COLUMNS, "--report", str(page))
        data = json.loads(page.read_text("utf-8"))
        assert code == 0
        assert data["bad_lines"] == 2
        assert "line 61 is not JSON" in data["notes"][0]

    def test_from_a_pipe(self, run, monkeypatch, tmp_path):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines(80)).encode())))
        page = tmp_path / "page.html"
        code, _, _ = run("monitor", "-", *COLUMNS, "--report", str(page))
        assert code == 0
        assert "Calibration of the standard input" in page.read_text("utf-8")

    @pytest.mark.parametrize("n", [1, 7])
    def test_fewer_rows_than_a_window(self, run, tmp_path, n):
        path, page = tmp_path / "few.jsonl", tmp_path / "page.html"
        path.write_text("\n".join(lines(n)))
        code, _, _ = run("monitor", str(path), *COLUMNS, "--report", str(page))
        assert code == 0
        assert "Too few rows to tell" in page.read_text("utf-8")

    @pytest.mark.parametrize("content", ["", "what?\nno\n"])
    def test_no_rows_are_an_error_and_no_page(self, run, tmp_path, content):
        path, page = tmp_path / "none.jsonl", tmp_path / "page.html"
        path.write_text(content)
        code, _, err = run("monitor", str(path), *COLUMNS, "--report", str(page))
        assert code == 2
        assert "no rows" in err or "empty" in err
        assert not page.exists()

    def test_a_state_keeps_its_windows(self, run, tmp_path):
        state, page = tmp_path / "state.json", tmp_path / "page.json"
        for start in (0, 300):
            part = tmp_path / f"{start}.jsonl"
            part.write_text("\n".join(lines()[start : start + 300]))
            run("monitor", str(part), *COLUMNS, "--window", "100", "--state", str(state), "--report", str(page))
        data = json.loads(page.read_text("utf-8"))
        assert data["pictures"][1]["gap"]["last"] == [100, 200, 300, 400, 500, 600]

    def test_an_interrupt_leaves_a_page_a_state_and_a_last_word(self, run, quiet, tmp_path, monkeypatch):
        """A stream that never ends is watched until somebody stops it."""
        from calibrant.io import Batches

        rows = Batches.__iter__

        def endless(self):
            yield next(rows(self))
            raise KeyboardInterrupt

        monkeypatch.setattr(Batches, "__iter__", endless)
        page, state = tmp_path / "page.html", tmp_path / "state.json"
        code, out, _ = run("monitor", quiet, *COLUMNS, "--window", "200", "--report", str(page), "--state", str(state))
        assert code == 130
        assert "No alarm in 200 rows" in page.read_text("utf-8")
        assert Monitor.from_dict(json.loads(state.read_text("utf-8"))).n == 200
        assert "200 rows, p = " in out

    def test_the_state_is_kept_where_the_page_is_not(self, run, quiet, tmp_path, monkeypatch):
        """What cannot be had again comes first."""

        def fails(self, path):
            raise OSError(f"no room for {path}")

        monkeypatch.setattr("calibrant.reports.stream_report.MonitorReport.save", fails)
        state = tmp_path / "state.json"
        code, _, err = run("monitor", quiet, *COLUMNS, "--report", str(tmp_path / "page.html"), "--state", str(state))
        assert code == 2
        assert "no room" in err
        assert json.loads(state.read_text("utf-8"))["n"] == len(lines())

    @pytest.mark.parametrize("options", [("--report", "{file}"), ("--report", "x.json", "--state", "x.json")])
    def test_nothing_is_written_over_what_is_read_or_twice(self, run, quiet, options, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        before = sorted(tmp_path.iterdir())
        code, _, err = run("monitor", quiet, *COLUMNS, *(option.format(file=quiet) for option in options))
        assert code == 2
        assert "is in use by this very command: choose another name" in " ".join(err.split())
        assert sorted(tmp_path.iterdir()) == before
        assert (tmp_path / "quiet.jsonl").read_text().splitlines() == lines()

    @pytest.mark.parametrize(("place", "words"), [("-", "takes a file"), ("no/page.html", "there is no folder")])
    def test_places_without_room(self, run, quiet, place, words):
        code, _, err = run("monitor", quiet, *COLUMNS, "--report", place)
        assert code == 2
        assert words in " ".join(err.split())


def test_a_print_needs_a_browser(run, quiet, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.reports.render.pdf.find_browser", lambda: None)
    code, out, err = run("monitor", quiet, *COLUMNS, "--report", str(tmp_path / "page.pdf"))
    assert (code, out) == (2, "")
    assert "Chromium" in err
