"""What every family of predictive distributions provides."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from calibrant._validate import InputError
from calibrant.typing import Array, ArrayLike


class Distribution(ABC):
    """A batch of n predictions, each a probability distribution of that row's target.

    A family is one file: a frozen dataclass that holds arrays with rows first, and the methods below. Targets are
    arrays whose last axes are those of one batch, so a stack of redrawn targets ``(size, n, ...)`` goes wherever one
    vector of targets goes.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, rows: slice | Array) -> Self:
        """The predictions of these rows (a slice, or an array of row numbers)."""

    @abstractmethod
    def as_targets(self, y_true: ArrayLike) -> Array:
        """The caller's targets in the form this family computes with; refuses what cannot be one."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """``size`` independent draws of all n targets, ``(size, n, ...)``."""

    @classmethod
    @abstractmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """A valid random batch, for conformance checks and simulations."""

    def log_prob(self, targets: Array) -> Array:
        """Log density (or mass) of each row's target."""
        raise InputError(f"{type(self).__name__} has no log_prob ({targets.shape[-1]} targets given)")
