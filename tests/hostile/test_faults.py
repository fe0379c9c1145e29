"""The old file or the new one, whatever fails: a full disk, a kill at any step of writing, a signal."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

from calibrant import Monitor  # which needs these
from calibrant._files import read_json
from tests.hostile.commands import ran
from tests.hostile.faults import STEPS, fill, full_disk, heeds_signals, killed, signalled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")

ROWS = "".join(f"{i % 2},{0.45 + 0.1 * (i // 2 % 2):.2f}\n" for i in range(600))

MAP = ["--method", "Isotonic()", "--folds", "2", "--force"]
OUTPUTS = {
    "state": (["monitor", "x.csv", "--window", "20", "--state", "PLACE"], "state.json"),
    "map": (["recalibrate", "x.csv", *MAP, "--save", "PLACE"], "map.json"),
    "page": (["report", "x.csv", "--n-resamples", "99", "--out", "PLACE"], "page.html"),
    "page of a stream": (["monitor", "x.csv", "--report", "PLACE"], "page.html"),
    "page of a map": (["recalibrate", "x.csv", *MAP, "--report", "PLACE"], "page.html"),
    "data": (["report", "x.csv", "--n-resamples", "99", "--out", "PLACE"], "page.json"),
    **{
        f"{kind} table": (["recalibrate", "x.csv", "--apply", "map.json", "--out", "PLACE"], f"better.{kind}")
        for kind in ("csv", "parquet", "npz", "jsonl")
    },
    "demo data": (["demo", "diabetes", "--data", "PLACE", "--out", "page.json"], "data.csv"),
}
"""Every file that commands write: the command, and a name."""


@pytest.fixture(scope="module")
def saved_map(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    (folder / "x.csv").write_text(f"y,p\n{ROWS}")
    assert ran(["recalibrate", str(folder / "x.csv"), *MAP, "--save", str(folder / "map.json")]).code == 0
    return (folder / "map.json").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch, saved_map):
    (tmp_path / "x.csv").write_text(f"y,p\n{ROWS}")
    (tmp_path / "map.json").write_text(saved_map)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(name, place):
    return [str(place) if word == "PLACE" else word for word in OUTPUTS[name][0]]


@pytest.mark.parametrize("name", [n if n != "page" else pytest.param(n, marks=pytest.mark.study) for n in OUTPUTS])
def test_a_full_disk_leaves_the_old_file_and_is_named(folder, name):
    try:
        with full_disk(folder / "disk") as disk:
            place = disk / OUTPUTS[name][1]
            old = json.dumps({"old": 1}) if name != "state" else None
            if old is not None:
                place.write_text(old)
            fill(disk)
            before = sorted(os.listdir(disk))
            found = ran(words(name, place))
            assert found.code == 2, found.err
            assert not found.faults()
            assert "No space left on device" in found.err
            assert place.name in found.err
            assert sorted(os.listdir(disk)) == before
            assert old is None or place.read_text() == old
    except PermissionError:
        pytest.skip("this user mounts no disks")


def test_a_state_survives_a_full_disk(folder):
    """Some of it fits: the old one stays, whole."""
    try:
        with full_disk(folder / "disk") as disk:
            place = disk / "state.json"
            assert ran(words("state", place)).code == 0
            old = place.read_text()
            fill(disk, room=4096)
            assert ran(words("state", place)).code == 2
            assert place.read_text() == old
            (disk / "filling").unlink()
            assert ran(words("state", place)).code == 0
            assert read_json(place)["n"] == 2 * json.loads(old)["n"]
    except PermissionError:
        pytest.skip("this user mounts no disks")


def check_kill(folder, name, step):
    """The old file is there, whole; what is left beside it is in nobody's way."""
    place = folder / "kept" / OUTPUTS[name][1]
    place.parent.mkdir()
    assert ran(words(name, place)).code == 0
    old = place.read_bytes()
    assert killed(step, words(name, place), folder) == -signal.SIGKILL
    assert place.read_bytes() == old
    left = [path for path in place.parent.iterdir() if path != place]
    assert all(path.name.startswith(".") and path.name.endswith(".part") for path in left)
    assert ran(words(name, place)).code == 0


@pytest.mark.parametrize("step", ["open", "replace"])
def test_a_kill_at_the_first_and_the_last_step_leaves_the_old_state(folder, step):
    check_kill(folder, "state", step)


@pytest.mark.study
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_every_old_file(folder, name, step):
    check_kill(folder, name, step)


@pytest.mark.study
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_signals_at_random_times_leave_a_whole_state(folder, name):
    """50 of them, while the state is written after every ten rows: no row is read twice or lost that the state has."""
    place, chance, number = folder / "state.json", random.Random(0), getattr(signal, name)
    arguments = [*words("state", place), "--save-every", "10"]
    assert signalled(0, 120, arguments, folder)[0] == 0
    old, seconds = place.read_bytes(), signalled(0, 120, arguments, folder)[1]
    ends: Counter[tuple[int, int]] = Counter()
    for _ in range(50):
        place.write_bytes(old)
        code, _ = signalled(number, chance.uniform(0, seconds), arguments, folder)
        assert code in (0, 128 + number, -number)
        n = Monitor.from_dict(read_json(place)).n
        assert 600 <= n <= 1200
        assert code != 0 or n == 1200
        assert name == "SIGKILL" or not list(folder.glob(".*.part"))
        ends[code, n] += 1
    print(f"\n{name} within {seconds:.2f} s: {sorted(ends.items())}")
    assert len(ends) > 3


ENDINGS = {
    "all is well": ("y,p\n" + "1,0.5\n0,0.3\n" * 50, None, 0),
    "refused": ("y,p\n" + "1,1.5\n" * 50, None, 2),
    "a broken end": ('{"y": 1, "p": 0.5}\n' * 50 + "what?", None, 2),
    "SIGINT": ("y,p\n" + "1,0.5\n" * 10_000, signal.SIGINT, 130),
    "SIGTERM": ("y,p\n" + "1,0.5\n" * 10_000, signal.SIGTERM, 143),
    "SIGHUP": ("y,p\n" + "1,0.5\n" * 10_000, getattr(signal, "SIGHUP", None), 129),
}
FEW = ("refused", "SIGINT")


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.study) for n in ENDINGS])
def test_copies_of_the_standard_input_are_removed_at_every_end(tmp_path, name):
    text, number, code = ENDINGS[name]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "calibrant", "estimate", "-", "--estimator", "Brier()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, preexec_fn=heeds_signals, **pipes) as child:
        child.stdin.write(text)
        child.stdin.flush()
        if number is not None:
            while not list(tmp_path.glob("calibrant-*/stdin*")):
                assert child.poll() is None
                time.sleep(0.02)
            child.send_signal(number)
            assert child.wait(120) == code
        else:
            child.stdin.close()
            assert child.wait(120) == code
        assert "Traceback" not in child.stderr.read()
    assert not list(tmp_path.glob("calibrant-*"))
