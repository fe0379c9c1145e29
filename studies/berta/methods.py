"""The estimates that Berta et al. (2026) compare in figures 1 and 3, and those of this library."""

from collections.abc import Callable, Iterator

import numpy as np

from calibrant import ECE, EqualMass, Variational
from calibrant.estimators import KMeans, Lp
from calibrant.recalibration import Isotonic, OneVsRest, Recalibrator
from studies.berta.data import Scenario

BINS, FOLDS = 15, 5
"""Bins of equal mass for two classes, cells of k-means for more, where the paper speaks of 30 and its numbers are those of
15; and parts of the data that are held out in turn."""


def bins(scenario: Scenario, y: np.ndarray, p: np.ndarray, seed: int) -> float:
    """The binned error of two classes; of more, the mean distance of frequencies and mean predictions in cells."""
    if scenario.n_classes == 2:
        return float(ECE(EqualMass(BINS))(y, p))
    cell = KMeans(BINS, seed).cells(p)
    residual = np.eye(scenario.n_classes)[y] - p
    sums = np.stack([np.bincount(cell, weights=column) for column in residual.T])
    return float(np.sqrt((sums**2).sum(axis=0)).sum() / len(y))


def isotonic_in_sample(scenario: Scenario, y: np.ndarray, p: np.ndarray, _: int) -> float:
    """Isotonic regression, tried on the rows that it was fitted on."""
    return float(Variational(Lp(scenario.norm), _isotonic(scenario), in_sample=True)(y, p))


def isotonic(scenario: Scenario, y: np.ndarray, p: np.ndarray, seed: int) -> float:
    """Isotonic regression, tried on rows held out, in the folds of the paper."""
    return cross_fitted(_isotonic(scenario), scenario, y, p, seed)


def cross_fitted(recalibrator: Recalibrator, scenario: Scenario, y: np.ndarray, p: np.ndarray, seed: int) -> float:
    """What a recalibrator finds on rows held out, in the folds of the paper."""
    means = []
    for held in _folds(len(y), seed):
        learn = np.setdiff1d(np.arange(len(y)), held)
        g = recalibrator.fit(y[learn], p[learn], folds=0)(p[held])
        means.append(_removed(scenario, y[held], p[held], g).mean())
    return float(np.mean(means))


def soft_sign(scenario: Scenario, y: np.ndarray, p: np.ndarray, seed: int) -> float:
    """The default of this library."""
    return float(Variational(Lp(scenario.norm), seed=seed)(y, p))


def hard_sign(scenario: Scenario, y: np.ndarray, p: np.ndarray, seed: int) -> float:
    """The same with the direction itself, whether it is known well or not."""
    return float(Variational(Lp(scenario.norm), sign="hard", seed=seed)(y, p))


METHODS: dict[str, Callable[[Scenario, np.ndarray, np.ndarray, int], float]] = {
    "bins": bins,
    "isotonic, in sample": isotonic_in_sample,
    "isotonic": isotonic,
    "soft sign": soft_sign,
    "hard sign": hard_sign,
}


def _isotonic(scenario: Scenario) -> Recalibrator:
    return Isotonic() if scenario.n_classes == 2 else OneVsRest(Isotonic())


def _folds(n: int, seed: int) -> Iterator[np.ndarray]:
    """Rows held out, fold by fold: one shuffle, cut into parts of which the first are the larger."""
    order = np.arange(n)
    np.random.RandomState(seed).shuffle(order)
    yield from np.array_split(order, FOLDS)


def _removed(scenario: Scenario, y: np.ndarray, p: np.ndarray, g: np.ndarray) -> np.ndarray:
    """``<grad ||g - p||, y - p>`` of each row."""
    if scenario.n_classes == 2:
        return np.sign(g - p) * (y - p)
    return Lp(scenario.norm).removed(np.eye(scenario.n_classes)[y], p, g)
