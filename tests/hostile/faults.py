"""Faults of the machine: disks that are full, and programs that are ended at a certain moment."""

import errno
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

KILLED = """
import os, signal, sys
from calibrant import _files
from calibrant.cli import main
step = sys.argv.pop(1)
before = getattr(_files.os, step)
def kill(*arguments):
    if step == "open" and not str(arguments[0]).endswith(".part"):
        return before(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(_files.os, step, kill)
main()
"""
"""A command that is ended at a step of writing: as the new file is begun, when it is complete, and before it is in its place."""

STEPS = ("open", "fsync", "replace")


def killed(step: str, arguments: Sequence[str], folder: Path) -> int:
    """Run a command that ends so."""
    command = [sys.executable, "-c", KILLED, step, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120).returncode


READY = """
from calibrant.cli import main
print("ready", flush=True)
main()
"""
"""A command that says when it begins, so that no signal is spent on what is before."""


def signalled(number: int, seconds: float, arguments: Sequence[str], folder: Path) -> tuple[int, float]:
    """Run a command and send it a signal after some seconds; its code, and how long it took."""
    command, at = [sys.executable, "-c", READY, *arguments], {"cwd": folder, "preexec_fn": heeds_signals}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **at) as child:  # type: ignore[call-overload]
        assert child.stdout.readline() == "ready\n"
        begun = time.perf_counter()
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        child.send_signal(number)
        child.stdout.read()
        return child.wait(120), time.perf_counter() - begun


def heeds_signals() -> None:
    """Signals do what they do by default, also where nohup and shells that work in the background ignore some."""
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


@contextmanager
def full_disk(place: Path) -> Iterator[Path]:
    """A folder on a disk of 256 kilobytes, where this system lets us mount one; else an error."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        raise PermissionError(errno.EPERM, "this user mounts no disks")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(folder: Path, room: int = 0) -> None:
    """Take what is left of the disk, but for so many bytes."""
    size = 1 << 16
    with (folder / "filling").open("wb", buffering=0) as out:
        while size:
            try:
                out.write(b"\0" * size)
            except OSError:
                size //= 2
    if room:
        with (folder / "filling").open("r+b") as out:
            out.truncate(out.seek(0, 2) - room)
