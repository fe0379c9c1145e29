"""Maps: functions from predictions to predictions that go into JSON and come back."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import NoneType, UnionType
from typing import Any, ClassVar, get_type_hints

import numpy as np

from calibrant._array import as_double_rows, matched, namespace, to_numpy
from calibrant._validate import MAX_COUNT, InputError, did_you_mean
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import as_distribution
from calibrant.results import brief
from calibrant.results import text as markup
from calibrant.results.result import jsonable
from calibrant.typing import Array, ArrayLike


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
        with np.errstate(all="ignore"):  # of numbers that no fit gave; what is no prediction is refused below
            found = self.apply(predictions)
        if not isinstance(found, Categorical):
            return found
        found = Categorical(found.probs, found.labels, found.pos_label)  # what maps make is trusted everywhere but here
        if isinstance(y_pred, Distribution):
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

    def _repr_html_(self) -> str:
        parts = [(part.name, _told(getattr(self, part.name))) for part in fields(self)]  # type: ignore[arg-type]
        return markup.card("map", type(self).__name__, parts)

    @classmethod
    def from_dict(cls, data: Any) -> "Map":
        """The map that was written; anything else is refused."""
        if not isinstance(data, dict) or "map" not in data:
            raise InputError("this is no recalibration map: the file has no field 'map'")
        values = dict(data)
        name = str(values.pop("map"))
        if name not in Map.kinds:
            _import_all()
        known = {name: kind for name, kind in Map.kinds.items() if is_dataclass(kind)}
        if name not in known:
            raise InputError(f"there is no map {name!r}{did_you_mean(name, sorted(known))}")
        kind = known[name]
        parts = fields(kind)  # type: ignore[arg-type]
        expected = {part.name for part in parts}
        if not {part.name for part in parts if part.default is MISSING} <= set(values) <= expected:
            raise InputError(f"{name} has the fields {sorted(expected)}; the file has {sorted(values)}")
        try:
            revived = {key: _revived(value) for key, value in values.items()}
            for key, hint in get_type_hints(kind).items():
                if key in revived and not _fits(revived[key], hint):
                    raise TypeError(f"{key} is {str(values[key])[:40]}")
            with np.errstate(invalid="raise"):
                return kind(**revived)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError(f"the file's {name} cannot be used: {error}") from error


def _import_all() -> None:
    """Every module beside this one: maps are known once their module has been imported."""
    for module in walk_packages([str(Path(__file__).parent)], "calibrant.recalibration."):
        import_module(module.name)


def _revived(value: Any) -> Any:
    """Lists become arrays; names of numbers that JSON lacks become numbers again."""
    if isinstance(value, list):
        return np.array([_revived(part) for part in value])
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from a file is of the kind that a field of plain numbers, texts or arrays asks for."""
    if isinstance(hint, UnionType):
        return any(_fits(value, part) for part in hint.__args__)
    if hint is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    if hint is float:
        return isinstance(value, float) or (_fits(value, int) and abs(value) <= MAX_COUNT)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint not in (str, bool, NoneType) or isinstance(value, hint)


class ClassMap(Map):
    """A map of class probabilities; subclasses have the field ``n_classes`` and write :meth:`probabilities`."""

    n_classes: int
    stays: ClassVar[bool] = False
    """Whether :meth:`probabilities` takes arrays of any library, and leaves them where they are; else they come to the host."""

    @abstractmethod
    def probabilities(self, p: Array) -> Array:
        """Probabilities ``(n, k)`` from probabilities ``(n, k)``, both in double precision."""

    def apply(self, predictions: Distribution) -> Categorical:
        """The same classes with other probabilities."""
        assert isinstance(predictions, Categorical)
        p = predictions.matrix if self.stays else to_numpy(predictions.matrix)
        found = self.probabilities(as_double_rows(p))
        return predictions.alike(namespace(found).clip(found, 0.0, 1.0))  # rounding

    def check(self, predictions: Distribution) -> None:
        """Refuse other families, and other numbers of classes."""
        check_classes(predictions, type(self).__name__)
        assert isinstance(predictions, Categorical)
        check_number(predictions, self.n_classes)


def check_number(predictions: Categorical, n_classes: int) -> None:
    """Refuse predictions of another number of classes than were fitted."""
    if predictions.n_classes != n_classes:
        raise InputError(
            f"this map was fitted on {n_classes} classes and y_pred has {predictions.n_classes}: fit it on predictions of "
            "the same model"
        )


@dataclass(frozen=True)
class NamedClasses(Map):
    """A map of classes that have names: columns are matched by name, and other names are refused.

    >>> from calibrant.recalibration.scaling.temperature import Tempering
    >>> named = NamedClasses(("cat", "dog"), Tempering("Categorical", 0.5, 2))
    >>> named(Categorical([[0.2, 0.8]], labels=["dog", "cat"])).probs.round(2)
    array([[0.06, 0.94]])
    """

    labels: Sequence[str]
    inner: Map

    def __post_init__(self) -> None:
        labels = tuple(map(str, self.labels)) if isinstance(self.labels, list | tuple) else ()
        if len(set(labels)) < max(len(labels), 2):
            raise InputError(f"labels must be different names, one per class; got {self.labels!r}")
        object.__setattr__(self, "labels", labels)

    def apply(self, predictions: Distribution) -> Distribution:
        """The inner map of the columns in its own order; columns without names are taken as they stand."""
        if not isinstance(predictions, Categorical) or predictions.labels is None:
            return self.inner.apply(predictions)
        order = np.array([predictions.class_names.index(label) for label in self.labels])
        found = self.inner.apply(Categorical.trusted(_columns(predictions.matrix, order)))
        assert isinstance(found, Categorical)
        return predictions.alike(_columns(found.matrix, np.argsort(order)))

    def check(self, predictions: Distribution) -> None:
        """Refuse what the inner map refuses, and other names."""
        self.inner.check(predictions)
        if isinstance(predictions, Categorical) and predictions.labels is not None:
            found = predictions.class_names
            if other := [name for name in found if name not in self.labels]:
                raise InputError(
                    f"this map was fitted on the classes {_few(self.labels)} and y_pred has {_few(other)}: fit it on "
                    "predictions of the same model"
                )


def _columns(x: Array, order: np.ndarray) -> Array:
    """Columns in another order, rows still one after the other, so that sums over them have the same digits."""
    return namespace(x).take(x, matched(order, x), axis=1)


def _told(value: object) -> str:
    """A part of a map in one line; of long arrays the shape."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{' x '.join(map(str, value.shape))} numbers"
    return brief(value.tolist() if isinstance(value, np.ndarray) else value)[:200]


def _few(names: Sequence[str]) -> str:
    """The first five names."""
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


def check_classes(predictions: Distribution, asker: str) -> None:
    """Refuse predictions that are no class probabilities.

    >>> from calibrant import Normal
    >>> check_classes(Normal([0.0], 1.0), "isotonic regression")
    Traceback (most recent call last):
        ...
    calibrant._validate.InputError: isotonic regression maps class probabilities; got Normal predictions
    """
    if not isinstance(predictions, Categorical):
        raise InputError(f"{asker} maps class probabilities; got {type(predictions).__name__} predictions")


def two_classes(predictions: Distribution, asker: str) -> Categorical:
    """The predictions where they are of two classes; others are refused in the name of who asked."""
    check_classes(predictions, asker)
    assert isinstance(predictions, Categorical)
    if predictions.n_classes == 2:
        return predictions
    raise InputError(
        f"{asker} maps two classes and y_pred has {predictions.n_classes}: use OneVsRest({asker}()), one map per class, or "
        "a recalibrator of several classes such as VectorScaling() or Default()"
    )


def least_probability(p: Array, rows: float) -> float:
    """What 0 counts as in probabilities ``(n, k)``: half the smallest other one, as half a vote of the trees of a forest.

    Where none of them is 0, and one of other rows may be, the smallest, at most ``1 / (2 k rows)`` of so many rows.

    >>> least_probability(np.array([[0.0, 1.0], [0.1, 0.9]]), 50.0), least_probability(np.array([[0.1, 0.9]]), 50.0)
    (0.05, 0.005)
    """
    xp, k = namespace(p), p.shape[1]
    smallest = float(xp.min(p))
    if smallest > 0:
        return min(0.5 / (k * rows), smallest)
    return min(float(xp.min(xp.where(p > 0, p, xp.ones_like(p)))) / 2, 0.25 / (k - 1))


def check_least(least: float) -> None:
    """Refuse a map whose smallest probability is none."""
    if not 0 <= least < 0.5:
        raise InputError(f"least must be a probability below 1/2; got {least!r}")
