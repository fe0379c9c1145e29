"""Claims of a problem in groups of equally many, and which groups stand out."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant.estimators.binning import EqualMass
from calibrant.reports.class_problem import ClassProblem, event_claims
from calibrant.reports.leaning import Cells

MOST_GROUPS, GROUP_ROWS = 15, 20
"""How many groups there are at most, and how many rows make one."""

STANDS_OUT = 3.0
"""Standard errors from which a group of claims stands out: one of fifteen would by chance in 4 % of cases."""

NEIGHBOUR = 1.5
"""Standard errors from which a group beside one that stands out belongs to it."""


@dataclass(frozen=True, eq=False)
class ClaimGroups:
    """All claims in one line, what came true of them, their weights, the group of each, and what the groups show."""

    probability: np.ndarray
    happened: np.ndarray
    weights: np.ndarray | None
    group: np.ndarray
    cells: Cells

    @classmethod
    def of(cls, problem: ClassProblem) -> "ClaimGroups":
        """The claims of the report's events."""
        claimed, happened = event_claims(problem)
        weights = None if problem.weights is None else np.repeat(problem.weights, claimed.shape[1])
        return cls.along(claimed.reshape(-1), happened.reshape(-1), weights)

    @classmethod
    def along(cls, probability: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> "ClaimGroups":
        """Claims of any event."""
        count = min(MOST_GROUPS, max(2, len(probability) // GROUP_ROWS))
        bins = EqualMass(count).bins(probability, weights)
        group = bins.of_rows(probability, slice(None))
        return cls(probability, happened, weights, group, Cells.of(probability, happened, weights, group, len(bins)))

    def run(self) -> slice | None:
        """The one run of groups that stand out on the same side, with their neighbours that lean to it."""
        z = self.cells.z
        out = np.flatnonzero(np.abs(z) > STANDS_OUT)
        if not len(out):
            return None
        leaning = np.sign(z[out[0]]) * z
        start, stop = int(out[0]), int(out[-1]) + 1
        if (leaning[start:stop] <= 0).any():
            return None
        while start > 0 and leaning[start - 1] > NEIGHBOUR:
            start -= 1
        while stop < len(z) and leaning[stop] > NEIGHBOUR:
            stop += 1
        return slice(start, stop)


def bound(looks: int) -> float:
    """Standard errors that the largest of so many exceeds by chance in 5 % of cases at most.

    >>> round(bound(1), 2), round(bound(100), 2)
    (1.96, 3.48)
    """
    return float(-ndtri(0.025 / looks))
