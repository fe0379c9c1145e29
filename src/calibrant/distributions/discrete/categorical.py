"""Class probabilities: binary and multi-class classifiers."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._array import is_integer, matched, namespace, on_gpu, to_numpy
from calibrant._validate import (
    InputError,
    as_array,
    as_probabilities,
    as_real,
    as_working_precision,
    check_not_empty,
    check_rows_sum_to_one,
    frame_columns,
)
from calibrant.distributions.base import Distribution, check_temperature
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
    """Probabilities of k classes, ``(n, k)``, or of class 1 of two, ``(n,)``.

    Rows may miss one by float32 rounding (up to 1e-3) and are taken as they are. Targets are class numbers from 0, or
    names when ``labels`` gives the name of each column (the column names, for a data frame).

    >>> Categorical([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], labels=["cat", "dog", "owl"]).as_targets(["cat", "owl"])
    array([0, 2])
    """

    probs: Array
    labels: tuple[Any, ...] | None = None

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
        object.__setattr__(self, "labels", self._checked_labels(columns if self.labels is None else self.labels))

    def _checked_labels(self, labels: Sequence[Any] | None) -> tuple[Any, ...] | None:
        if labels is None:
            return None
        if len(labels) != self.n_classes or len(set(labels)) != len(labels):
            raise InputError(f"labels must be {self.n_classes} different names, one a class; got {list(labels)!r}")
        return tuple(labels)

    @classmethod
    def from_logits(cls, logits: ArrayLike, labels: Sequence[Any] | None = None) -> Self:
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
        return cls(odds / xp.sum(odds, axis=1, keepdims=True), _given(labels) or frame_columns(logits))

    @classmethod
    def trusted(cls, probs: Array, labels: tuple[Any, ...] | None = None, *, is_checked: bool = False) -> Self:
        """Without checks, for what was made of probabilities that have passed them: a floating array in [0, 1], rows sum to one.

        >>> Categorical.trusted(np.array([[0.7, 0.2, 0.1]]), ("cat", "dog", "owl"))
        <Categorical: 1 prediction of 3 classes, labels=('cat', 'dog', 'owl')>
        """
        self = object.__new__(cls)
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "_is_checked", is_checked)
        return self

    def checked(self) -> Self:
        """The same predictions for targets that are class numbers already, whatever the names."""
        return self.trusted(self.probs, self.labels, is_checked=True)

    def __len__(self) -> int:
        return int(self.probs.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self.trusted(self.probs[rows, ...], self.labels, is_checked=self._is_checked)

    def __repr__(self) -> str:
        names = "" if self.labels is None else f", labels={self.labels}"
        return f"<Categorical: {how_many(len(self), 'prediction')} of {self.n_classes} classes{names}>"

    @property
    def n_classes(self) -> int:
        """k, the number of classes."""
        return 2 if self.probs.ndim == 1 else int(self.probs.shape[1])

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

    def index_of(self, label: object) -> int:
        """The column of a class given by its name, or by its number where there are no names."""
        known = list(range(self.n_classes) if self.labels is None else self.labels)
        if label not in known:
            raise InputError(f"there is no class {label!r}; the classes are {known}")
        return known.index(label)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Class numbers from 0, ``(n,)``."""
        y = as_array(y_true, "y_true")
        check_not_empty(y, "y_true")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise InputError(
                f"y_true must be one label a row; got shape {tuple(y.shape)}: for one-hot labels pass "
                "y_true.argmax(axis=1), for several labels a row pass Bernoulli(y_pred)"
            )
        if isinstance(y, np.ndarray) and y.dtype.kind not in "iub":
            return self._from_names(y)
        if not is_integer(y):
            raise InputError(f"y_true must be integer class labels; got dtype {y.dtype}: convert it to integers")
        numbers = None if self._is_checked else self._names_as_numbers(is_bool=y.dtype == namespace(y).bool)
        return self._from_numbers(y) if numbers is None else _looked_up(to_numpy(y), numbers)

    def _names_as_numbers(self, *, is_bool: bool) -> tuple[int, ...] | None:
        """The names as numbers, where they are and do not just count the columns; truth values for boolean targets."""
        if self.labels is None:
            return None
        names = [str(label).strip().lower() for label in self.labels]
        if is_bool and set(names) == {"false", "true"}:
            return tuple(int(name == "true") for name in names)
        try:
            numbers = tuple(map(int, names))
        except ValueError:
            return None
        return None if numbers == tuple(range(self.n_classes)) else numbers

    def _from_numbers(self, y: Array) -> Array:
        xp, k = namespace(y), self.n_classes
        if y.dtype == xp.bool:
            return xp.astype(y, xp.uint8)
        low, high = int(xp.min(y)), int(xp.max(y))
        if low < 0 or high >= k:
            hint = ": they seem to start at 1; subtract 1" if low >= 1 and high == k else ""
            raise InputError(f"y_true must be labels from 0 to {k - 1}; found {low if low < 0 else high}{hint}")
        if low > 0 and k > 2 and self.labels is None and not self._is_checked:
            self._hint_at_first_class()
        return y

    def _hint_at_first_class(self) -> None:
        p = np.minimum(to_numpy(self.probability(0)).astype(np.float64), 1 - 1e-12)
        if -np.log1p(-p).sum() > SURPRISE:
            message = "class 0 never occurs in y_true though the predictions expect it: labels start at 0, not 1"
            warnings.warn(message, UserWarning, stacklevel=6)

    def _from_names(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind in "fc":
            raise InputError(
                f"y_true must be integer class labels; got floating-point values like {y[0]}: "
                "convert with y_true.astype(int), or put the truth first if the arguments are swapped"
            )
        if self.labels is None:
            raise InputError(
                f"y_true holds names like {y[0]!r}: say which column is which with Categorical(y_pred, labels=[...])"
            )
        return _looked_up(y, self.labels)

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
        xp = namespace(self.probs)
        classes = namespace(y).astype(matched(np.arange(self.n_classes), y), y.dtype)
        observed = y[:, None] == classes[None, :]
        return self.trusted(xp.astype(matched(observed, self.probs), self.probs.dtype), self.labels)

    def temper(self, temperature: float) -> Self:
        """``p^(1 / T)``, normalised."""
        check_temperature(temperature)
        xp = namespace(self.matrix)
        # the favoured class has power 1, so that the others may vanish but not all
        power = (self.matrix / xp.max(self.matrix, axis=1, keepdims=True)) ** (1 / temperature)
        return self.trusted(power / xp.sum(power, axis=1, keepdims=True), self.labels)

    def log_prob(self, targets: Array) -> Array:
        """Log probability of each target; ``-inf`` where what happened had been called impossible."""
        with np.errstate(divide="ignore"):
            table = np.log(to_numpy(self.matrix).astype(np.float64))
        return table[np.arange(len(self)), to_numpy(targets)]

    @property
    def mean(self) -> Any:
        """The probability of class 1 of two; more classes are names, not numbers."""
        return self.probability(1) if self.n_classes == 2 else NotImplemented

    @property
    def std(self) -> Any:
        """``sqrt(p (1 - p))`` of two classes."""
        return (self.probability(0) * self.probability(1)) ** 0.5 if self.n_classes == 2 else NotImplemented

    def crps(self, y: Array) -> Any:
        """The squared error, of two classes."""
        return self.squared_error(y) if self.n_classes == 2 else NotImplemented

    def squared_error(self, targets: Array) -> Array:
        """Squared distance of the probabilities from what happened; halved for two classes, as scikit-learn does."""
        p = to_numpy(self.matrix).astype(np.float64)
        table = (p**2).sum(axis=1, keepdims=True) - 2 * p + 1
        return (table / 2 if self.n_classes == 2 else table)[np.arange(len(self)), to_numpy(targets)]

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three classes, uniform on the simplex."""
        return cls(rng.dirichlet(np.ones(3), n))


def _looked_up(y: np.ndarray, names: tuple[Any, ...]) -> np.ndarray:
    """The position of each target among the names."""
    column = {name: i for i, name in enumerate(names)}
    try:
        found, which = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise InputError("y_true mixes types or has missing values: give one label a row") from error
    unknown = [name for name in found.tolist() if name not in column]
    if unknown:
        raise InputError(f"y_true has labels that y_pred has no column for: {unknown[:5]}; columns: {list(column)}")
    return np.array([column[name] for name in found.tolist()])[which]


def _given(labels: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if labels is None else tuple(labels)


def names_of(labels: Iterable[Any]) -> tuple[str, ...]:
    """Labels as text, each different: where two would look the same, as code writes them.

    >>> names_of([0, 1]), names_of([1, "1"])
    (('0', '1'), ('1', "'1'"))
    """
    labels = tuple(labels)
    names = tuple(map(str, labels))
    return names if len(set(names)) == len(names) else tuple(map(repr, labels))


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
