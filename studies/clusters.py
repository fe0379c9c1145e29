"""Rows that belong together: do tests and intervals with ``clusters=`` keep what they promise?

Calibrated predictions are drawn in worlds with 20, 50 and 200 clusters of 10 rows, or of 1 to 50, whose latent normal variables
are correlated by 0, .3 or .9 within a cluster, with predictions that are alike in a cluster or not. `AggregatedTest` should reject
at most 5 % of data sets; a refusal rejects nothing. Intervals of scores should hold the true score in 95 % of the data sets in
which they are stated. Where rows are independent after all, errors should be found nearly as often as without clusters.

Run ``python -m studies.clusters --keep FOLDER``; ``--family``, ``--clusters`` and ``--data-sets`` choose cells. Finished cells are
kept in the folder, so a run that was broken off goes on where it stopped. ``--write`` puts all kept cells into
docs/studies/clusters.md. Leaves with code 1 where a level, or an interval, does not hold.
"""

import json
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from calibrant import CRPS, AggregatedTest, Brier, Categorical, Ensemble, InputError, Normal
from calibrant.results import Table

LEVEL, CERTAINTY = 0.05, 0.999
"""The share of data sets that may fail, and of studies like this one that keep to the bound."""

FAMILIES = ("binary", "confident", "rare", "ten classes", "normal", "ensemble")
COUNTS = (20, 50, 200)

PAGE = Path(__file__).parents[1] / "docs" / "studies" / "clusters.md"

SCORES = {"normal": CRPS(), "ensemble": CRPS()}
"""Whose intervals are tried; of classes Brier's."""

TRUTHS = {
    "binary": 1 / 6,
    "confident": 5 / 42,
    "rare": 49 / 2550,
    "ten classes": 0.675,
    "normal": 1.25 / np.pi**0.5,
    "ensemble": 0.9 * 1.25 / np.pi**0.5,
}
"""Mean scores in endless data: ``ab / (a + b)(a + b + 1)`` of Beta laws, ``1 - (a + 1) / (10 a + 1)`` of Dirichlet's, and the
spread, 1.25 on average, over the root of pi; ten members have nine tenths of it."""


@dataclass(frozen=True)
class ClusterWorld:
    """Calibrated predictions of one family, whose outcomes depend on each other within clusters.

    Clusters have 10 rows each, or, ``unequal``, 1 to 50 whose logarithms are uniform. A latent normal variable per row, correlated
    by ``correlation`` within a cluster, gives the quantile at which the outcome lies in its prediction. Where predictions are
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


def worlds(families: Sequence[str] = FAMILIES, counts: Sequence[int] = COUNTS) -> Iterator[ClusterWorld]:
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


def misses(world: ClusterWorld, n_sets: int, seed: int = 0) -> tuple[int, int]:
    """In how many data sets the interval of the score misses the truth, and in how many there is none."""
    score, truth = SCORES.get(world.family, Brier()), TRUTHS[world.family]
    missed = withheld = 0
    for child in np.random.SeedSequence([seed, *world_number(world)]).spawn(n_sets):
        y, p, clusters = world.draw(np.random.default_rng(child))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "class 0 never occurs")
            found = score(y, p, clusters=clusters)
        if found.has_interval:
            low, high = found.confidence_interval()
            missed += not low <= truth <= high
        else:
            withheld += 1
    return missed, withheld


SURER = {"binary": 1.2, "confident": 1.15, "ten classes": 1.13, "normal": 1.08, "ensemble": 1.15}
"""By how much predictions are too sure where power is measured, or too timid."""


def changed(predictions: Any, power: float) -> Any:
    """Probabilities to this power; forecasts of numbers whose spread is divided by it.

    >>> changed(np.array([0.8]), 2.0).round(4), changed(Normal([0.0], 1.0), 2.0).scale
    (array([0.9412]), array([0.5]))
    """
    if isinstance(predictions, Normal):
        return Normal(predictions.loc, predictions.scale / power)
    if isinstance(predictions, Ensemble):
        middle = predictions.members.mean(axis=1, keepdims=True)
        return Ensemble(middle + (predictions.members - middle) / power)
    if isinstance(predictions, Categorical):
        raised = predictions.probs**power
        return Categorical(raised / raised.sum(axis=1, keepdims=True))
    raised = predictions**power
    return raised / (raised + (1 - predictions) ** power)


def found_wrong(family: str, is_surer: bool, n_sets: int, seed: int = 1) -> dict[str, Any]:
    """How often wrong predictions of 2,000 independent rows are rejected, alone and in 200 clusters of ten."""
    world, test = ClusterWorld(family, 200), AggregatedTest(n_resamples=199)
    power = SURER[family] if is_surer else 1 / SURER[family]
    alone = together = 0
    for child in np.random.SeedSequence([seed, *world_number(world), is_surer]).spawn(n_sets):
        y, p, clusters = world.draw(np.random.default_rng(child))
        wrong = changed(p, power)
        alone += test(y, wrong).pvalue <= LEVEL
        together += test(y, wrong, clusters=clusters).pvalue <= LEVEL
    return {"family": family, "is_surer": is_surer, "data sets": n_sets, "alone": int(alone), "together": int(together)}


def judged(world: ClusterWorld, n_sets: int) -> dict[str, Any]:
    """How often the aggregated test rejects, and the interval of a score misses."""
    rejected, refused = rejections(AggregatedTest(n_resamples=199), world, n_sets)
    missed, withheld = misses(world, n_sets)
    most, most_missed = (int(binom.ppf(CERTAINTY, count, LEVEL)) for count in (n_sets, n_sets - withheld))
    return {
        **asdict(world),
        "data sets": n_sets,
        "rejected": int(rejected),
        "refused": refused,
        "missed": int(missed),
        "withheld": withheld,
        "holds": bool(rejected <= most and missed <= most_missed),
    }


def kept(folder: Path, world: ClusterWorld, n_sets: int) -> dict[str, Any]:
    """A cell, from the file of an earlier run with at least as many data sets where there is one."""
    return _kept(folder / f"{'-'.join(map(str, world_number(world)))}.json", n_sets, partial(judged, world))


def _kept(path: Path, n_sets: int, make: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """What the file holds, or what is made now."""
    if path.exists() and (found := json.loads(path.read_text("utf-8")))["data sets"] >= n_sets:
        return dict(found)
    cell = make(n_sets)
    path.write_text(json.dumps(cell), "utf-8")
    return cell


def table(cells: Sequence[dict[str, Any]], what: str, silent: str) -> Table:
    """A row a world, a column a number of clusters: the share of the data sets in which something is said, and of the others."""
    rows: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = {}
    for cell in cells:
        sizes, predictions = "1 to 50" if cell["unequal"] else "10", "alike" if cell["alike"] else "different"
        rows.setdefault((cell["family"], cell["correlation"], predictions, sizes), {})[cell["count"]] = cell
    names = ("family", "correlation", "predictions", "rows per cluster")
    columns: dict[str, Any] = {name: [str(key[i]) for key in rows] for i, name in enumerate(names)}
    for count in sorted({cell["count"] for cell in cells}):
        columns[f"{count} clusters"] = [_share(row.get(count), what, silent) for row in rows.values()]
    return Table(columns)


def _share(cell: dict[str, Any] | None, what: str, silent: str) -> str:
    """Of all data sets what is rejected, as a refusal rejects nothing; of intervals that are stated what misses."""
    if cell is None:
        return "not run"
    if cell[silent] == cell["data sets"]:
        return silent
    of = cell["data sets"] - (cell[silent] if what == "missed" else 0)
    more = f" ({100 * cell[silent] / cell['data sets']:.0f} % {silent})" if cell[silent] else ""
    return f"{100 * cell[what] / of:.1f} %{more}"


def table_of_power(cells: Sequence[dict[str, Any]]) -> Table:
    """A row a family and a kind of error."""
    return Table(
        {
            "family": [cell["family"] for cell in cells],
            "predictions are": ["too sure" if cell["is_surer"] else "too timid" for cell in cells],
            "data sets": [f"{cell['data sets']:,}" for cell in cells],
            "rows alone": [f"{100 * cell['alone'] / cell['data sets']:.0f} %" for cell in cells],
            "200 clusters": [f"{100 * cell['together'] / cell['data sets']:.0f} %" for cell in cells],
        }
    )


def page(cells: Sequence[dict[str, Any]], powers: Sequence[dict[str, Any]] = ()) -> str:
    """The page of the documentation."""
    title, _, text = (__doc__ or "").strip().partition("\n\n")
    sets = Table(
        {
            "family": list(FAMILIES),
            **{f"{count} clusters": [_sets(cells, family, count) for family in FAMILIES] for count in COUNTS},
        }
    )
    false = sum(not cell["holds"] for cell in cells)
    seen = sorted({cell["data sets"] for cell in cells}, reverse=True)
    bounds = ", ".join(f"{100 * float(binom.ppf(CERTAINTY, n, LEVEL)) / n:.1f} % of {n:,}" for n in seen)
    return f"""# {title.rstrip("?").replace("``", "`")}?

{text.split("Run ``python")[0].strip()}

Two classes have probabilities from Beta(1, 1), confident ones from Beta(5, 1), rare events from Beta(1, 49), ten classes from
Dirichlet(.3); ensembles have ten members. Repeat by `python -m studies.clusters --keep FOLDER --write`. The bound allows for what
99.9 % of such studies would show: {bounds} data sets.

Of {len(cells)} worlds {false or "none"} {"are" if false > 1 else "is"} beyond it. Data sets in each world of a
family, and how many of all were rejected:

{sets.to_markdown()}

## Levels

How often `AggregatedTest()(..., clusters=...)` rejects calibrated predictions at 5 %, and refuses to say.

{table(cells, "rejected", "refused").to_markdown()}

## Intervals of scores

How often the 95 % interval of `Brier()`, of numbers of `CRPS()`, misses the true score where it is stated.

{table(cells, "missed", "withheld").to_markdown()}

## Power

How often wrong predictions of 2,000 independent rows are rejected, as independent rows and as 200 clusters of ten.

{table_of_power(powers).to_markdown() if powers else "not run"}
"""


def _sets(cells: Sequence[dict[str, Any]], family: str, count: int) -> str:
    """How many data sets there are in each world, and how often they were rejected in all worlds together."""
    found = [cell for cell in cells if (cell["family"], cell["count"]) == (family, count)]
    if not found:
        return "not run"
    sets = " or ".join(f"{n:,}" for n in sorted({cell["data sets"] for cell in found}))
    return f"{sets}; {100 * sum(c['rejected'] for c in found) / sum(c['data sets'] for c in found):.1f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, print, and leave with 1 where something does not hold."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data-sets", type=int, default=400)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--clusters", type=int, action="append")
    parser.add_argument("--keep", type=Path, default=Path("build/clusters"), help="folder for finished cells")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--power", type=int, default=0, metavar="DATA_SETS", help="measure power, too, in so many")
    options = parser.parse_args(arguments)
    options.keep.mkdir(parents=True, exist_ok=True)
    chosen = [
        kept(options.keep, w, options.data_sets) for w in worlds(options.family or FAMILIES, options.clusters or COUNTS)
    ]
    for family, is_surer in product(
        [f for f in options.family or FAMILIES if f in SURER and options.power], (True, False)
    ):
        made = partial(found_wrong, family, is_surer)
        _kept(options.keep / f"power-{FAMILIES.index(family)}-{is_surer:d}.json", options.power, made)
    powers = [json.loads(path.read_text("utf-8")) for path in sorted(options.keep.glob("power-*.json"))]
    print(page(chosen, powers))
    if options.write:
        found = [options.keep / f"{'-'.join(map(str, world_number(world)))}.json" for world in worlds()]
        PAGE.write_text(page([json.loads(path.read_text("utf-8")) for path in found if path.exists()], powers), "utf-8")
    return int(not all(cell["holds"] for cell in chosen))


if __name__ == "__main__":
    sys.exit(main())
