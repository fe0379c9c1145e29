"""Rows on which recalibrators are tried: a model that is too sure of itself, and awkward ones."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.laplace import Laplace
from calibrant.distributions.normal import Normal


@dataclass(frozen=True, eq=False)
class Problem:
    """Targets and predictions of as many rows."""

    y: np.ndarray
    predictions: Distribution

    def __getitem__(self, rows: np.ndarray) -> "Problem":
        return Problem(self.y[rows], self.predictions[rows])

    @property
    def arrays(self) -> list[np.ndarray]:
        """What the predictions are made of."""
        if isinstance(self.predictions, Categorical):
            return [to_numpy(self.predictions.matrix)]
        values: list[Any] = [getattr(self.predictions, part.name) for part in fields(self.predictions)]  # type: ignore[arg-type]
        return [to_numpy(value) for value in values if isinstance(value, np.ndarray)]

    def single(self) -> "Problem":
        """The predictions in single precision."""
        parts = [part.astype(np.float32) for part in self.arrays]
        return Problem(self.y, type(self.predictions)(*parts))


def drawn(rng: np.random.Generator, on: int | type[Distribution], n: int) -> Problem:
    """Predictions that are too sure: probabilities that should be nearer to each other, scales that should be larger."""
    if isinstance(on, int):
        truth = rng.dirichlet(np.ones(on), n)
        y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        return Problem(y, Categorical(truth**2 / (truth**2).sum(axis=1, keepdims=True)))
    predictions = on.example(rng, n)
    y = predictions.sample(rng, 2)
    return Problem(y[0] + (y[1] - y[0]) * 1.5, predictions)


def awkward(rng: np.random.Generator, on: int | type[Distribution]) -> dict[str, Problem]:
    """Rows that other rows are not like, by name."""
    return _of_classes(rng, on) if isinstance(on, int) else _of_numbers(rng, on)


def _of_classes(rng: np.random.Generator, k: int) -> dict[str, Problem]:
    p, y = rng.dirichlet(np.ones(k), 60), rng.integers(k, size=60)
    best = p.argmax(axis=1)
    sure = np.eye(k)[y]
    mixed = np.where(np.arange(60)[:, None] % 3 == 0, sure, p)
    rare = np.where(np.arange(60) == 7, k - 1, y % (k - 1)) if k > 2 else np.where(np.arange(60) == 7, 1, 0)
    rows = {
        "separable": (best, p),
        "separable the wrong way": ((best + 1) % k, p),
        "one class only": (np.zeros(60, dtype=np.int64), p),
        "a class of a single row": (rare, p),
        "constant predictions": (y, np.tile(p[:1], (60, 1))),
        "even predictions": (y, np.full((60, k), 1 / k)),
        "zeros and ones": (y, mixed),
        "nothing but zeros and ones": (np.where(np.arange(60) % 10 == 0, best, y), sure),
        "a class that is never possible": (y, _without(p)),
        "tiny probabilities": (y, np.where(p == p.max(axis=1, keepdims=True), 1 - 1e-15 * (k - 1), 1e-15)),
        "few values": (y, p[rng.integers(3, size=60)]),
        "two rows": (np.array([0, 1]), p[:2]),
    }
    return {name: Problem(targets, Categorical(probs)) for name, (targets, probs) in rows.items()}


def _without(p: np.ndarray) -> np.ndarray:
    """Probabilities of which the last is 0."""
    rest = p.copy()
    rest[:, -1] = 0
    return rest / rest.sum(axis=1, keepdims=True)


def _of_numbers(rng: np.random.Generator, family: type[Distribution]) -> dict[str, Problem]:
    predictions = family.example(rng, 60)
    y = predictions.sample(rng, 1)[0]
    centre = to_numpy(predictions.quantile(np.array([0.5])))[:, 0]
    return {
        "far off": Problem(1e3 * y, predictions),
        "all on one side": Problem(centre + np.abs(y - centre) + 1e-3, predictions),
        "targets at the centre": Problem(centre, predictions),
        "a constant target": Problem(np.full(60, 0.3), predictions),
        "equal rows": Problem(y, predictions[np.zeros(60, dtype=np.int64)]),
        "two rows": Problem(y[:2], predictions[:2]),
    }


def other_kinds(predictions: Distribution) -> Iterator[Distribution]:
    """Predictions that a map of these must refuse: other numbers of classes, and other families."""
    if isinstance(predictions, Categorical):
        k = predictions.n_classes
        yield from (Categorical(np.full((2, other), 1 / other)) for other in (k + 1, 2) if other != k)
        yield Normal([0.0], [1.0])
    else:
        yield Categorical([0.3, 0.4])
        yield Laplace([0.0], [1.0]) if isinstance(predictions, Normal) else Normal([0.0], [1.0])
