"""What all states share: values that are updated, merged, finished, and travel as JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_part
from calibrant.results import Estimate
from calibrant.typing import Array, ArrayLike


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

    def update(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """The state after these rows too; there may be none."""
        part = as_part(y_true, y_pred, sample_weight)
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
