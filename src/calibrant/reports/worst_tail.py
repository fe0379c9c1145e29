"""The tail of the claims that is furthest off."""

from dataclasses import dataclass

import numpy as np

from calibrant.estimators.tail_scan import TailScan
from calibrant.lenses import Lens
from calibrant.reports.class_problem import ClassProblem


@dataclass(frozen=True)
class WorstTail:
    """Claims above a threshold, or up to it: standard errors between claims and outcomes, means, and share of all weight."""

    is_upper: bool
    threshold: float
    z: float
    claimed: float
    happened: float
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
