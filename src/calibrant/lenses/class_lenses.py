"""Lenses: which yes-or-no events of a prediction are looked at, and slices of the rows.

A classifier of k classes makes many claims at once. A lens picks some: that class 1 occurs, that the favoured class is
right, or each class in turn. Every lens maps a problem to a problem, ``lens(y_true, y_pred) -> (y_true, y_pred)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._array import matched, namespace, row_maxima, to_numpy
from calibrant._clusters import as_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, as_group, as_weights, of_what
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.results import Estimate, Table, TestResult
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Event:
    """One yes-or-no question asked of every row, with the probability predicted for yes.

    ``predicted`` and ``answer``, the class that means yes (one for all rows, or one per row), are arrays of the library of
    the predictions. Where targets have an axis of labels, ``column`` says which label is asked about.
    """

    name: str
    predicted: Array
    answer: int | Array = 1
    column: int | None = None

    @cached_property
    def probability(self) -> np.ndarray:
        """The predicted probability on the host, ``(n,)``."""
        return to_numpy(self.predicted)

    def observed(self, targets: Array) -> np.ndarray:
        """Whether the event took place, ``(..., n)`` on the host, for targets ``(..., n)`` or ``(..., n, k)``."""
        y = to_numpy(targets)
        return (y if self.column is None else y[..., self.column]) == self._host_answer

    @cached_property
    def _host_answer(self) -> int | np.ndarray:
        return self.answer if isinstance(self.answer, int) else to_numpy(self.answer)

    def problem(self, targets: Array) -> tuple[Array, Categorical]:
        """The binary problem of this event, in the library of the predictions: gradients pass."""
        y = matched(targets, self.predicted)
        xp = namespace(y)
        observed = (y if self.column is None else y[:, self.column]) == self.answer
        return xp.astype(observed, xp.uint8), Categorical.trusted(self.predicted)


class Lens(Settings, ABC):
    """Picks events of a batch of predictions; subclasses are frozen dataclasses."""

    name: str
    """What results call this lens."""

    @abstractmethod
    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """The events looked at, in a fixed order."""

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> tuple[Array, Categorical | Bernoulli]:
        """The problem seen through the lens: a binary one for a single event, else one label per event."""
        targets, predictions = as_problem(y_true, y_pred, Classes(labels, pos_label))
        events = self.events(predictions)
        if len(events) == 1:
            return events[0].problem(targets)
        observed = np.stack([event.observed(targets) for event in events], axis=-1)
        probs = np.stack([event.probability for event in events], axis=-1)
        return observed.view(np.uint8), Bernoulli(probs, tuple(event.name for event in events))


def _categorical(predictions: Distribution, lens: Lens) -> Categorical:
    if not isinstance(predictions, Categorical):
        raise InputError(f"{lens!r} looks at class probabilities; got {type(predictions).__name__} predictions")
    return predictions


@dataclass(frozen=True)
class PositiveClass(Lens):
    """The event that one class occurs: class 1 of two unless ``label`` names another.

    >>> PositiveClass("owl").events(Categorical([[0.2, 0.8]], labels=["cat", "owl"]))[0].probability
    array([0.8])
    """

    label: int | str | None = None

    name = "positive class"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """One event, that the class occurs."""
        p = _categorical(predictions, self)
        if self.label is None and p.n_classes != 2:
            raise InputError(f"with {p.n_classes} classes, say which one is positive: PositiveClass(label)")
        index = p.event if self.label is None else p.index_of(self.label)
        return (Event(p.class_names[index], p.probability(index), index),)


@dataclass(frozen=True)
class TopLabel(Lens):
    """The event that the favoured class is right; its probability is the confidence.

    Of classes with equal probability the first is favoured.

    >>> TopLabel()([0, 0], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])[0]
    array([1, 0], dtype=uint8)
    """

    name = "top-label"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """One event, that the favoured class is right."""
        p = _categorical(predictions, self).matrix
        return (Event("favoured class is right", *row_maxima(p)),)


@dataclass(frozen=True)
class ClassWise(Lens):
    """Each class in turn against the rest.

    >>> [event.name for event in ClassWise().events(Categorical([[0.2, 0.8]], labels=["cat", "owl"]))]
    ['cat', 'owl']
    """

    name = "class-wise"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """As many events as classes."""
        p = _categorical(predictions, self)
        return tuple(Event(name, p.probability(i), i) for i, name in enumerate(p.class_names))


@dataclass(frozen=True)
class MultiLabel(Lens):
    """Each label of multi-label predictions.

    >>> len(MultiLabel().events(Bernoulli([[0.9, 0.2, 0.5]])))
    3
    """

    name = "multi-label"

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """As many events as labels."""
        if not isinstance(predictions, Bernoulli):
            raise InputError(f"MultiLabel() looks at Bernoulli(y_pred); got {type(predictions).__name__} predictions")
        p = predictions.probs
        return tuple(Event(name, p[:, i], 1, i) for i, name in enumerate(predictions.label_names))


def default_lens(predictions: Distribution) -> Lens:
    """The lens that people mean: the positive class of two, the confidence of more, each of several labels.

    >>> default_lens(Categorical([[0.2, 0.5, 0.3]]))
    TopLabel()
    """
    if isinstance(predictions, Bernoulli):
        return MultiLabel()
    if isinstance(predictions, Categorical):
        return PositiveClass() if predictions.n_classes == 2 else TopLabel()
    raise InputError(f"{type(predictions).__name__} predictions have no events; give a lens such as Exceeds(0.0)")


def groups(
    measure: Callable[..., Estimate | TestResult],
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    by: ArrayLike | Mapping[str, ArrayLike],
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    clusters: ArrayLike | None = None,
    **options: Any,
) -> Table:
    """A tidy table of any estimator, test or interval, one row a slice of the data.

    ``by`` gives each row's group; groups come in sorted order. ``clusters`` says which rows belong together. ``options`` go
    to ``measure``.

    >>> from calibrant import ECE
    >>> groups(ECE(), [1, 0, 1, 0], [0.9, 0.2, 0.6, 0.5], by=["a", "a", "b", "b"])
    group  n  value
    a      2   0.15
    b      2   0.45
    """
    if not callable(measure) or isinstance(measure, type):
        raise InputError(f"measure must be an estimator or a test such as ECE(); got {of_what(measure)}")
    targets, predictions = as_problem(y_true, y_pred, Classes(labels, pos_label))
    weights = as_weights(sample_weight, len(predictions))
    together = None if clusters is None else as_clusters(clusters, len(predictions))
    names, which = np.unique(as_group(by, len(predictions), "by"), return_inverse=True)
    rows = [np.flatnonzero(which == i) for i in range(len(names))]
    results = []
    for name, r in zip(names, rows, strict=True):
        weighted: dict[str, Any] = {} if weights is None else {"sample_weight": weights[r]}
        if together is not None:
            weighted["clusters"] = together.codes[r]
        try:
            results.append(measure(targets[r, ...], predictions[r], **options, **weighted))
        except InputError as error:
            raise InputError(f"slice {name!s}: {error}") from error
    return _tidy(names, results)


def _tidy(names: np.ndarray, results: list[Estimate | TestResult]) -> Table:
    rows = [{"group": name, "n": result.n, **result.to_row()} for name, result in zip(names, results, strict=True)]
    columns = dict.fromkeys(column for row in rows for column in row)  # some slices may have no interval
    return Table({column: [row.get(column, np.nan) for row in rows] for column in columns})
