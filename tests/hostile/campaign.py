"""Many cases, each drawn anew: how they ended, by kind, and those that should not have ended so."""

import copy
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import Monitor, monitor_report
from calibrant._files import read_json
from calibrant.recalibration import load_map
from calibrant.streams import from_dict
from tests.hostile.callables import hostile_call, subjects
from tests.hostile.calls import called
from tests.hostile.commands import left_behind, ran
from tests.hostile.files import TABLES, csv_of, hostile_file
from tests.hostile.others import of_tensors, others
from tests.hostile.saved import SAVED, hostile_text, maps, problems
from tests.hostile.tools import tools
from tests.hostile.words import NAMED, QUICK, hostile_line, hostile_places

ENDS = {0: "result", 1: "gate", 2: "refused"}


@dataclass
class Tally:
    """Cases by kind and outcome, and what is wrong."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, fault: str = "") -> None:
        """One more."""
        self.counts[kind, "FAULT" if fault else outcome] += 1
        if fault:
            self.faults.append(f"{kind}: {fault}")

    def __str__(self) -> str:
        kinds = sorted({kind for kind, _ in self.counts})
        outcomes = sorted({outcome for _, outcome in self.counts})
        rows = [[kind, *(str(self.counts[kind, outcome]) for outcome in outcomes)] for kind in kinds]
        rows.append([f"all {self.counts.total()}", *(str(sum(self.counts[k, o] for k in kinds)) for o in outcomes)])
        return "\n".join("  ".join(f"{word:>28}" for word in row) for row in [["kind", *outcomes], *rows])


FILE_COMMANDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "estimate": (6, ()),
    "monitor": (6, ("--window", "7")),
    "test": (2, QUICK["test"]),
    "recalibrate": (1, (*QUICK["recalibrate"], "--save", "map.json")),
    "report": (0.1, QUICK["report"]),
    "simulate": (0.2, QUICK["simulate"]),
}
"""How often a command is run on a file, and what makes it quick."""

WORD_COMMANDS = {"estimate": 8, "test": 4, "monitor": 5, "recalibrate": 4, "report": 0.7, "simulate": 1, "plan": 3}
WORD_COMMANDS |= {"demo": 0.2, "completion": 0.3, "doctor": 0.05}

PLACES = {
    "recalibrate": [
        ("--apply", "map.json", "--out", "PLACE"),
        ("--apply", "PLACE", "--out", "out.csv"),
        (*QUICK["recalibrate"], "--save", "PLACE", "--force"),
        (*QUICK["recalibrate"], "--report", "PLACE"),
    ],
    "report": [("--n-resamples", "99", "--out", "PLACE")],
    "monitor": [("--state", "PLACE"), ("--report", "PLACE"), ("--state", "PLACE", "--save-every", "1")],
}
"""Commands that write to a place, or read from it."""


@contextmanager
def working_in(folder: Path) -> Iterator[Path]:
    """A folder that is the home, too, while cases are run."""
    before, home = Path.cwd(), os.environ.get("HOME")
    os.chdir(folder)
    os.environ["HOME"] = str(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        os.environ["HOME"] = home or str(before)


def without(options: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Options with a value each, but for some."""
    pairs = zip(options[::2], options[1::2], strict=True)
    return tuple(word for pair in pairs if pair[0] not in names for word in pair)


def fitting(command: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """The options of a table that a command has."""
    names = {"monitor": ["--sample-weight"], "recalibrate": ["--by"], "simulate": ["--by"]}.get(command, [])
    return without(options, *names)


def on_files(seed: int, cases: int, folder: Path) -> Tally:
    """Commands on files that are broken in one way, from their place or through a pipe."""
    chance, tally = random.Random(seed), Tally()
    with working_in(folder):
        for _ in range(cases):
            file = hostile_file(chance)
            path = folder / f"file.{file.ending}"
            path.write_bytes(file.content)
            command = chance.choices(list(FILE_COMMANDS), [often for often, _ in FILE_COMMANDS.values()])[0]
            words = (*fitting(command, file.options), *FILE_COMMANDS[command][1])
            is_piped = chance.random() < 0.15
            found = ran([command, "-" if is_piped else path.name, *words], file.content if is_piped else None)
            faults = found.faults()
            faults += ["the file was changed"] if path.read_bytes() != file.content else []
            faults += [f"left {name}" for name in left_behind(folder)]
            tally.add(file.kind, ENDS.get(found.code, "other"), _told(found, faults, file.content))
            path.unlink()
    return tally


def _told(found: Any, faults: list[str], content: bytes) -> str:
    if not faults:
        return ""
    words = " ".join(ascii(word[:80]) for word in found.arguments)
    return f"{faults} of {words} with {content[:200]!r}…: {found.err[-1500:]}"


def on_words(seed: int, cases: int, folder: Path) -> Tally:
    """Commands with a word that is broken in one way, or a place that cannot be read or written, on odd terminals."""
    chance, tally = random.Random(seed), Tally()
    with working_in(folder):
        for _ in range(cases):
            places = hostile_places(folder)
            command = chance.choices(list(WORD_COMMANDS), list(WORD_COMMANDS.values()))[0]
            table, options = chance.choice(TABLES)
            options, data = fitting(command, options), csv_of(table)
            (folder / "in.csv").write_bytes(data)
            (folder / "map.json").write_text(chance.choice(maps())[1])
            if command in PLACES and chance.random() < 0.3:
                place = chance.choice(places)
                kind = f"{command}: place"
                words = (word.replace("PLACE", place) for word in chance.choice(PLACES[command]))
                arguments: tuple[str, ...] = (command, "in.csv", *options, *words)
            else:
                line = hostile_line(chance, command, None if command in (*NAMED, "plan") else "in.csv", options)
                kind, arguments = f"{command}: word", line.words
            found = ran(arguments, None, chance.choice(["utf-8", "ascii", "latin-1", "cp1252"]))
            faults = found.faults()
            faults += ["the file was changed"] if (folder / "in.csv").read_bytes() != data else []
            faults += [f"left {name}" for name in left_behind(folder)]
            tally.add(kind, ENDS.get(found.code, "other"), _told(found, faults, b""))
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return tally


def _use_map(path: Path, kind: str) -> None:
    found = load_map(path)
    found(problems()[kind][1])
    found.to_dict()
    found._repr_html_()


def _use_monitor(path: Path, kind: str) -> None:
    found = Monitor.from_dict(read_json(path))
    found.to_json()
    found = found.update(*problems()[kind])
    found.to_json()
    monitor_report(found).to_markdown()


def _use_state(path: Path, kind: str) -> None:
    found = from_dict(read_json(path))
    found.to_dict()
    found = found.update(*problems()[kind])
    found.finalize()


USES: Mapping[str, Callable[[Path, str], None]] = {"map": _use_map, "monitor": _use_monitor, "state": _use_state}


def on_saved(seed: int, cases: int, folder: Path) -> Tally:
    """Maps and states that were tampered with, read and used."""
    chance, tally, path = random.Random(seed), Tally(), folder / "saved.json"
    for _ in range(cases):
        what = chance.choice(list(SAVED))
        how, kind, content = hostile_text(chance, what)
        path.write_bytes(content)
        found = called(lambda what=what, kind=kind: USES[what](path, kind))
        tally.add(f"{what}: {how}", found.word, f"{found.word} {found.detail} {content!r}" if found.is_fault else "")
    return tally


def on_saved_by_commands(seed: int, cases: int, folder: Path) -> Tally:
    """The same through the commands that read them."""
    chance, tally = random.Random(seed), Tally()
    with working_in(folder):
        for _ in range(cases):
            what = chance.choice(["map", "monitor"])
            how, _, content = hostile_text(chance, what)
            table, options = chance.choice(TABLES)
            command = "recalibrate" if what == "map" else "monitor"
            (folder / "in.csv").write_bytes(csv_of(table))
            (folder / "saved.json").write_bytes(content)
            words = ("--apply", "saved.json", "--out", "out.csv") if what == "map" else ("--state", "saved.json")
            words += ("--report", "page.json") if what == "monitor" and chance.random() < 0.3 else ()
            found = ran([command, "in.csv", *fitting(command, options), *words])
            faults = found.faults()
            if found.code == 2 and (folder / "saved.json").read_bytes() != content and what == "map":
                faults.append("the map was changed")
            tally.add(f"{what} of a command: {how}", ENDS.get(found.code, "other"), _told(found, faults, content))
    return tally


def on_calls(seed: int, cases: int, folder: Path) -> Tally:
    """Public names with arrays and frames that are not what they ask for."""
    from matplotlib import pyplot

    chance, tally = random.Random(seed), Tally()
    every = [*subjects(), *others(), *tools(), *(of_tensors() if find_spec("torch") else ())]
    for i in range(cases):
        subject = every[i % len(every)]
        odd, arguments = hostile_call(chance, subject)
        before = {name: _kept(value) for name, value in arguments.items()}
        found = called(lambda subject=subject, arguments=arguments: subject.call(**arguments))
        fault = f"{found.word} {found.detail} of {subject.name}({odd})" if found.is_fault else ""
        if not fault and any(not _is_same(before[name], value) for name, value in arguments.items()):
            fault = f"{subject.name}({odd}) changed what it was given"
        tally.add("call", found.word, fault)
        pyplot.close("all")
    return tally


def _kept(value: Any) -> Any:
    """What can be compared later."""
    return copy.deepcopy(value) if isinstance(value, np.ndarray | list) else value


def _is_same(before: Any, after: Any) -> bool:
    if isinstance(after, np.ndarray) and not after.dtype.hasobject:
        return bool(after.dtype == before.dtype and after.shape == before.shape and after.tobytes() == before.tobytes())
    return repr(before) == repr(after)


CAMPAIGNS: Mapping[str, Callable[[int, int, Path], Tally]] = {
    "files": on_files,
    "words": on_words,
    "saved": on_saved,
    "saved by commands": on_saved_by_commands,
    "calls": on_calls,
}
