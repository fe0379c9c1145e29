"""Files are whole: the old one or the new one, whatever happens on the way."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest

from calibrant import _files
from calibrant._files import read_json, replacing, write_whole
from calibrant._validate import InputError

OLD, NEW = b"old" * 100_000, b"new" * 100_000
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(OLD)
    return path


def alone(path):
    """Nothing is left beside it."""
    return os.listdir(path.parent) == [path.name]


def test_a_file_is_replaced(place):
    write_whole(place, NEW)
    assert place.read_bytes() == NEW
    assert alone(place)


def test_text_is_utf_8_and_half_a_character_is_spelt(place):
    write_whole(place, "Zoë \ud800")
    assert place.read_bytes() == "Zoë ".encode() + b"\\ud800"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_stay(place, mode):
    place.chmod(mode)
    write_whole(place, NEW)
    assert stat.S_IMODE(place.stat().st_mode) == mode


@posix
def test_a_new_file_has_those_of_any_other(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    write_whole(tmp_path / "b", b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@posix
def test_a_link_goes_on_pointing(place, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(place)
    write_whole(link, NEW)
    assert link.is_symlink()
    assert place.read_bytes() == NEW


@posix
def test_a_loop_of_links_is_named(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match=r"symbolic links: '.*a'"):
        write_whole(tmp_path / "a", NEW)


@posix
def test_devices_are_written_as_they_are():
    write_whole("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named():
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_whole("/dev/full", NEW)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OSError, match=r"No such file or directory: '.*nowhere.x.json'"):
        write_whole(tmp_path / "nowhere" / "x.json", NEW)


def test_an_error_half_way_leaves_the_old_file(place):
    with pytest.raises(ValueError, match="invalid literal"), replacing(place) as out:
        out.writelines([NEW[:1000], *map(int, ["cannot"])])
    assert place.read_bytes() == OLD
    assert alone(place)


@posix
def test_a_full_disk_leaves_the_old_file(place):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(NEW) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*state.json'"):
            write_whole(place, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert place.read_bytes() == OLD
    assert alone(place)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_errors_of_the_last_steps_leave_the_old_file(place, monkeypatch, step):
    def fails(*arguments):
        raise OSError(28, "No space left on device", "elsewhere")

    monkeypatch.setattr(_files.os, step, fails)
    with pytest.raises(OSError, match=r"No space left on device: '.*state.json'"):
        write_whole(place, NEW)
    assert place.read_bytes() == OLD
    assert alone(place)


KILLED = """
import os, signal, sys
from calibrant import _files
kill = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
step, path = sys.argv[1:]
if step in ("fsync", "replace"):
    setattr(_files.os, step, kill)
with _files.replacing(path) as out:
    out.write(b"n")
    out.flush()
    if step == "first":
        kill()
    out.write(b"ew" + b"new" * 99_999)
    if step == "last":
        kill()
kill()
"""


@posix
@pytest.mark.parametrize("step", ["first", "last", "fsync", "replace", "after"])
def test_a_kill_leaves_the_old_file_or_the_new_one(place, step):
    code = subprocess.run([sys.executable, "-c", KILLED, step, str(place)], check=False).returncode
    assert code == -signal.SIGKILL
    assert place.read_bytes() == (NEW if step == "after" else OLD)


WRITING = """
import sys
from calibrant._files import write_whole
print(flush=True)
while True:
    for text in (b"old", b"new"):
        write_whole(sys.argv[1], text * 100_000)
"""


def stopped_at_random(place, times):
    chance = random.Random(0)
    for _ in range(times):
        with subprocess.Popen([sys.executable, "-c", WRITING, str(place)], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(chance.uniform(0, 0.05))
            child.terminate()
        assert place.read_bytes() in (OLD, NEW)


@posix
def test_stopped_at_random_times_it_is_one_of_them(place):
    stopped_at_random(place, 3)


@posix
@pytest.mark.study
def test_stopped_often_it_is_one_of_them(place):
    stopped_at_random(place, 50)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "is not JSON: "),
        (b"", "is not JSON: "),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[" * 200_000 + b"]" * 200_000, "is nested too deeply"),
        (b"1" + b"0" * 5000, "has numbers that are too long"),
    ],
)
def test_json_that_is_refused(place, content, message):
    place.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(place)


def test_json_that_is_too_long(place, monkeypatch):
    monkeypatch.setattr(_files, "MAX_JSON_BYTES", 10)
    place.write_text(json.dumps("x" * 20))
    with pytest.raises(InputError, match="more than 10 bytes"):
        read_json(place)


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    """As root every file may be: what the system says is said for it."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="a.txt"), replacing(path) as out:
        out.write(b"new")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
