"""What recalibrators share: settings that fit a map, the map, and what it did to rows it had not seen."""

import json
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from os import PathLike
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, did_you_mean
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_distribution, as_weighted_problem
from calibrant.recalibration.folds import folds_of_rows
from calibrant.results import Table, number
from calibrant.results.base import Result
from calibrant.results.plain import SCHEMA, jsonable
from calibrant.results.words import brief
from calibrant.typing import ArrayLike


class Map(ABC):
    """A function from predictions to predictions; subclasses are frozen dataclasses of numbers, texts and arrays.

    What a map is made of goes into JSON and comes back, digit by digit; no code does.
    """

    kinds: ClassVar[dict[str, type["Map"]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Map.kinds[cls.__name__] = cls

    def __call__(self, y_pred: ArrayLike) -> Any:
        """Predictions put right: a distribution for a distribution, class probabilities for class probabilities."""
        predictions = as_distribution(y_pred)
        self.check(predictions)
        found = self.apply(predictions)
        if isinstance(y_pred, Distribution) or not isinstance(found, Categorical):
            return found
        is_column = isinstance(predictions, Categorical) and predictions.probs.ndim == 1
        return to_numpy(found.probability(1) if is_column else found.matrix)

    @abstractmethod
    def apply(self, predictions: Distribution) -> Distribution:
        """The map of checked predictions."""

    @abstractmethod
    def check(self, predictions: Distribution) -> None:
        """Refuse predictions of another kind than those that were fitted."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        parts = {part.name: jsonable(getattr(self, part.name)) for part in fields(self)}  # type: ignore[arg-type]
        return {"map": type(self).__name__, **parts}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Map":
        """The map that was written; anything else is refused."""
        if not isinstance(data, dict) or "map" not in data:
            raise InputError("this is no recalibration map: the file has no field 'map'")
        values = dict(data)
        name = values.pop("map")
        if name not in Map.kinds:
            _import_all()
        if name not in Map.kinds:
            raise InputError(f"there is no map {name!r}{did_you_mean(str(name), sorted(Map.kinds))}")
        kind = Map.kinds[name]
        parts = fields(kind)  # type: ignore[arg-type]
        expected = {part.name for part in parts}
        if not {part.name for part in parts if part.default is MISSING} <= set(values) <= expected:
            raise InputError(f"{name} has the fields {sorted(expected)}; the file has {sorted(values)}")
        try:
            return kind(**{key: _revived(value) for key, value in values.items()})
        except (TypeError, ValueError) as error:
            raise InputError(f"the file's {name} cannot be used: {error}") from error


def _import_all() -> None:
    """Every module beside this one: maps are known once their module has been imported."""
    for module in iter_modules([str(Path(__file__).parent)]):
        import_module(f"calibrant.recalibration.{module.name}")


def _revived(value: Any) -> Any:
    """Lists become arrays; names of numbers that JSON lacks become numbers again."""
    if isinstance(value, list):
        return np.array([_revived(part) for part in value])
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return value


class ClassMap(Map):
    """A map of class probabilities; subclasses have the field ``n_classes`` and write :meth:`probabilities`."""

    n_classes: int

    @abstractmethod
    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Probabilities ``(n, k)`` from probabilities ``(n, k)``, both in double precision."""

    def apply(self, predictions: Distribution) -> Categorical:
        """The same classes with other probabilities."""
        assert isinstance(predictions, Categorical)
        p = to_numpy(predictions.matrix).astype(np.float64)
        return Categorical(self.probabilities(p), predictions.labels)

    def check(self, predictions: Distribution) -> None:
        """Refuse other families, and other numbers of classes."""
        check_classes(predictions, type(self).__name__)
        check_number_of_classes(predictions.n_classes, self.n_classes)  # type: ignore[attr-defined]


def check_number_of_classes(found: int, fitted: int) -> None:
    """Refuse predictions of another number of classes than those that were fitted."""
    if found != fitted:
        raise InputError(
            f"this map was fitted on {fitted} classes and y_pred has {found}: fit it on predictions of the same model"
        )


def check_classes(predictions: Distribution, asker: str) -> None:
    """Refuse predictions that are no class probabilities."""
    if not isinstance(predictions, Categorical):
        raise InputError(f"{asker} maps class probabilities; got {type(predictions).__name__} predictions")


def two_classes(predictions: Distribution, asker: str) -> Categorical:
    """The predictions where they are of two classes; others are refused in the name of who asked."""
    check_classes(predictions, asker)
    assert isinstance(predictions, Categorical)
    if predictions.n_classes == 2:
        return predictions
    raise InputError(
        f"{asker} maps two classes and y_pred has {predictions.n_classes}: use OneVsRest({asker}()), one map a class, or "
        "a recalibrator of several classes such as VectorScaling() or Default()"
    )


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
    ) -> "Recalibration":
        """The map from all rows, and what maps from the other folds did to the rows of each; ``folds=0`` leaves that out."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        y = to_numpy(targets)
        found = self.find(y, predictions, weights)
        scores = None if folds == 0 else _tried(self, y, predictions, weights, folds, seed)
        return Recalibration(self, found.map, len(predictions), scores, found.is_converged, _notes(found, scores))


@dataclass(frozen=True, repr=False)
class Recalibration(Result):
    """A fitted map, which is a function from predictions to predictions, with what speaks for and against it.

    ``scores`` has a row a score: its mean over held-out rows ``before`` and ``after``, the ``change``, and the standard
    ``error`` of the change. Smaller is better.
    """

    recalibrator: Recalibrator
    map: Map
    n: int
    scores: Table | None = field(default=None, compare=False)
    is_converged: bool = True
    notes: tuple[str, ...] = ()

    def __call__(self, y_pred: ArrayLike) -> Any:
        """Predictions put right."""
        return self.map(y_pred)

    @property
    def is_worse(self) -> bool:
        """Whether held-out rows have a larger log loss than before."""
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
            **self.map.to_dict(),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the map as JSON; :func:`load_map` reads it."""
        Path(path).write_text(self.to_json() + "\n", "utf-8")

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("recalibration", brief(self.recalibrator))]
        for row in [] if self.scores is None else self.scores.rows():
            text = f"{number(row['before'])} -> {number(row['after'])} held out"
            lines.append((row["score"], f"{text} ({row['change']:+.2g} ± {row['error']:.1g})"))
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
    about = {"schema", "kind", "recalibrator", "n", "scores", "is_converged", "notes"}
    return Map.from_dict({key: value for key, value in data.items() if key not in about})


def _notes(found: Found, scores: Table | None) -> tuple[str, ...]:
    notes = found.notes if found.is_converged else (*found.notes, "the fit did not converge")
    if scores is not None and scores["change"][0] > 0:
        notes = (*notes, "held-out log loss got worse: do not use this map")
    return notes


def _tried(
    recalibrator: Recalibrator,
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    folds: int,
    seed: int,
) -> Table:
    """Scores of held-out rows before and after."""
    fold = folds_of_rows(targets, folds, seed)
    pairs = []
    for k in range(folds):
        learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        w = None if weights is None else weights[learn]
        found = recalibrator.find(targets[learn], predictions[learn], w).map.apply(predictions[rest])
        pairs.append((rest, [_losses(q, targets[rest]) for q in (predictions[rest], found)]))
    before, after = (np.empty((len(pairs[0][1][0]), len(targets))) for _ in range(2))
    for rest, (old, new) in pairs:
        before[:, rest], after[:, rest] = old, new
    w = np.full(len(targets), 1 / len(targets)) if weights is None else weights / weights.sum()
    with np.errstate(invalid="ignore"):  # an infinite loss has no change
        change = after - before
        mean = change @ w
        spread = np.sqrt((w**2 * (change - mean[:, None]) ** 2).sum(axis=1))
    names = ["log loss", "Brier"][: len(before)]
    return Table(score=names, before=before @ w, after=after @ w, change=mean, error=spread)


def _losses(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    """The log loss of each row and, of classes, the Brier score, ``(scores, n)``."""
    losses = [-to_numpy(predictions.log_prob(targets))]
    if isinstance(predictions, Categorical):
        happened = targets[:, None] == np.arange(predictions.n_classes)
        losses.append(((to_numpy(predictions.matrix) - happened) ** 2).sum(axis=1))
    return np.stack(losses)
