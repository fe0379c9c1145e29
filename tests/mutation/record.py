"""Which tests run which lines: recorded once, and again for files of tests that changed."""

import ast
import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from tests.mutation.mutations import Mutant
from tests.mutation.trials import QUIET, Recorder, forked

MAX_RECORD_SECONDS = 600

GENERAL = ("tests/test_clusters.py", "tests/test_defaults.py")
"""Tests of every package: of what takes no clusters, and of defaults, which stand in statements that run at import."""

OTHERS_SECONDS = 20
"""Processor seconds of tests in other files than those that mirror a module; the fastest come first."""


class Record:
    """Tests and doctests of a package: their seconds, and the lines that they run, counted from the head of their function."""

    def __init__(self, root: Path, store: Path, package: str):
        self.root, self.store = root, store
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[str, list[str]]] = {}
        tests = sorted((self.root / "tests" / package).rglob("test_*.py"))
        folders = {path.parent for path in (self.root / "src/calibrant" / package).rglob("*.py")}
        modules = [sorted(folder.glob("*.py")) for folder in sorted(folders)]
        for files in [*([path] for path in tests), *modules, *([self.root / name] for name in GENERAL)]:
            self._add([path.relative_to(self.root).as_posix() for path in files])

    def _add(self, files: list[str]) -> None:
        content = b"".join((self.root / name).read_bytes() for name in files)
        saved = self.store / f"{sha256(' '.join(files).encode() + content).hexdigest()[:24]}.json"
        if not saved.exists():
            log = self.root / "record.txt"
            code = forked(lambda: self._run(files, saved), self.root, MAX_RECORD_SECONDS, log)
            if not saved.exists():
                raise SystemExit(f"{files} could not be recorded ({code}): {log.read_text()}")
        found = json.loads(saved.read_text())
        self.seconds |= found["seconds"]
        tests = list(found["seconds"])
        for name, lines in found["lines"].items():
            for line, numbers in lines.items():
                self.lines.setdefault(name, {}).setdefault(line, []).extend(tests[i] for i in numbers)

    def _run(self, files: list[str], saved: Path) -> int:
        from coverage import Coverage  # which the tests themselves do not need

        coverage = Coverage(data_file=None, config_file=False, source=[str(self.root / "src")], messages=False)
        recorder = Recorder(coverage)
        coverage.start()
        pytest.main([*QUIET, *files], plugins=[recorder])
        coverage.stop()
        data = coverage.get_data()
        sound = [test for test in recorder.seconds if test not in recorder.failed]
        number = {test: i for i, test in enumerate(sound)}
        lines: dict[str, dict[str, list[int]]] = {}
        for path in data.measured_files():
            places = heads(Path(path))
            own = lines[Path(path).relative_to(self.root).as_posix()] = {}
            for line, tests in data.contexts_by_lineno(path).items():
                if kept := sorted(number[t] for t in tests if t in number):
                    own[place(places, line)] = kept
        saved.write_text(json.dumps({"seconds": {t: recorder.seconds[t] for t in sound}, "lines": lines}))
        return 0

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that run the faulty lines: those that mirror the module and its examples, then the fastest others."""
        found = sorted(self._running(mutant), key=lambda test: (self.seconds[test], test))
        inside = Path(mutant.path).relative_to("src/calibrant")
        mirrors = (f"tests/{inside.parent / 'test_'}{inside.stem.strip('_')}.py", mutant.path)
        near = [test for test in found if test.startswith(mirrors)]
        near += [test for test in self.seconds if test.startswith(GENERAL[-1]) and mutant.at_import]
        spent, others = 0.0, []
        for test in found:
            spent += 0 if test in near else self.seconds[test]
            others += [test] if spent <= OTHERS_SECONDS and test not in near else []
        return near + others

    def _running(self, mutant: Mutant) -> set[str]:
        own = self.lines.get(mutant.path, {})
        if mutant.at_import:
            scope = "" if mutant.scope == "module" else mutant.scope
            inside = {t for key, tests in own.items() if key.startswith(scope) for t in tests}
            return inside or {t for tests in own.values() for t in tests}
        places = heads(self.root / mutant.path)
        keys = {place(places, line) for line in range(mutant.lines[0], mutant.lines[1] + 1)}
        return {test for key in keys for test in own.get(key, ())}


@cache
def heads(path: Path) -> list[tuple[int, int, str]]:
    """First line, last line and name of every function and class of a file, outermost first."""
    found: list[tuple[int, int, str]] = []

    def walk(nodes: Iterable[ast.AST], scope: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = f"{scope}.{node.name}".strip(".")
                found.append((node.lineno, node.end_lineno or node.lineno, name))
                walk(ast.iter_child_nodes(node), name)
            elif not isinstance(node, ast.expr):
                walk(ast.iter_child_nodes(node), scope)

    walk(ast.parse(path.read_text()).body, "")
    return found


def place(places: list[tuple[int, int, str]], line: int) -> str:
    """A line as the innermost function around it and the lines below its head, whatever stands above."""
    around = [(first, name) for first, last, name in places if first <= line <= last]
    first, name = max(around, default=(0, ""))
    return f"{name}+{line - first}"
