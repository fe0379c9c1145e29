"""The problem of a report on class probabilities, and the tail of its claims that is furthest off."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.binned.tail_scan import TailScan
from calibrant.estimators.cluster_skewness import ClusterSkewness
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.lenses.class_lenses import Lens, TopLabel, default_lens
from calibrant.reports.core.problem import ReportProblem


@dataclass(frozen=True, eq=False)
class ClassProblem(ReportProblem):
    """Probabilities of classes, or of several labels."""

    predictions: Categorical | Bernoulli

    @property
    def kind(self) -> Literal["binary", "multi-class", "multi-label"]:
        """What is predicted."""
        if isinstance(self.predictions, Bernoulli):
            return "multi-label"
        return "multi-class" if self.predictions.n_classes > 2 else "binary"

    @property
    def lens(self) -> Lens:
        """The events that the report is about."""
        return default_lens(self.predictions)

    @property
    def error(self) -> ECE:
        """The error of those events."""
        return ECE(EqualMass(15), lens=self.lens)

    @cached_property
    def alike(self) -> float:
        """Of the event, of the favoured class, or of all labels."""
        assert self.clusters is not None
        return ClusterSkewness.of(to_numpy(self.targets), self.predictions, self.weights, self.clusters).correlation

    def means(self) -> tuple[float, float]:
        """Mean probability of the events, and how often they happened."""
        return means_of(*event_claims(self), self.weights)

    @cached_property
    def kernel_error(self) -> SKCE | None:
        """That of all classes at once; labels have no common one."""
        return super().kernel_error if isinstance(self.predictions, Categorical) else None

    @property
    def kernel_width(self) -> int:
        """One number per class, where there are more than two."""
        return self.predictions.n_classes if self.kind == "multi-class" else 0  # type: ignore[union-attr]


def event_claims(problem: ClassProblem) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the report's events, ``(n, events)``, and whether they happened."""
    events = problem.lens.events(problem.predictions)
    probability = np.stack([event.probability for event in events], axis=1)
    return probability, np.stack([event.observed(problem.targets) for event in events], axis=1)


def claims(problem: ClassProblem) -> tuple[np.ndarray, np.ndarray]:
    """The probability of what the model favours, and whether it happened: ``(n,)``, or ``(n, k)`` for labels."""
    if isinstance(problem.predictions, Bernoulli):
        p, y = to_numpy(problem.predictions.probs), to_numpy(problem.targets)
        return np.maximum(p, 1 - p), (p > 0.5) == (y == 1)
    event = TopLabel().events(problem.predictions)[0]
    return event.probability, event.observed(problem.targets)


def means_of(probability: np.ndarray, observed: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """Mean claim and mean outcome."""
    predicted, seen = (x.reshape(len(x), -1).mean(axis=1) for x in (probability, observed))
    return float(np.average(predicted, weights=weights)), float(np.average(seen, weights=weights))


@dataclass(frozen=True)
class WorstTail:
    """Claims above a threshold, or up to it: standard errors between claims and outcomes, means, and share of all weight."""

    is_upper: bool
    threshold: float
    z: float
    predicted: float
    observed: float
    share: float

    @classmethod
    def of(cls, problem: ClassProblem, lens: Lens) -> "WorstTail":
        """Of the events of a lens."""
        table = TailScan(lens).estimate(problem.targets, problem.predictions, problem.weights).table
        assert table is not None
        worst = int(np.argmax(np.abs(table["score"])))
        weight, predicted, observed = (float(table[key][worst]) for key in ("weight", "predicted", "observed"))
        return cls(
            bool(table["side"][worst] == "above"),
            float(table["threshold"][worst]),
            float(table["score"][worst]),
            predicted / weight,
            observed / weight,
            weight / float(table["weight"].max()),
        )

    def holds(self, probability: np.ndarray) -> np.ndarray:
        """Which claims lie in it."""
        return probability > self.threshold if self.is_upper else probability <= self.threshold
