"""Class probabilities: binary and multi-class classifiers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._array import (
    as_double,
    is_floating,
    is_integer,
    is_traced,
    matched,
    namespace,
    on_gpu,
    picked,
    row_products,
    rows_of,
    to_numpy,
)
from calibrant._validate import (
    InputError,
    as_array,
    as_probabilities,
    as_real,
    as_working_precision,
    check_finite,
    check_not_empty,
    check_rows_sum_to_one,
    frame_columns,
)
from calibrant.distributions.base import Distribution, check_temperature
from calibrant.distributions.discrete.class_names import (
    Rest,
    as_names,
    as_number,
    distinct,
    event_of,
    events_among,
    extremes,
    from_one_hot,
    index_of,
    names_in_order,
    names_of,
    positions,
    wanted,
    whole,
)
from calibrant.kernels import Identity, LabelMatrix
from calibrant.kernels.base import closed_form
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

MAX_STEPS = 32
"""Up to so many steps, comparing with each in turn is faster than bisection, which looks them up one by one."""

CACHED = 1 << 16
"""Numbers that are looked up at a time: they and the steps of their rows stay in the cache."""


def steps_below(steps: np.ndarray, u: np.ndarray, count: int) -> np.ndarray:
    """How many of each row's first ``count`` sorted steps ``(n, width)`` are at most u ``(m, n)``, in the smallest integers.

    The width is a power of two; steps behind the first ones are infinite. O(m n log count), or O(m n count) of few steps.

    >>> steps_below(np.array([[0.2, 0.7, np.inf, np.inf]]), np.array([[0.1], [0.2], [0.9]]), 2)[:, 0]
    array([0, 1, 2], dtype=uint8)
    """
    found = np.empty(u.shape, dtype=np.min_scalar_type(count))
    size = max(1, CACHED // max(len(u), 1))
    for start in range(0, u.shape[1], size):
        rows = slice(start, start + size)
        if count > MAX_STEPS:
            found[:, rows] = bisected(steps[rows], u[:, rows])
        else:
            found[:, rows] = _in_turn(steps[rows, :count].T.copy(), u[:, rows].copy(), found.dtype)
    return found


def _in_turn(steps: np.ndarray, u: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same for steps ``(count, n)``, one after the other."""
    found = np.zeros(u.shape, dtype)
    for step in steps:
        found += step <= u
    return found


def bisected(steps: Array, u: Array) -> Array:
    """How many of each row's sorted steps ``(n, width)`` are at most u ``(m, n)``, in any library.

    The width is a power of two, and the last step is infinite: it is never looked at.

    >>> bisected(np.array([[0.2, np.inf]]), np.array([[0.1], [0.2]]))[:, 0]
    array([0, 1])
    """
    n, width = steps.shape
    row, found = (matched(x, steps) for x in (np.arange(n) * width, np.zeros(u.shape, dtype=np.intp)))
    every, step = steps.reshape(-1), width // 2
    while step:  # in all rows at once
        found += step * (every[row + found + (step - 1)] <= u)
        step //= 2
    return found


SURPRISE = np.log(1000.0)
"""Class 0 never occurring is worth a hint when the model itself gives that less than one chance in a thousand."""


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """Probabilities of k classes, ``(n, k)``, or of the event of two, ``(n,)``.

    Rows may miss one by float32 rounding (up to 1e-3) and are taken as they are. Targets are class numbers from 0, or
    names when ``labels`` gives the name of each column (the column names, for a data frame). Of two classes ``pos_label``
    says which one is the event; it is the larger of two numbers, else the second. Of a single column it is the class that the
    column is of, and all other targets are the rest.

    >>> Categorical([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], labels=["cat", "dog", "owl"]).as_targets(["cat", "owl"])
    array([0, 2])
    >>> Categorical([0.2, 0.9], pos_label="dog").as_targets(["cat", "dog"])
    array([0, 1], dtype=uint8)
    """

    probs: Array
    labels: tuple[Any, ...] | None = None
    pos_label: Any = None

    _is_checked: ClassVar[bool] = False

    def __post_init__(self) -> None:
        probs = as_probabilities(self.probs, "y_pred")
        columns = frame_columns(self.probs)
        if probs.ndim == 2 and probs.shape[1] == 1:
            probs, columns = probs[:, 0], None
        if probs.ndim not in (1, 2):
            raise InputError(f"y_pred must be (n,) or (n, k); got shape {tuple(probs.shape)}")
        if probs.ndim == 2:
            check_rows_sum_to_one(probs, "y_pred")
        object.__setattr__(self, "probs", probs)
        labels = columns if self.labels is None else names_in_order(as_names(self.labels, self.n_classes), columns)
        self._name(labels, self.pos_label)

    def _name(self, labels: tuple[Any, ...] | None, pos_label: Any) -> None:
        """Name the classes, and the event of two."""
        if pos_label is not None:
            labels = self._labels_with(pos_label, labels)
            pos_label = labels[index_of(pos_label, labels)]
        elif labels is not None and self.probs.ndim == 1 and event_of(labels) == 0:
            raise InputError(f"y_pred is one column, of which of {list(labels)}? {events_among(labels)}")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "pos_label", pos_label)

    def _labels_with(self, pos_label: Any, labels: tuple[Any, ...] | None) -> tuple[Any, ...]:
        """The labels, of which one is the event: that of a single column comes second."""
        if self.n_classes > 2:
            raise InputError(
                f"pos_label is for two classes and y_pred has {self.n_classes}: give the column of {pos_label!r} alone, or "
                f"look at it through lens=PositiveClass({pos_label!r})"
            )
        if self.probs.ndim == 1:
            if labels is None:
                return (Rest(pos_label), pos_label)
            return labels[:: -1 if index_of(pos_label, labels) == 0 else 1]
        if labels is None and as_number(pos_label) not in (0, 1):
            raise InputError(
                f"pos_label={pos_label!r} is which column of y_pred? Give labels=[...], one name per column, such as "
                "labels=model.classes_, or its column alone"
            )
        return (0, 1) if labels is None else labels

    def named(self, labels: ArrayLike | None, pos_label: Any) -> Self:
        """The same predictions with names; those that they have already cannot be changed.

        >>> Categorical([[0.2, 0.8]]).named(["dog", "cat"], "dog").event
        0
        """
        found = self.trusted(self.probs)
        given = self.labels if labels is None else names_in_order(as_names(labels, self.n_classes), self.labels)
        if self.labels is not None and given != self.labels and names_of(given or ()) != names_of(self.labels):
            raise InputError(
                f"labels={list(given or ())} and those of y_pred differ, {list(self.labels)}: leave labels out"
            )
        found._name(given, self.pos_label if pos_label is None else pos_label)
        return found

    @classmethod
    def from_logits(cls, logits: ArrayLike, labels: ArrayLike | None = None, pos_label: Any = None) -> Self:
        """Softmax of ``(n, k)`` logits, or the sigmoid of ``(n,)`` log-odds of class 1.

        >>> Categorical.from_logits([[0.0, 0.0], [0.0, 2.0]]).probs.round(4)
        array([[0.5   , 0.5   ],
               [0.1192, 0.8808]])
        """
        z = as_working_precision(as_real(logits, "logits"))
        xp = namespace(z)
        if z.ndim == 2 and z.shape[1] == 1:
            z = z[:, 0]
        if z.ndim == 1:  # both columns, so that no tail is lost in 1 - p
            z = xp.stack([xp.zeros_like(z), z], axis=1)
        odds = xp.exp(z - xp.max(z, axis=1, keepdims=True))
        names = frame_columns(logits) if labels is None else labels
        return cls(odds / xp.sum(odds, axis=1, keepdims=True), names, pos_label)

    @classmethod
    def trusted(cls, probs: Array, labels: tuple[Any, ...] | None = None, *, is_checked: bool = False) -> Self:
        """Without checks, for what was made of probabilities that have passed them: a floating array in [0, 1], rows sum to one.

        >>> Categorical.trusted(np.array([[0.7, 0.2, 0.1]]), ("cat", "dog", "owl"))
        <Categorical: 1 prediction of 3 classes, labels=('cat', 'dog', 'owl')>
        """
        self = object.__new__(cls)
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "pos_label", None)
        object.__setattr__(self, "_is_checked", is_checked)
        return self

    def alike(self, probs: Array, *, is_checked: bool = False) -> Self:
        """Other probabilities of the same classes, without checks.

        >>> Categorical([[0.7, 0.3]], labels=["cat", "dog"]).alike(np.array([[0.5, 0.5]]))
        <Categorical: 1 prediction of 2 classes, labels=('cat', 'dog')>
        """
        found = self.trusted(probs, self.labels, is_checked=is_checked)
        object.__setattr__(found, "pos_label", self.pos_label)
        return found

    def checked(self) -> Self:
        """The same predictions for targets that are class numbers already, whatever the names."""
        return self.alike(self.probs, is_checked=True)

    def __len__(self) -> int:
        return int(self.probs.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self.alike(rows_of(self.probs, rows), is_checked=self._is_checked)

    def __repr__(self) -> str:
        names = "" if self.labels is None else f", labels={self.labels}"
        return f"<Categorical: {how_many(len(self), 'prediction')} of {self.n_classes} classes{names}>"

    @property
    def n_classes(self) -> int:
        """k, the number of classes."""
        return 2 if self.probs.ndim == 1 else int(self.probs.shape[1])

    @property
    def are_decisions(self) -> bool:
        """Whether every probability is 0 or 1."""
        parts = () if is_traced(self.probs) else (self.probs[:8, ...], self.probs)
        return bool(parts) and all(bool(np.all((p == 0) | (p == 1))) for p in map(to_numpy, parts))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The labels as text; the class numbers where none were given."""
        return names_of(range(self.n_classes) if self.labels is None else self.labels)

    @cached_property
    def matrix(self) -> Array:
        """All probabilities, ``(n, k)``, also of a batch given as ``(n,)``."""
        if self.probs.ndim == 2:
            return self.probs
        return namespace(self.probs).stack([1 - self.probs, self.probs], axis=1)

    def probability(self, index: int) -> Array:
        """Probability of one class, ``(n,)``, without making the matrix."""
        if self.probs.ndim == 2:
            return self.probs[:, index]
        return self.probs if index == 1 else 1 - self.probs

    @property
    def names_one_class(self) -> bool:
        """Whether targets are to be told by one name, all others being the rest."""
        return not self._is_checked and self.labels is not None and isinstance(self.labels[0], Rest)

    @property
    def event(self) -> int:
        """The column of the event of two classes, which the positive class is."""
        return (
            event_of(self.labels)
            if self.pos_label is None or self.labels is None
            else self.labels.index(self.pos_label)
        )

    def index_of(self, label: object) -> int:
        """The column of a class given by its name, or by its number where there are no names."""
        return index_of(label, tuple(range(self.n_classes)) if self.labels is None else self.labels)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Class numbers from 0, ``(n,)``."""
        y = as_array(y_true, "y_true")
        check_not_empty(y, "y_true")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim == 2 and y.shape[1] == self.n_classes:
            y = from_one_hot(y)
        if y.ndim != 1:
            raise InputError(
                f"y_true must be one label per row; got shape {tuple(y.shape)}: for several labels per row pass Bernoulli(y_pred)"
            )
        if self._is_checked and is_integer(y):
            return self._from_numbers(y)
        if isinstance(y, np.ndarray) and y.dtype.kind not in "fiub":
            return self._from_names(y)
        return self._from_values(y)

    def _from_values(self, y: Array) -> Array:
        """From numbers or truth values: names where the names are such, else the numbers of the classes."""
        if not is_integer(y) and not is_floating(y):
            raise InputError(f"y_true must be labels; got dtype {y.dtype}: convert it to integers")
        names = self._names_of_numbers
        if names is not None:
            check_finite(y, "y_true")
            return positions(to_numpy(y), names)
        return self._from_numbers(y if is_integer(y) else whole(y))

    @property
    def _names_of_numbers(self) -> tuple[Any, ...] | None:
        """The names to look targets up by: where they are numbers and do not just count the columns."""
        if self.labels is None:
            return None
        if isinstance(self.labels[0], Rest):
            return self.labels
        numbers = tuple(map(as_number, self.labels))
        return None if None in numbers or numbers == tuple(range(self.n_classes)) else self.labels

    def _from_numbers(self, y: Array) -> Array:
        xp, k = namespace(y), self.n_classes
        if y.dtype == xp.bool:
            return xp.astype(y, xp.uint8)
        low, high = extremes(y)
        if low == -1 and k == 2 and bool(xp.all(y * y == 1)):
            return xp.astype(y > 0, xp.uint8)
        if low < 0 or high >= k:
            raise InputError(
                f"y_true must be labels from 0 to {k - 1}; found {low if low < 0 else high}{self._hint(low, high)}"
            )
        return y

    def _hint(self, low: int, high: int) -> str:
        """What may be meant by numbers that are none of classes."""
        if self.probs.ndim == 1:
            return f": one column of probabilities is that of which? {events_among(sorted({low, high}))}"
        if low >= 1 and high == self.n_classes:
            return f": they seem to start at 1; subtract 1, or give labels=range(1, {high + 1})"
        return ": give labels=[...], one per column, such as labels=model.classes_"

    def lacks_first_class(self, targets: Array) -> bool:
        """Whether class 0 of more than two without names never occurs, though the predictions expect it."""
        if self.n_classes == 2 or self.labels is not None or self._is_checked or extremes(targets)[0] == 0:
            return False
        p = np.minimum(to_numpy(self.probability(0)).astype(np.float64), 1 - 1e-12)
        return bool(-np.log1p(-p).sum() > SURPRISE)

    def _from_names(self, y: np.ndarray) -> np.ndarray:
        if self.labels is not None:
            return positions(y, self.labels)
        found, _ = distinct(y)
        if all(as_number(name) in range(self.n_classes) for name in found):
            return positions(y, tuple(range(self.n_classes)))
        raise InputError(f"y_true holds names like {found[0]!r}: {wanted(found, self.probs.ndim)}")

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Class numbers, ``(size, n)``, by inversion of each row's cumulative probabilities.

        Uniform numbers come from ``rng`` wherever the probabilities are; on a GPU it is faster and finds the same classes.
        """
        u = rng.random((size, len(self)))
        if self.n_classes == 2:
            return (u < self._second_of_two).view(np.uint8)
        if not on_gpu(self.probs):
            return steps_below(self._cumulative, u, self.n_classes - 1)
        found = bisected(self._cumulative_there, matched(u, self._cumulative_there))
        if self.n_classes <= 256:
            found = namespace(found).astype(found, namespace(found).uint8)  # less to bring back
        return to_numpy(found).astype(np.min_scalar_type(self.n_classes - 1), copy=False)

    @cached_property
    def _second_of_two(self) -> np.ndarray:
        p = to_numpy(self.probs).astype(np.float64)
        return p if p.ndim == 1 else p[:, 1] / p.sum(axis=1)

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """Cumulative probabilities of all classes but the last, padded to a power of two with infinity."""
        total = np.cumsum(to_numpy(self.probs).astype(np.float64), axis=1)
        padded = np.full((len(self), 1 << (self.n_classes - 1).bit_length()), np.inf)
        padded[:, : self.n_classes - 1] = total[:, :-1] / total[:, -1:]
        return padded

    @cached_property
    def _cumulative_there(self) -> Array:
        """The same digits on the GPU where the probabilities are."""
        return matched(self._cumulative, self.probs)

    @property
    def coords(self) -> Array:
        """The probabilities themselves, ``(n, k)``, so that ``(n,)`` and ``(n, 2)`` input agree."""
        return self.matrix

    def point(self, y: Array) -> Self:
        """Certainty of the class that occurred."""
        return self.alike(self.one_hot(y))

    def one_hot(self, y: Array) -> Array:
        """One for the class that occurred and zero for the others: of class numbers ``(..., n)``, ``(..., n, k)``."""
        classes = namespace(y).astype(matched(np.arange(self.n_classes), y), y.dtype)
        return namespace(self.probs).astype(matched(y[..., None] == classes, self.probs), self.probs.dtype)

    def temper(self, temperature: float) -> Self:
        """``p^(1 / T)``, normalised."""
        check_temperature(temperature)
        xp = namespace(self.matrix)
        # the favoured class has power 1, so that the others may vanish but not all
        power = (self.matrix / xp.max(self.matrix, axis=1, keepdims=True)) ** (1 / temperature)
        return self.alike(power / xp.sum(power, axis=1, keepdims=True))

    def log_prob(self, targets: Array) -> Array:
        """Log probability of each target; ``-inf`` where what happened had been called impossible."""
        with np.errstate(divide="ignore"):
            logs: np.ndarray = np.log(to_numpy(picked(self.matrix, to_numpy(targets))).astype(np.float64))
        return logs

    @property
    def mean(self) -> Any:
        """The probability of the event of two; more classes are names, not numbers."""
        return self.probability(self.event) if self.n_classes == 2 else NotImplemented

    @property
    def std(self) -> Any:
        """``sqrt(p (1 - p))`` of two classes."""
        return (self.probability(0) * self.probability(1)) ** 0.5 if self.n_classes == 2 else NotImplemented

    def crps(self, y: Array) -> Any:
        """The squared error, of two classes."""
        return self.squared_error(y) if self.n_classes == 2 else NotImplemented

    def squared_error(self, targets: Array) -> Array:
        """Squared distance of the probabilities from what happened; halved for two classes, as scikit-learn does."""
        p = as_double(self.matrix)
        own, squares = picked(p, to_numpy(targets)), row_products(p, p)
        found: np.ndarray = to_numpy(squares - 2 * own + 1)
        return found / 2 if self.n_classes == 2 else found

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three classes, uniform on the simplex."""
        return cls(rng.dirichlet(np.ones(3), n))


@closed_form(Identity, Categorical, Categorical)
def _identity(kernel: Identity, p: Categorical, q: Categorical) -> Array:  # noqa: ARG001
    """The chance of drawing the same class."""
    return p.matrix @ namespace(q.matrix).permute_dims(q.matrix, (1, 0))


@closed_form(LabelMatrix, Categorical, Categorical)
def _label_matrix(kernel: LabelMatrix, p: Categorical, q: Categorical) -> Array:
    """A bilinear form."""
    xp = namespace(p.matrix)
    matrix = xp.astype(matched(np.asarray(kernel.matrix), p.matrix), p.matrix.dtype)
    return p.matrix @ matrix @ xp.permute_dims(q.matrix, (1, 0))
