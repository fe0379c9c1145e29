"""Names of classes: what a caller said of them, and which class each target is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from calibrant._array import is_integer, looked_at, namespace
from calibrant._validate import InputError, check_finite, missing_rows
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

RISING = (("false", "true"), ("no", "yes"), ("n", "y"), ("negative", "positive"), ("off", "on"))
"""Pairs of names of which the second is the event, in whatever order they come."""


@dataclass(frozen=True)
class Rest:
    """All classes but one, where a single column of probabilities is that of one."""

    label: Any

    def __str__(self) -> str:
        return f"not {self.label}"

    __repr__ = __str__


def as_names(labels: ArrayLike, n_classes: int) -> tuple[Any, ...]:
    """Labels as a tuple of different names, one per class; an array, such as ``classes_``, or a column is as good as a list.

    >>> as_names(np.array(["cat", "dog"]), 2)
    ('cat', 'dog')
    """
    if isinstance(labels, Mapping) and set(labels) == set(range(n_classes)):  # names by number, as of language models
        labels = [labels[i] for i in range(n_classes)]
    lister = next((getattr(labels, name) for name in ("tolist", "to_list", "to_pylist") if hasattr(labels, name)), None)
    if isinstance(labels, str | bytes | Mapping) or not (lister or hasattr(labels, "__iter__")):
        raise InputError(f"labels must be a list of {n_classes} names, one per class; got {labels!r}")
    names = tuple(lister() if lister else labels)
    if len(names) != n_classes or len(set(names)) != len(names):
        raise InputError(f"labels must be {n_classes} different names, one per class; got {list(names)!r}")
    return names


def names_in_order(labels: tuple[Any, ...], columns: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The labels that were given for columns that may have names: the same names in another order are refused.

    >>> names_in_order(("cat", "dog"), ("p1", "p2"))
    ('cat', 'dog')
    """
    if columns is not None and columns != labels and set(names_of(columns)) == set(names_of(labels)):
        raise InputError(
            f"labels={list(labels)!r} is in another order than the columns of y_pred, {list(columns)!r}: leave labels out"
        )
    return labels


def names_of(labels: Iterable[Any]) -> tuple[str, ...]:
    """Labels as text, each different: where two would look the same, as code writes them.

    >>> names_of([0, 1]), names_of([1, "1"])
    (('0', '1'), ('1', "'1'"))
    """
    labels = tuple(labels)
    names = tuple(map(str, labels))
    return names if len(set(names)) == len(names) else tuple(map(repr, labels))


def as_number(label: Any) -> float | None:
    """The number that a label is, or that its text spells; ``None`` of others. False and true are 0 and 1.

    >>> as_number("2"), as_number(True), as_number("False"), as_number("cat")
    (2.0, 1.0, 0.0, None)
    """
    text = str(label).strip().lower()
    if text in ("false", "true"):
        return float(text == "true")
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def event_of(labels: tuple[Any, ...] | None) -> int:
    """Which of two classes is the event where nobody says: the larger number, ``True`` or ``yes``, else the second.

    >>> event_of((0, 1)), event_of((1, 0)), event_of(("yes", "no")), event_of(("dog", "cat"))
    (1, 0, 0, 1)
    """
    if labels is None or len(labels) != 2:
        return 1
    first, second = map(as_number, labels)
    if first is not None and second is not None:
        return int(second >= first)
    names = tuple(str(label).strip().lower() for label in labels)
    return int(names[::-1] not in RISING)


def index_of(label: Any, labels: tuple[Any, ...]) -> int:
    """The position of a class given by its name.

    >>> index_of("1", (0, 1))
    1
    """
    same = [i for i, name in enumerate(labels) if label == name] or [
        i for i, name in enumerate(labels) if is_same(label, name)
    ]
    if len(same) != 1:
        near = get_close_matches(str(label), names_of(labels), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(f"there is no class {label!r}; the classes are {list(labels)}{hint}")
    return same[0]


def positions(y: np.ndarray, labels: tuple[Any, ...]) -> np.ndarray:
    """The position of each target among the labels: numbers and their texts are the same.

    >>> positions(np.array(["2", "1"]), (1, 2)).tolist()
    [1, 0]
    """
    found, which = distinct(y)
    if isinstance(labels[0], Rest):
        return np.array([is_same(name, labels[1]) for name in found]).astype(np.uint8)[which]
    column = {name: i for i, name in enumerate(labels)}
    if not all(name in column for name in found):
        by_number = {_key(name): i for i, name in enumerate(labels)}
        if len(by_number) == len(labels) and all(_key(name) in by_number for name in found):
            found, column = [_key(name) for name in found], by_number
    unknown = [name for name in found if name not in column]
    if unknown:
        raise InputError(
            f"y_true has labels that y_pred has no column for: {unknown[:5]}; columns: {list(labels)}: leave those rows out, or "
            "give the model's labels, one per column, such as labels=model.classes_"
        )
    return np.array([column[name] for name in found])[which]


def distinct(y: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The different targets, and which of them each is; missing ones are refused."""
    try:
        found, which = np.unique(y, return_inverse=True)
    except TypeError as error:
        missing = missing_rows(y.tolist())
        if missing:
            raise InputError(
                f"y_true has missing values in {how_many(len(missing), 'place')}, first in row {missing[0]}: leave those rows out"
            ) from error
        raise InputError("y_true mixes types: give one kind of label, such as text") from error
    return found.tolist(), which


def is_same(a: Any, b: Any) -> bool:
    """Whether two labels name one class: equal, or the same number.

    >>> is_same("1", 1), is_same(True, "True"), is_same("a", "b")
    (True, True, False)
    """
    return bool(a == b or _key(a) == _key(b))


def _key(label: Any) -> Any:
    number = as_number(label)
    return str(label) if number is None else number


def wanted(labels: Sequence[Any], k: int) -> str:
    """What to say where targets are names and columns have none.

    >>> wanted(["no", "yes"], 1)
    "one column of probabilities is that of which? Give pos_label='no' or pos_label='yes'"
    """
    if k == 1:
        return f"one column of probabilities is that of which? {events_among(labels)}"
    return "say which column is which: labels=model.classes_ of scikit-learn, or labels=[...], one name per column"


def events_among(labels: Sequence[Any]) -> str:
    """What to say where it is open which of the labels is the event: each of two, else one of them.

    >>> events_among([1, 2])
    'Give pos_label=1 or pos_label=2'
    """
    return f"Give {' or '.join(f'pos_label={label!r}' for label in (labels if len(labels) == 2 else labels[-1:]))}"


def whole(y: Array) -> Array:
    """Labels that are whole numbers, though of a floating type, as integers."""
    check_finite(y, "y_true")
    xp = namespace(y)
    rounded = xp.round(y)
    if not bool(xp.all(rounded == y)):
        raise InputError(
            f"y_true must be class labels; got fractions like {_first(y, rounded != y):g}: give what happened, such as "
            "y_true > 0.5, and the truth first if the arguments are swapped"
        )
    if bool(xp.any(huge := xp.abs(y) >= 2.0**63)):
        raise InputError(f"y_true must be class labels; got {_first(y, huge):g}: give what happened")
    return xp.astype(y, xp.int64)


def _first(y: Array, marks: Array) -> float:
    """The first of the values that are marked, in an array of any number of axes."""
    xp = namespace(y)
    return float(xp.reshape(y, (-1,))[int(xp.argmax(xp.astype(xp.reshape(marks, (-1,)), xp.uint8)))])


def extremes(y: Array) -> tuple[int, int]:
    """The least and the largest of whole numbers."""
    seen = looked_at(y)
    xp = namespace(seen)
    return int(xp.min(seen)), int(xp.max(seen))


def from_one_hot(y: Array) -> Array:
    """The column of the one in each row; rows that have not exactly one are refused."""
    if isinstance(y, np.ndarray) and y.dtype.kind not in "fiub":
        raise InputError(f"y_true must be one label per row; got shape {tuple(y.shape)}: give one column")
    xp = namespace(y)
    marks = xp.astype(y, xp.int64) if is_integer(y) else whole(y)
    if bool(xp.all((marks == 0) | (marks == 1))) and bool(xp.all(xp.sum(marks, axis=1) == 1)):
        return xp.argmax(marks, axis=1)
    raise InputError(
        f"y_true must be one label per row; got shape {tuple(y.shape)} with rows that are not one-hot: for several labels per row "
        "pass Bernoulli(y_pred)"
    )
