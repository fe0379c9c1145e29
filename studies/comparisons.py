"""Which of two models is better calibrated, where both are wrong.

Two models that are equally badly calibrated, in different ways, should be told apart in at most 5 % of data sets; and intervals of
how far their errors lie apart should hold the truth in 95 %. Pairs of models are tried that err by the same amount in different
places, in different directions, with different sharpness, in one part or everywhere, and where events are rare; and pairs of
which one is better. Their errors in endless data are equal by symmetry, or made equal by choosing how wrong the second model is.

Run ``python -m studies.comparisons --keep FOLDER`` (a quarter of an hour on one core). Finished cells are kept in the folder, so a
run that was broken off goes on where it stopped. ``--write`` puts the tables into docs/studies/comparisons.md. Leaves with code 1
where models are told apart, or intervals miss, more often than chance allows.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri, softmax
from scipy.stats import binom

from calibrant import DebiasedECE, EqualMass, Normal, PairedDifference, TopLabel
from calibrant.estimators import PITError
from calibrant.results import Table, jsonable

LEVEL, CERTAINTY = 0.05, 0.999
"""The share of equal models that may be told apart, and of studies like this one that keep to the bound."""

PAGE = Path(__file__).parents[1] / "docs" / "studies" / "comparisons.md"

BINS = 15
BINNED = DebiasedECE(EqualMass(BINS))
TOP = DebiasedECE(EqualMass(BINS), lens=TopLabel())
PIT = PITError("cramer-von-mises")

N_ROWS_OF_TRUTH = 200_000
"""Rows, or quantiles, that stand for all."""

Pair = tuple[np.ndarray, Any, Any]
"""Targets, and what two models predict."""


def root(p: np.ndarray, truth: np.ndarray) -> float:
    """The root mean square gap of bins with as many rows each, with true frequencies.

    >>> round(root(np.linspace(0, 1, 1500), np.full(1500, 0.5)), 3)
    0.288
    """
    parts = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(np.sqrt(np.mean([(p[rows] - truth[rows]).mean() ** 2 for rows in parts])))


def root_of_pit(u: np.ndarray) -> float:
    """The root mean square gap between the distribution function of these PIT values and that of even ones."""
    levels = (np.arange(2_000) + 0.5) / 2_000
    return float(np.sqrt(np.mean((np.searchsorted(np.sort(u), levels, side="right") / len(u) - levels) ** 2)))


def matched(error: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an error is as large as another.

    >>> matched(lambda x: x * x, 0.25, 0.0, 1.0)
    0.5
    """
    return round(float(brentq(lambda x: error(x) - target, low, high, xtol=1e-7)), 6)


def log_odds(n: int, rng: np.random.Generator | None = None, spread: float = 1.5) -> np.ndarray:
    """True log-odds: drawn, or evenly spread quantiles."""
    return spread * (ndtri((np.arange(n) + 0.5) / n) if rng is None else rng.standard_normal(n))


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def averaged(z: np.ndarray) -> np.ndarray:
    """The probability given half of what there is to know: the log-odds have a normal rest of spread 1.2."""
    return np.asarray(expit(z[:, None] + 1.2 * NODES) @ WEIGHTS / WEIGHTS.sum())


@dataclass(frozen=True)
class Match:
    """Parameters of second models that make them as wrong as the first."""

    timid: float
    mildly_timid: float
    vague: float
    shift: float
    rare: float
    wide: float
    narrow: float
    a_bit_narrow: float

    @classmethod
    @cache
    def found(cls) -> "Match":
        """From models of endless data."""
        z = log_odds(N_ROWS_OF_TRUTH)
        q, even, rare = expit(z), (np.arange(N_ROWS_OF_TRUTH) + 0.5) / N_ROWS_OF_TRUTH, z / 1.5 - 4.2
        rng = np.random.default_rng(3)
        half, rest = 0.9 * rng.standard_normal(N_ROWS_OF_TRUTH), 1.2 * rng.standard_normal(N_ROWS_OF_TRUTH)
        seen = averaged(half)
        normal = ndtri(even)
        two_kinds = ndtr(normal / np.where(np.arange(N_ROWS_OF_TRUTH) % 2 == 0, 0.5, 1.0))
        return cls(
            timid=matched(lambda s: root(expit(s * z), q), root(expit(2 * z), q), 0.05, 0.95),
            mildly_timid=matched(lambda s: root(expit(s * z), q), root(expit(1.3 * z), q), 0.3, 0.99),
            vague=matched(
                lambda s: root(expit(s * logit(seen)), seen), root(expit(2 * (half + rest)), expit(half + rest)), 1, 8
            ),
            shift=matched(
                lambda d: root((even + d).clip(0, 1), even),
                root(np.where(even > 0.9, even - 0.3, even), even),
                0.001,
                0.3,
            ),
            rare=matched(lambda d: root(expit(rare - d), expit(rare)), root(expit(rare + 0.3), expit(rare)), 0.01, 5),
            wide=matched(lambda s: root_of_pit(ndtr(normal / s)), root_of_pit(ndtr(normal / 0.7)), 1.01, 6),
            narrow=matched(lambda s: root_of_pit(ndtr(normal / s)), root_of_pit(ndtr(normal - 0.2)), 0.2, 0.99),
            a_bit_narrow=matched(lambda s: root_of_pit(ndtr(normal / s)), root_of_pit(two_kinds), 0.2, 0.99),
        )


def of_two(n: int, rng: np.random.Generator, models: Callable[[np.ndarray], Sequence[np.ndarray]]) -> Pair:
    """Two models of the true log-odds, as the second and third row of what ``models`` gives; the first is the truth."""
    truth, a, b = models(log_odds(n, rng))
    return (rng.random(n) < truth).astype(int), a, b


def places(z: np.ndarray) -> Sequence[np.ndarray]:
    """Too sure below a half, or above."""
    return expit(z), expit(z * np.where(z < 0, 2.0, 1.0)), expit(z * np.where(z > 0, 2.0, 1.0))


def sloped(a: float, b: float) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    """Too sure above 1, too timid below."""
    return lambda z: (expit(z), expit(a * z), expit(b * z))


def spike(z: np.ndarray) -> Sequence[np.ndarray]:
    """Very wrong in the uppermost tenth, or a bit wrong everywhere; predictions are even."""
    q = ndtr(z / 1.5)
    return q, np.where(q > 0.9, q - 0.3, q), (q + Match.found().shift).clip(0, 1)


def too_rare(z: np.ndarray) -> Sequence[np.ndarray]:
    """Events of 2 %: odds too high, or too low."""
    rare = z / 1.5 - 4.2
    return expit(rare), expit(rare + 0.3), expit(rare - Match.found().rare)


def too_low(z: np.ndarray) -> Sequence[np.ndarray]:
    """Events of 2 %: right, or with less than half the odds."""
    rare = z / 1.5 - 4.2
    return expit(rare), expit(rare), expit(rare - 0.8)


def noisy(slope: float) -> Callable[[int, np.random.Generator], Pair]:
    """Both see the log-odds with noise of their own."""

    def drawn(n: int, rng: np.random.Generator) -> Pair:
        z = log_odds(n, rng)
        a, b = (expit(slope * (z + 0.5 * rng.standard_normal(n))) for _ in range(2))
        return (rng.random(n) < expit(z)).astype(int), a, b

    return drawn


def groups(n: int, rng: np.random.Generator) -> Pair:
    """Events of 2 %: each model has the odds of one half of the rows 2.7 times too high."""
    z, first = log_odds(n, rng, 1.0) - 4.2, rng.random(n) < 0.5
    return (rng.random(n) < expit(z)).astype(int), expit(z + np.where(first, 1, 0)), expit(z + np.where(first, 0, 1))


def sharpness(slope: float, vague: Callable[[], float]) -> Callable[[int, np.random.Generator], Pair]:
    """One knows all, the other half of it, and both are as sure as these slopes say."""

    def drawn(n: int, rng: np.random.Generator) -> Pair:
        half, rest = 0.9 * rng.standard_normal(n), 1.2 * rng.standard_normal(n)
        z = half + rest
        return (rng.random(n) < expit(z)).astype(int), expit(slope * z), expit(vague() * logit(averaged(half)))

    return drawn


def classes(slopes: tuple[float, float], own: float) -> Callable[[int, np.random.Generator], Pair]:
    """Ten classes: both see the scores with noise of their own, which makes them too sure."""

    def drawn(n: int, rng: np.random.Generator) -> Pair:
        z = 2 * rng.standard_normal((n, 10))
        reached = softmax(z, axis=1).cumsum(axis=1)
        y = (reached < rng.random((n, 1))).sum(axis=1).clip(0, 9)
        a, b = (softmax(s * (z + own * rng.standard_normal((n, 10))), axis=1) for s in slopes)
        return y, a, b

    return drawn


def normals(a: tuple[float, float], b: Callable[[], tuple[float, float]]) -> Callable[[int, np.random.Generator], Pair]:
    """Normal forecasts of targets with spread 1, off by these and with these spreads."""

    def drawn(n: int, rng: np.random.Generator) -> Pair:
        mean, (shift, scale), (other, spread) = rng.standard_normal(n), a, b()
        return mean + rng.standard_normal(n), Normal(mean + shift, scale), Normal(mean + other, spread)

    return drawn


def halves_of_numbers(spread: float) -> Callable[[int, np.random.Generator], Pair]:
    """Each forecast knows one of two summands; a spread of the root of 2 would be right."""

    def drawn(n: int, rng: np.random.Generator) -> Pair:
        left, right = rng.standard_normal((2, n))
        return left + right + rng.standard_normal(n), Normal(left, spread), Normal(right, spread)

    return drawn


def two_kinds(n: int, rng: np.random.Generator) -> Pair:
    """Half of the forecasts half as wide as they should be, or all a bit too narrow."""
    mean, y = rng.standard_normal((2, n))
    spread = np.where(rng.random(n) < 0.5, 0.5, 1.0)
    return mean + y, Normal(mean, spread), Normal(mean, Match.found().a_bit_narrow)


@dataclass(frozen=True)
class World:
    """Pairs of models, by which error they are compared, and how far apart their errors are: not, unless said."""

    kind: str
    name: str
    error: Any
    draw: Callable[[int, np.random.Generator], Pair]
    apart: Callable[[], float] | None = None


def two(name: str, models: Callable[[np.ndarray], Sequence[np.ndarray]], *, is_equal: bool = True) -> World:
    """A world of two classes, of which both models know the true log-odds."""

    def apart() -> float:
        truth, a, b = models(log_odds(N_ROWS_OF_TRUTH))
        return root(a, truth) - root(b, truth)

    return World("two classes", name, BINNED, lambda n, rng: of_two(n, rng, models), None if is_equal else apart)


def numbers(name: str, a: tuple[float, float], b: tuple[float, float]) -> World:
    """A world of normal forecasts whose errors are not equal."""

    def apart() -> float:
        normal = ndtri((np.arange(N_ROWS_OF_TRUTH) + 0.5) / N_ROWS_OF_TRUTH)
        first, second = (root_of_pit(ndtr((normal - shift) / scale)) for shift, scale in (a, b))
        return first - second

    return World("numbers", name, PIT, normals(a, lambda: b), apart)


def worlds() -> Iterator[World]:
    """All of them."""
    match = Match.found
    yield two("too sure below a half, or above", places)
    yield two("too sure, or too timid", lambda z: sloped(2.0, match().timid)(z))
    yield two("a bit too sure, or too timid", lambda z: sloped(1.3, match().mildly_timid)(z))
    yield two("wrong in a tenth, or a bit everywhere", spike)
    yield two("2 % events, odds too high or too low", too_rare)
    yield World("two classes", "2 % events, each wrong in one half", BINNED, groups)
    yield World("two classes", "too sure, each with its own noise", BINNED, noisy(2.0))
    yield World("two classes", "nearly calibrated, each with its own noise", BINNED, noisy(1.0))
    yield World("two classes", "too sure, one less sharp", BINNED, sharpness(2.0, lambda: match().vague))
    yield World("two classes", "calibrated, one less sharp", BINNED, sharpness(1.0, lambda: 1.0))
    yield two("calibrated, or too sure", sloped(1.0, 2.0), is_equal=False)
    yield two("too sure, or more so", sloped(1.3, 2.0), is_equal=False)
    yield two("2 % events, calibrated or too low", too_low, is_equal=False)
    yield World("ten classes", "too sure, each with its own noise", TOP, classes((1.5, 1.5), 0.5))
    yield World("ten classes", "nearly calibrated, each with its own noise", TOP, classes((0.9, 0.9), 0.5))
    yield World("numbers", "too narrow, or too wide", PIT, normals((0, 0.7), lambda: (0, match().wide)))
    yield World("numbers", "too high, or too low", PIT, normals((0.3, 1), lambda: (-0.3, 1)))
    yield World("numbers", "too high, or too narrow", PIT, normals((0.2, 1), lambda: (0, match().narrow)))
    yield World("numbers", "half of them very narrow, or all a bit", PIT, two_kinds)
    yield World("numbers", "too narrow, each with its own knowledge", PIT, halves_of_numbers(1.0))
    yield World("numbers", "calibrated, each with its own knowledge", PIT, halves_of_numbers(np.sqrt(2)))
    yield numbers("calibrated, or too narrow", (0, 1), (0, 0.8))
    yield numbers("too high, or more so", (0.1, 1), (0.4, 1))


def judged(world: World, n: int, data_sets: int, seed: int) -> dict[str, Any]:
    """In how many data sets the models are told apart, and the interval holds how far their errors lie apart."""
    rng, paired = np.random.default_rng(seed), PairedDifference(world.error)
    truth = 0.0 if world.apart is None else world.apart()
    stated, told, missed = 0, 0, 0
    for _ in range(data_sets):
        found = paired(*world.draw(n, rng))
        if found.withheld is None:
            stated += 1
            told += found.pvalue <= LEVEL
            missed += not found.interval.low <= truth <= found.interval.high
    allowed = binom.ppf(CERTAINTY, stated, LEVEL)
    is_false = missed > allowed or (world.apart is None and told > allowed)
    return {"kind": world.kind, "world": world.name, "n": n, "truth": truth, "is_equal": world.apart is None} | {
        "stated": stated,
        "told": int(told),
        "missed": int(missed),
        "is_false": bool(is_false),
    }


def kept(path: Path, world: World, n: int, data_sets: int, seed: int) -> dict[str, Any]:
    """A cell, from the file of an earlier run where there is one."""
    about = {"data_sets": data_sets, "seed": seed}
    if path.exists() and (found := json.loads(path.read_text("utf-8")))["about"] == about:
        return dict(found["cell"])
    cell = judged(world, n, data_sets, seed)
    path.write_text(json.dumps({"about": about, "cell": jsonable(cell)}), "utf-8")
    return cell


def table(cells: Sequence[dict[str, Any]], *, is_equal: bool) -> Table:
    """A row a world, a column a number of rows."""
    rows: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for cell in cells:
        if cell["is_equal"] == is_equal:
            rows.setdefault((cell["kind"], cell["world"]), {})[cell["n"]] = cell
    sizes = sorted({cell["n"] for cell in cells})
    columns: dict[str, Any] = {"problem": [kind for kind, _ in rows], "models": [name for _, name in rows]}
    if not is_equal:
        columns["apart"] = [f"{100 * abs(next(iter(row.values()))['truth']):.1f} points" for row in rows.values()]
    for n in sizes:
        columns[f"told apart, {n:,}"] = [_share(row[n], "told") for row in rows.values()]
    for n in sizes if not is_equal else ():
        columns[f"interval misses, {n:,}"] = [_share(row[n], "missed") for row in rows.values()]
    return Table(columns)


def _share(cell: dict[str, Any], what: str) -> str:
    return f"{100 * cell[what] / cell['stated']:.1f} %" if cell["stated"] else "withheld"


def page(cells: Sequence[dict[str, Any]], data_sets: int) -> str:
    """The page of the documentation."""
    title, _, text = (__doc__ or "").strip().partition("\n\n")
    false = sum(cell["is_false"] for cell in cells)
    limit = 100 * float(binom.ppf(CERTAINTY, data_sets, LEVEL)) / data_sets
    return f"""# {title.rstrip(".")}

{text.split("Run ``python")[0].strip()}

Errors are roots of mean square gaps, estimated from pairs of rows without bias: `PairedDifference(DebiasedECE())` for events and
confidences, in {BINS} bins, and `PairedDifference(PITError("cramer-von-mises"))` for PIT values. `calibrant.compare` and
`calibrant report a.csv b.csv` compare models by these. {data_sets:,} data sets a cell, so up to {limit:.1f} % lie within chance.
Repeat by `python -m studies.comparisons --keep FOLDER --write`.

Of {len(cells)} cells, {false or "none"} {"are" if false > 1 else "is"} false.

## Models that are equally wrong

The columns say how often they are told apart at 5 %, by numbers of rows. The interval leaves out zero in the same data sets.

{table(cells, is_equal=True).to_markdown()}

## Models of which one is better

{table(cells, is_equal=False).to_markdown()}

Where rows are few and events rare nothing is stated: pairs of rows show too little where fewer than twenty surprises are expected.

## Before

Differences of squares had a bootstrap of the rows, and differences of the largest gap of PIT values, which pages on forecasts show,
have none that holds: equally bad models were told apart in 10 to 12 % of data sets. `PairedDifference` withholds the latter now.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, print, and leave with 1 where a level does not hold."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/comparisons"), help="folder for finished cells")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    options.keep.mkdir(parents=True, exist_ok=True)
    cells = [
        kept(options.keep / f"{i}-{n}.json", world, n, options.data_sets, options.seed)
        for n in options.rows
        for i, world in enumerate(worlds())
    ]
    text = page(cells, options.data_sets)
    print(text)
    if options.write:
        PAGE.write_text(text, "utf-8")
    return int(any(cell["is_false"] for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
