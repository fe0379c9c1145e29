"""What all states share: values that are updated, merged, finished, and travel as JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from calibrant._names import Words
from calibrant._numerics.sums import UNIT, dot, from_text, to_text, total
from calibrant._validate import MAX_COUNT, InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_part
from calibrant.kernels import Kernel
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True)
class PairSums:
    """``sum a``, ``sum b``, ``sum a^2``, ``sum ab`` and ``sum b^2`` without rounding, as whole numbers of a tiny unit.

    So sums of squares lose no digits where the spread is small beside the mean, and parts add up to the whole in any order.
    Infinite values of a are added up on their own, in ``special``.

    >>> pairs = PairSums.of(np.array([1e9, 1e9 + 1, 1e9 + 2]), np.ones(3))
    >>> pairs.ratio, pairs.squares
    (1000000001.0, 2.0)
    """

    sums: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    special: float = 0.0

    @classmethod
    def of(cls, a: np.ndarray, b: np.ndarray | None = None) -> Self:
        """The sums of some pairs; b is 1 where it is not given."""
        finite = np.isfinite(a)
        special = 0.0
        if not finite.all():
            with np.errstate(invalid="ignore"):  # infinities of both signs have no sum
                special = float(a[~finite].sum())
            a = np.where(finite, a, 0.0)
        if b is None:
            count, first = len(a) << UNIT, total(a)
            return cls((first, count, dot(a, a), first, count), special)
        return cls((total(a), total(b), dot(a, a), dot(a, b), dot(b, b)), special)

    def __add__(self, other: "PairSums") -> "PairSums":
        added: Any = tuple(x + y for x, y in zip(self.sums, other.sums, strict=True))
        return PairSums(added, self.special + other.special)

    @property
    def first(self) -> float:
        """``sum a``."""
        return quotient(self.sums[0], 1 << UNIT) + self.special

    @property
    def second(self) -> float:
        """``sum b``."""
        return quotient(self.sums[1], 1 << UNIT)

    @property
    def ratio(self) -> float:
        """``R = sum a / sum b``."""
        return quotient(self.sums[0], self.sums[1]) + self.special

    @property
    def squares(self) -> float:
        """``sum (a - R b)^2``; not a number where some a are infinite."""
        if self.special != 0:
            return np.nan
        a, b, aa, ab, bb = self.sums
        return quotient(aa * b * b - 2 * a * b * ab + a * a * bb, b * b << UNIT)

    def to_list(self) -> list[str]:
        """Texts for JSON."""
        return [*to_text(self.sums), repr(self.special)]

    @classmethod
    def from_list(cls, texts: Sequence[str]) -> Self:
        """The sums of :meth:`to_list`."""
        *sums, special = texts
        exact: Any = exact_sums(sums, 5)
        return cls(exact, float(special))


def exact_sums(texts: Sequence[str], size: int) -> tuple[int, ...]:
    """So many sums of a stored state; others were not written by it."""
    if not isinstance(texts, list | tuple) or len(texts) != size:
        raise ValueError(f"it has not {size} sums where it should")
    return tuple(int(x) for x in from_text(texts))


def as_count(value: Any) -> int:
    """A number of rows, or of one of them, of a stored state."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{str(value)[:40]} is no number of rows")
    return value


def quotient(a: int, b: int) -> float:
    """The nearest double; infinite where there is none."""
    try:
        return a / b
    except OverflowError:
        return np.inf if (a > 0) == (b > 0) else -np.inf


NAMES = Words("estimators", "lenses", "kernels", "residuals")
"""What a stored state may name."""


def check_kernels(estimator: Any) -> None:
    """Refuse kernels with open length scales: medians of all data cannot be known before the last row."""
    for name in ("on_predictions", "on_targets"):
        kernel: Kernel | None = getattr(estimator, name)
        if kernel is not None and kernel.is_open:
            raise InputError(
                f"{name}={kernel!r} takes its length scale from the data, which a stream does not know yet: give one, such as "
                f"{type(kernel).__name__}(0.1), or take it from a first sample, state(..., like=(y_true, y_pred))"
            )


def check_target_kernel(estimator: Any, predictions: Distribution) -> None:
    """Refuse the default kernel on targets where that is not the identity of classes."""
    if estimator.on_targets is None and not isinstance(predictions, Categorical):
        raise InputError(
            f"on_targets must be given for a stream of {type(predictions).__name__} predictions, such as "
            "on_targets=Gaussian(1.0), or taken from a first sample, state(..., like=(y_true, y_pred))"
        )


@runtime_checkable
class State(Protocol):
    """What is kept of the rows so far. States are values: :meth:`update` and :meth:`merge` give new ones."""

    @property
    def n(self) -> int:
        """How many rows that count there were."""
        ...

    def update(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """The state after these rows too; there may be none."""
        ...

    def merge(self, other: Self) -> Self:
        """The state after the rows of both."""
        ...

    def finalize(self) -> Any:
        """The estimate from all rows so far."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, of which nothing is lost on the way between machines."""
        ...


class SumState(ABC):
    """A state of sums; subclasses are frozen dataclasses that write the five methods after ``finalize``.

    ``family`` says what kind of predictions the rows so far had: others cannot follow.
    """

    kind: str
    estimator: Any
    n: int
    family: str | None

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> Self:
        """The state after these rows too; there may be none."""
        part = as_part(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        return self if part is None else self.merge(self.of_rows(*part))

    def merge(self, other: Self) -> Self:
        """The state after the rows of both."""
        if type(self) is not type(other) or self.settings != other.settings:
            mine, yours = getattr(self, "estimator", self), getattr(other, "estimator", other)
            raise InputError(f"states of different estimators cannot be merged: {mine!r} and {yours!r}")
        if not self.n or not other.n:
            return other if other.n else self
        if self.family != other.family:
            raise InputError(f"states of different predictions cannot be merged: {self.family} and {other.family}")
        return self.joined(other)

    def finalize(self) -> Estimate:
        """The estimate from all rows so far."""
        if not self.n:
            raise InputError("the state has seen no rows: update it first")
        return self.result()

    @property
    def text(self) -> str:
        """The estimator in words."""
        return repr(self.estimator)

    @property
    def settings(self) -> str:
        """What must be the same in states that are merged."""
        return self.text

    @abstractmethod
    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The state of these rows alone."""

    @abstractmethod
    def joined(self, other: Self) -> Self:
        """The sum of two states that both have seen rows."""

    @abstractmethod
    def result(self) -> Estimate:
        """The estimate from at least one row."""

    @abstractmethod
    def sums(self) -> dict[str, Any]:
        """What JSON has beside the settings, the number of rows and the family."""

    @classmethod
    @abstractmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, of which nothing is lost on the way between machines."""
        common = {"state": self.kind, "estimator": self.text, "n": self.n, "family": self.family}
        return {**common, **self.sums()}


def family_of(predictions: Distribution) -> str:
    """What kind of predictions these are: the family and, of classes and labels, their names.

    >>> family_of(Categorical([0.2]))
    "Categorical('0', '1')"
    """
    name = type(predictions).__name__
    if isinstance(predictions, Categorical):
        return name + str(predictions.class_names)
    return name + str(predictions.label_names) if isinstance(predictions, Bernoulli) else name


def check_events(mine: Mapping[str, Any], yours: Mapping[str, Any]) -> None:
    """Refuse to merge sums of other events."""
    if list(mine) != list(yours):
        raise InputError(f"states of different events cannot be merged: {list(mine)} and {list(yours)}")
