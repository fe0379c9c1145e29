"""Probabilities of several yes-or-no labels per row: multi-label classifiers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import is_integer, namespace, to_numpy
from calibrant._validate import InputError, as_array, as_probabilities, check_not_empty, frame_columns
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.class_names import as_names, names_in_order, names_of
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    """Probabilities ``(n, k)`` of k labels that may each be present or not; rows need not sum to one.

    The family says that labels are independent given the predictions; resamples follow it. Where labels depend on each
    other beyond what the predictions explain, test each label by itself.

    >>> Bernoulli([[0.9, 0.2], [0.4, 0.7]], labels=["cat", "indoors"])
    <Bernoulli: 2 predictions of 2 labels, labels=('cat', 'indoors')>
    """

    probs: Array
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        probs = as_probabilities(self.probs, "y_pred")
        probs = probs[:, None] if probs.ndim == 1 else probs
        if probs.ndim != 2:
            raise InputError(f"y_pred must be (n, k); got shape {tuple(probs.shape)}")
        columns = frame_columns(self.probs)
        labels = columns if self.labels is None else names_in_order(as_names(self.labels, probs.shape[1]), columns)
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "labels", labels)

    def named(self, labels: ArrayLike | None, pos_label: Any) -> Self:
        """The same predictions with names; a positive label is for two classes that exclude each other."""
        if pos_label is not None:
            raise InputError(
                "pos_label is for two classes, and every label of Bernoulli(y_pred) is an event: leave it out"
            )
        return type(self)(
            self.probs, self.labels if labels is None else names_in_order(as_names(labels, self.n_labels), self.labels)
        )

    def __len__(self) -> int:
        return int(self.probs.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        part = object.__new__(type(self))
        object.__setattr__(part, "probs", self.probs[rows, :])
        object.__setattr__(part, "labels", self.labels)
        return part

    def __repr__(self) -> str:
        names = "" if self.labels is None else f", labels={self.labels}"
        return f"<Bernoulli: {how_many(len(self), 'prediction')} of {how_many(self.n_labels, 'label')}{names}>"

    @property
    def n_labels(self) -> int:
        """k, the number of labels."""
        return int(self.probs.shape[1])

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels as text; the column numbers where none were given."""
        return names_of(range(self.n_labels) if self.labels is None else self.labels)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Zeros and ones, ``(n, k)``."""
        y = as_array(y_true, "y_true")
        check_not_empty(y, "y_true")
        y = y[:, None] if y.ndim == 1 else y
        if y.ndim != 2 or y.shape[1] != self.n_labels:
            raise InputError(f"y_true must be (n, {self.n_labels}) zeros and ones; got shape {tuple(y.shape)}")
        if not is_integer(y):
            raise InputError(f"y_true must be integer zeros and ones; got dtype {y.dtype}: use y_true.astype(int)")
        xp = namespace(y)
        if y.dtype == xp.bool:
            return xp.astype(y, xp.uint8)
        low, high = int(xp.min(y)), int(xp.max(y))
        if low < 0 or high > 1:
            raise InputError(f"y_true must be zeros and ones; found {low if low < 0 else high}")
        return y

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Zeros and ones, ``(size, n, k)``."""
        return (rng.random((size, *self.probs.shape)) < self._host).view(np.uint8)

    @cached_property
    def _host(self) -> np.ndarray:
        return to_numpy(self.probs).astype(np.float64)

    def log_prob(self, targets: Array) -> Array:
        """Log probability of each row's labels together."""
        p = np.where(to_numpy(targets) == 1, self._host, 1 - self._host)
        with np.errstate(divide="ignore"):
            return np.log(p).sum(axis=-1)

    @property
    def mean(self) -> Array:
        """The probabilities, ``(n, k)``."""
        return self.probs

    @property
    def std(self) -> Array:
        """``sqrt(p (1 - p))``, ``(n, k)``."""
        return (self.probs * (1 - self.probs)) ** 0.5

    def squared_error(self, targets: Array) -> Array:
        """Mean over labels of ``(p - y)^2``."""
        return ((self._host - to_numpy(targets)) ** 2).mean(axis=-1)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three labels, uniform probabilities."""
        return cls(rng.random((n, 3)))
