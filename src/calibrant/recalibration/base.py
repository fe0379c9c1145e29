"""What recalibrators share: settings that fit a map, and the fit with what it did to rows it had not seen."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.recalibration.folds import folds_of_rows
from calibrant.recalibration.held_out import HeldOut, held_out, impossible, scores
from calibrant.recalibration.map import ClassMap, Map, NamedClasses, check_classes, check_number, two_classes
from calibrant.results import Table, number
from calibrant.results.base import Result
from calibrant.results.plain import SCHEMA
from calibrant.results.words import brief
from calibrant.typing import ArrayLike, Engine

__all__ = [
    "ClassMap",
    "Found",
    "Map",
    "Recalibration",
    "Recalibrator",
    "check_classes",
    "check_number",
    "load_map",
    "two_classes",
]


class Found(NamedTuple):
    """A map, whether the search for it ended where it should, and what a reader must know."""

    map: Map
    is_converged: bool = True
    notes: tuple[str, ...] = ()


class Recalibrator(ABC):
    """A frozen value with the settings of a recalibrator; :meth:`fit` makes the map.

    Subclasses are frozen dataclasses that write :meth:`find`.
    """

    @abstractmethod
    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The map for a checked problem, targets on the host."""

    def fit(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        folds: int = 5,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> "Recalibration":
        """The map from all rows, and what maps from the other folds did to the rows of each; ``folds=0`` leaves that out.

        A fold is a task of the engine.
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        y = to_numpy(targets)
        found = self.find(y, predictions, weights)
        tried: tuple[HeldOut, ...] = ()
        if folds != 0:
            tried = held_out(self, y, predictions, weights, folds_of_rows(len(y), folds, seed), engine)
        table = scores(y, predictions, weights, tried) if tried else None
        zeros = impossible(y, predictions, weights, tried) if tried else ()
        return Recalibration(
            self,
            found.map,
            len(predictions),
            table,
            found.is_converged,
            (*zeros, *_notes(found, table)),
            predictions.class_names if isinstance(predictions, Categorical) and predictions.labels else None,
            tried,
        )


@dataclass(frozen=True, repr=False)
class Recalibration(Result):
    """A fitted map, which is a function from predictions to predictions, with what speaks for and against it.

    ``scores`` has a row a score: its mean over held-out rows ``before`` and ``after``, the ``change``, and the standard
    ``error`` of the change. Smaller is better. ``labels`` are the names of the classes, where they had some; predictions
    of other names are refused, and the same names may come in another order. ``held_out`` has the predictions behind the
    scores, fold by fold.
    """

    recalibrator: Recalibrator
    map: Map
    n: int
    scores: Table | None = field(default=None, compare=False)
    is_converged: bool = True
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    held_out: tuple[HeldOut, ...] = field(default=(), compare=False)

    def __call__(self, y_pred: ArrayLike) -> Any:
        """Predictions put right."""
        return (self.map if self.labels is None else NamedClasses(self.labels, self.map))(y_pred)

    @property
    def is_worse(self) -> bool:
        """Whether held-out rows have a larger loss than before, the log loss where there is one."""
        return self.scores is not None and bool(self.scores["change"][0] > 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "recalibration",
            "recalibrator": repr(self.recalibrator),
            "n": self.n,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "is_converged": self.is_converged,
            "notes": list(self.notes),
            "labels": self.labels,
            "map": self.map.to_dict(),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the map as JSON; :func:`load_map` reads it."""
        Path(path).write_text(self.to_json() + "\n", "utf-8")

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("recalibration", brief(self.recalibrator))]
        for row in [] if self.scores is None else self.scores.rows():
            text = f"{number(row['before'])} -> {number(row['after'])} held out"
            change = f" ({row['change']:+.2g} ± {row['error']:.1g})" if np.isfinite(row["error"]) else ""
            lines.append((row["score"], f"{text}{change}"))
        lines += [("note", note) for note in self.notes]
        return [*lines, ("n", f"{self.n:,}")]


def load_map(path: str | PathLike[str]) -> Map:
    """The map in a file that :meth:`Recalibration.save` wrote. It holds numbers and names, and runs no code."""
    try:
        data = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no recalibration map: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != "recalibration":
        raise InputError(f"{path} is no recalibration map: it was not written by Recalibration.save")
    if data.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{path} has the format {data['schema']!r}; this version of calibrant reads {SCHEMA!r}")
    found = Map.from_dict(data.get("map"))
    return found if data.get("labels") is None else NamedClasses(data["labels"], found)


def _notes(found: Found, scores: Table | None) -> tuple[str, ...]:
    notes = found.notes if found.is_converged else (*found.notes, "the fit did not converge")
    if scores is not None and scores["change"][0] > 0:
        notes = (*notes, f"held-out {scores['score'][0]} got worse: do not use this map")
    return notes
