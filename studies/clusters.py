"""Rows that belong together: how often tests with ``clusters=`` reject calibrated predictions, and what they cost in power.

``python -m studies.clusters`` draws calibrated data sets in worlds with 20, 50 and 200 clusters, equal and very unequal ones,
whose latent normal variables are correlated by 0, .3 or .9 within a cluster, with predictions that are alike in a cluster or
not. A refusal is counted as such: it never rejects.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from calibrant import AggregatedTest, Categorical, Ensemble, InputError, Normal
from calibrant.results import Table

LEVEL = 0.05

FAMILIES = ("binary", "confident", "rare", "ten classes", "normal", "ensemble")


@dataclass(frozen=True)
class ClusterWorld:
    """Calibrated predictions of one family, whose outcomes depend on each other within clusters.

    Clusters have 10 rows each, or, ``unequal``, 1 to 50 whose logarithms are uniform. A latent normal variable a row, correlated by
    ``correlation`` within a cluster, gives the quantile at which the outcome lies in its prediction. Where predictions are
    ``alike`` those of a cluster are the same.

    >>> y, p, clusters = ClusterWorld("binary", 20).draw(np.random.default_rng(0))
    >>> len(y), len(p), len(np.unique(clusters))
    (200, 200, 20)
    """

    family: str
    count: int
    correlation: float = 0.0
    alike: bool = False
    unequal: bool = False

    def sizes(self, rng: np.random.Generator) -> np.ndarray:
        """How many rows each cluster has."""
        if not self.unequal:
            return np.full(self.count, 10)
        return np.exp(rng.uniform(0, np.log(51), self.count)).astype(np.intp)

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, Any, np.ndarray]:
        """Targets, predictions and clusters of one data set."""
        clusters = np.repeat(np.arange(self.count), self.sizes(rng))
        n, r = len(clusters), self.correlation
        rows = clusters if self.alike else np.arange(n)
        common, own = rng.normal(size=self.count)[clusters], rng.normal(size=n)
        z = np.sqrt(r) * common + np.sqrt(1 - r) * own
        return *_outcomes(self.family, rows, z, rng), clusters


def _outcomes(family: str, rows: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Outcomes at the quantiles of the latent variables, and predictions, of which row i has number ``rows[i]``."""
    count = int(rows.max()) + 1
    if family in ("binary", "confident", "rare"):
        a, b = {"binary": (1, 1), "confident": (5, 1), "rare": (1, 49)}[family]
        p = rng.beta(a, b, count)[rows]
        return (ndtr(z) < p).astype(int), p
    if family == "ten classes":
        probs = rng.dirichlet(np.full(10, 0.3), count)[rows]
        below = np.cumsum(probs, axis=1)[:, :-1]
        return (ndtr(z)[:, None] >= below).sum(axis=1), Categorical(probs)
    loc, scale = rng.normal(size=count)[rows], rng.uniform(0.5, 2, count)[rows]
    if family == "normal":
        return loc + scale * z, Normal(loc, scale)
    members = np.sort(loc[:, None] + scale[:, None] * rng.normal(size=(count, 10))[rows], axis=1)
    return members[np.arange(len(z)), np.minimum((10 * ndtr(z)).astype(int), 9)], Ensemble(members)


def worlds(families: tuple[str, ...] = FAMILIES, counts: tuple[int, ...] = (20, 50, 200)) -> Iterator[ClusterWorld]:
    """All worlds of the study."""
    cases = ((0.0, False), (0.3, False), (0.3, True), (0.9, False), (0.9, True))
    for family, count, (r, alike), unequal in product(families, counts, cases, (False, True)):
        yield ClusterWorld(family, count, r, alike, unequal)


def rejections(
    test: Callable[..., Any], world: ClusterWorld, n_sets: int, seed: int = 0, *, with_clusters: bool = True
) -> tuple[int, int]:
    """In how many data sets the test rejects, and in how many it refuses."""
    rejected = refused = 0
    for child in np.random.SeedSequence([seed, *world_number(world)]).spawn(n_sets):
        y, p, clusters = world.draw(np.random.default_rng(child))
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "class 0 never occurs")
                rejected += test(y, p, **({"clusters": clusters} if with_clusters else {})).pvalue <= LEVEL
        except InputError:
            refused += 1
    return rejected, refused


def world_number(world: ClusterWorld) -> tuple[int, ...]:
    """What makes the seeds of a world its own."""
    return FAMILIES.index(world.family), world.count, int(100 * world.correlation), world.alike, world.unequal


def levels(n_sets: int, families: tuple[str, ...], counts: tuple[int, ...]) -> Table:
    """How often the aggregated test rejects in each world."""
    rows = []
    for world in worlds(families, counts):
        rejected, refused = rejections(AggregatedTest(n_resamples=199), world, n_sets)
        most = int(binom.ppf(0.999, n_sets, LEVEL))
        rows.append(
            {
                "family": world.family,
                "clusters": world.count,
                "unequal": world.unequal,
                "correlation": world.correlation,
                "alike": world.alike,
                "rejected": rejected / n_sets,
                "refused": refused / n_sets,
                "holds": rejected <= most,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def main(arguments: list[str] | None = None) -> int:
    """The table of levels; leaves with 1 where one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=400)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--clusters", type=int, action="append")
    options = parser.parse_args(arguments)
    table = levels(options.data_sets, tuple(options.family or FAMILIES), tuple(options.clusters or (20, 50, 200)))
    print(table)
    return int(not all(table["holds"]))


if __name__ == "__main__":
    sys.exit(main())
