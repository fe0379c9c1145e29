"""What is finished of a long study, kept in a file so that it can be broken off."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._files import write_whole
from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.results import jsonable
from calibrant.typing import Engine


@dataclass(frozen=True)
class StudyRecord:
    """A file of JSON lines: the settings of a study, then the results of every cell by its number.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     record = StudyRecord(Path(folder) / "study.jsonl", {"seed": 0})
    ...     before = record.read()
    ...     record.add(2, {"mean": 0.5})
    ...     before, record.read()
    ({}, {2: {'mean': 0.5}})
    """

    path: Path
    settings: dict[str, Any]

    def read(self) -> dict[int, Any]:
        """Finished cells. A new file begins with the settings; an old one must have the same."""
        lines = self.path.read_text("utf-8").splitlines(keepends=True) if self.path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]  # else it was cut off while it was written
        begin = json.dumps({"settings": jsonable(self.settings)}) + "\n"
        if not whole and begin.startswith("".join(lines)):
            whole = [begin]
        first, *cells = map(self._parsed, whole or lines)
        self._check_settings(first.get("settings"))
        if whole != lines:
            write_whole(self.path, "".join(whole))
        return {cell["cell"]: cell["results"] for cell in cells}

    def add(self, cell: int, results: object) -> None:
        """Append a finished cell."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": cell, "results": jsonable(results)}, allow_nan=False) + "\n")

    def _parsed(self, line: str) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except json.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise InputError(f"{self.path} is no record of a study: found {line[:40]!r}; give another path")
        return value

    def _check_settings(self, found: Any) -> None:
        if not isinstance(found, dict):
            raise InputError(f"{self.path} is no record of a study: it does not begin with settings; give another path")
        for key, value in jsonable(self.settings).items():
            if found.get(key) != value:
                raise InputError(
                    f"{self.path} belongs to another study: {key} is {found.get(key)!r} there and {value!r} here; "
                    "give another path, or delete the file"
                )


def resumed(
    work: Callable[..., np.ndarray], tasks: Sequence[tuple[Any, ...]], record: StudyRecord | None, engine: Engine | None
) -> list[np.ndarray]:
    """The numbers that ``work`` finds for every task; those that the record holds are not worked out again.

    >>> resumed(lambda a, b: np.array([a + b]), [(1, 2), (3, 4)], None, None)
    [array([3]), array([7])]
    """
    done = {} if record is None else {i: np.array(values, dtype=float) for i, values in record.read().items()}
    todo = [i for i in range(len(tasks)) if i not in done]
    found = mapping(engine)(work, *zip(*(tasks[i] for i in todo), strict=True)) if todo else ()
    for i, values in zip(todo, found, strict=True):
        done[i] = values
        if record is not None:
            record.add(i, values)
    return [done[i] for i in range(len(tasks))]
