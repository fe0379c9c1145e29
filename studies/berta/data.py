"""The synthetic data of Berta et al. (2026), bit for bit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import softmax

from calibrant.lab import GLM, Diagonal, Shifted

SIZES = (200, 264, 350, 462, 612, 809, 1069, 1414, 1870, 2473, 3270, 4324, 5719, 7562, 10_000)
"""Rows of the data sets, ``geomspace(200, 10000, 15)``, drawn one after the other."""

RUNS = 10
"""Published experiments, each with a seed of its own."""

CONCENTRATION = 0.5
"""Of the beta and Dirichlet distributions of predictions, which puts them near the ends."""

TRUTH_ROWS = 100_000
"""Rows over which each experiment averages the true error; drawn first."""

Random: TypeAlias = np.random.RandomState | np.random.Generator
"""The published data come from NumPy's legacy stream; others need not."""


@dataclass(frozen=True)
class Powers:
    """Proportional to ``p^slope``: the truth of vectors of three and more classes.

    >>> Powers(2.0)(np.array([[0.2, 0.2, 0.6]])).round(4)
    array([[0.0909, 0.0909, 0.8182]])
    """

    slope: float

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """The true probabilities where p ``(n, k)`` was predicted."""
        return p if self.slope == 1 else softmax(self.slope * np.log(p), axis=1)


@dataclass(frozen=True)
class Scenario:
    """Predictions near the ends of the simplex, and what is true where p was predicted.

    >>> SCENARIOS["over-confident, 2 classes"].draw(3, np.random.RandomState(0))[0]
    array([1, 0, 1])
    """

    n_classes: int
    true: Callable[[np.ndarray], np.ndarray]

    @property
    def norm(self) -> int:
        """The published error: L1 of the probability of class 1, L2 of vectors."""
        return 1 if self.n_classes == 2 else 2

    @property
    def is_calibrated(self) -> bool:
        """Whether what was predicted is true."""
        return self.true in (Diagonal(), Powers(1.0))

    def predictions(self, n: int, rng: Random) -> np.ndarray:
        """Probabilities of class 1 ``(n,)``, or vectors ``(n, k)``."""
        if self.n_classes == 2:
            return rng.beta(CONCENTRATION, CONCENTRATION, n)
        return rng.dirichlet(np.full(self.n_classes, CONCENTRATION), n)

    def draw(self, n: int, rng: Random) -> tuple[np.ndarray, np.ndarray]:
        """Labels and predictions of n rows."""
        p = self.predictions(n, rng)
        if self.n_classes == 2:
            return rng.binomial(1, self.true(p)), p
        return np.array([rng.multinomial(1, row).argmax() for row in self.true(p)]), p

    def error(self, p: np.ndarray) -> float:
        """The true error, averaged over predictions."""
        gap = np.abs(self.true(p) - p)
        return float(gap.mean() if self.n_classes == 2 else np.sqrt((gap**2).sum(axis=1)).mean())

    def stream(self, seed: int) -> tuple[np.random.RandomState, float]:
        """The stream of one experiment where its data sets begin, and the true error from the rows before them."""
        rng = np.random.RandomState(seed)
        if self.n_classes > 2:
            self.predictions(TRUTH_ROWS, rng)  # there the error is L1
        return rng, self.error(self.predictions(TRUTH_ROWS, rng))


SCENARIOS = {
    "calibrated, 2 classes": Scenario(2, Diagonal()),
    "over-confident, 2 classes": Scenario(2, GLM("logit", "logit", 0.3, 0.4)),
    "under-confident, 2 classes": Scenario(2, GLM("logit", "logit", 1.0, 4.0)),
    "shifted, 2 classes": Scenario(2, Shifted(0.02)),
    **{
        f"{name}, {k} classes": Scenario(k, Powers(slope))
        for k in (3, 10)
        for name, slope in (("calibrated", 1.0), ("over-confident", 0.3), ("under-confident", 2.0))
    },
}


def data_sets(
    scenario: Scenario, seed: int, sizes: Sequence[int] = SIZES
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Size, labels and predictions of each data set of an experiment; other sizes in between are drawn and left out.

    >>> [(n, int(y.sum())) for n, y, p in data_sets(SCENARIOS["calibrated, 2 classes"], 0, (200, 350))]
    [(200, 110), (350, 172)]
    """
    rng, _ = scenario.stream(seed)
    for n in SIZES[: SIZES.index(max(sizes)) + 1]:
        y, p = scenario.draw(n, rng)
        if n in sizes:
            yield n, y, p


@cache
def truth(name: str, seed: int = 0, runs: int = RUNS) -> float:
    """The true error of a scenario: the mean of those of its experiments.

    >>> round(truth("shifted, 2 classes"), 8)
    0.01879982
    """
    return float(np.mean([SCENARIOS[name].stream(s)[1] for s in range(seed, seed + runs)]))
