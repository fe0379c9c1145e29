"""How often certificates are false, and how many rows they need.

A certificate says that a calibration error is below a margin. It is false for a model whose error is the margin: in at most
5 % of data sets, wherever the error lies. Errors are put at the margin in one cell or in all, upwards, downwards or in turn, at
the rare end, as a shift or as stairs. The margin of each world is the one within which a calibrated model is certified in four of
five data sets, as larger ones are easier to keep and smaller ones are seldom certified at all; and then twice that.

Run ``python -m studies.certificates --keep FOLDER`` (an hour or so on one core). Finished cells are kept in the folder, so a run
that was broken off goes on where it stopped. ``--write`` puts the tables into docs/studies/certificates.md, and ``--data-sets 200``
draws fewer. Leaves with code 1 where certificates are false more often than chance allows.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from calibrant import ECE, ClassWise, DebiasedECE, EqualMass, Normal, TopLabel
from calibrant.estimators import MonotoneECE, PITError
from calibrant.inference import Certificate, certify
from calibrant.inference.certificate import AS_SHOWN
from calibrant.results import Table, jsonable

LEVEL, CERTAINTY = 0.05, 0.999
"""The share of false certificates that is allowed, and of studies like this one that keep to the bound."""

POWER = 0.8
"""Of calibrated data sets, at the margin of a world."""

PILOT = 200
"""Calibrated data sets that find the margin of a world."""

PAGE = Path(__file__).parents[1] / "docs" / "studies" / "certificates.md"

L1, L2, LARGEST = ECE(EqualMass(10)), DebiasedECE(EqualMass(10)), ECE(EqualMass(10), norm=np.inf)

SHOWN = ECE(EqualMass(15))
"""The error of a report, which certifies by the upper end of the 95 % interval that it shows."""

Draw = Callable[[np.random.Generator], Certificate]


def scores(name: str, n: int) -> np.ndarray:
    """Predicted probabilities of a world, in their order: evenly spaced quantiles."""
    u = (np.arange(n) + 0.5) / n
    shapes = {
        "even": (1, 1),
        "towards 0 and 1": (0.5, 0.5),
        "sharp": (0.1, 0.1),
        "confidences": (8, 1.2),
        "0.5 % events": (0.5, 100),
        "2 % events": (1, 50),
        "rare and sure": (0.1, 5),
    }
    if name in shapes:
        return np.asarray(betaincinv(*shapes[name], u))
    if name == "one value near 0":
        return np.full(n, 1e-5)
    if name == "three values":
        return np.sort(np.array([0.01, 0.05, 0.5])[(4 * u).astype(int).clip(1) - 1])
    half = n // 4
    return np.concatenate([np.zeros(half), (np.arange(n - 2 * half) + 0.5) / (n - 2 * half), np.ones(half)])


WORLDS = (
    *("even", "towards 0 and 1", "sharp", "confidences", "0.5 % events", "2 % events", "rare and sure"),
    *("one value near 0", "three values", "exact 0 and 1"),
)

SIGNS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all up": np.ones_like,
    "in turn": lambda mean: np.where(np.arange(len(mean)) % 2 == 0, 1.0, -1.0),
    "too sure": lambda mean: np.where(mean < 0.5, 1.0, -1.0),
    "first cell": lambda mean: np.where(np.arange(len(mean)) == 0, 1.0, 0.0),
    "middle cell": lambda mean: np.where(np.arange(len(mean)) == len(mean) // 2, 1.0, 0.0),
    "last cell": lambda mean: np.where(np.arange(len(mean)) == len(mean) - 1, np.where(mean > 0.5, -1.0, 1.0), 0.0),
}
"""Where the error is and which way it goes, by cells with these mean predictions."""


def norm_of(gap: np.ndarray, share: np.ndarray, norm: float) -> float:
    """Of gaps of cells with these shares."""
    return float(gap.max()) if np.isinf(norm) else float((share @ gap**norm) ** (1 / norm))


def placed(p: np.ndarray, weights: np.ndarray | None, error: Any, where: str, margin: float) -> np.ndarray | None:
    """True probabilities whose error is the margin, in the cells of the error; ``None`` where there is no room for it."""
    bins = error.bins.bins(p, weights)
    cell = np.unique(bins.of_rows(p, slice(None)), return_inverse=True)[1]
    mass = np.bincount(cell, weights=weights).astype(float)
    mean = np.bincount(cell, weights=p * (1.0 if weights is None else weights)) / mass
    sign = SIGNS[where](mean)
    room = np.where(sign > 0, 1 - mean, np.where(sign < 0, mean, 0.0))
    if norm_of(room, mass / mass.sum(), error.norm) < margin:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if norm_of(np.minimum(middle, room), mass / mass.sum(), error.norm) < margin
            else (low, middle)
        )
    share = np.where(room > 0, np.minimum(high, room) / np.where(room > 0, room, 1), 0.0)[cell]
    return np.asarray(p + share * (np.where(sign[cell] > 0, 1.0, 0.0) - p))


def hidden(truth: np.ndarray, cell: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same means of cells from half as much noise: every second row is made certain, one way or the other."""
    found = truth.copy()
    for b in np.unique(cell):
        rows = np.flatnonzero(cell == b)[::2]
        events, rest = divmod(float(truth[rows].sum()), 1)
        found[rows] = 0.0
        order = rng.permutation(rows)
        found[order[: int(events)]] = 1.0
        if int(events) < len(order):
            found[order[int(events)]] = rest
    return found


def binary(
    p: np.ndarray,
    truth: np.ndarray,
    margin: float,
    error: Any,
    weights: np.ndarray | None = None,
    confidence: float = 1 - LEVEL,
) -> Draw:
    """Certificates of data sets of two classes."""
    said = {"error": error, "sample_weight": weights, "confidence_level": confidence}
    return lambda rng: certify((rng.random(len(p)) < truth).astype(int), p, margin, **said)


MONOTONE: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "shift up": lambda p, t: np.minimum(p + t, 1),
    "shift down": lambda p, t: np.maximum(p - t, 0),
    "towards the mean": lambda p, t: p + t * (p.mean() - p),
    "one jump": lambda p, t: np.where(np.abs(p - 0.5) < t, np.where(p < 0.5, max(0.5 - t, 0.0), min(0.5 + t, 1.0)), p),
    "stairs": lambda p, t: np.clip((np.floor(p / (t + 1e-9)) + 0.5) * (t + 1e-9), 0, 1),
    "steep": lambda p, t: np.clip(0.5 + (1 + 20 * t) * (p - 0.5), 0, 1),
}
"""Calibration curves that do not fall, and grow worse with t."""


def monotone(p: np.ndarray, where: str, margin: float) -> np.ndarray | None:
    """Such a curve whose error of single predictions is the margin."""
    low, high = 0.0, 1.0
    if np.abs(MONOTONE[where](p, 1.0) - p).mean() < margin:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.abs(MONOTONE[where](p, middle) - p).mean() < margin else (low, middle)
    return np.asarray(MONOTONE[where](p, high))


def bent(margin: float) -> float:
    """The power of u whose largest distance from u is the margin.

    >>> u = np.linspace(0, 1, 100_001)
    >>> round(float(np.max(u ** bent(0.05) - u)), 6)
    0.05
    """
    return float(brentq(lambda e: e ** (1 / (1 - e)) * (1 / e - 1) - margin, 0.01, 1 - 1e-9))


PIT: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "at the lower end": lambda u, m: np.where(u < m, 1e-12, u),
    "at the upper end": lambda u, m: np.where(u > 1 - m, 1 - 1e-12, u),
    "in the middle": lambda u, m: np.where(np.abs(u - 0.5) < m / 2, 0.5 + m / 2, u),
    "everywhere": lambda u, m: u ** (1 / bent(m)),
    "near the lower end": lambda u, m: np.where((u > 0.02) & (u < 0.02 + m), 0.02 + m, u),
}
ARCS = PIT | {"too narrow": lambda u, m: 0.5 + np.sign(u - 0.5) * np.abs(2 * u - 1) ** bent(m) / 2}
"""PIT values from even ones, whose distribution function lies off by the margin."""


def numbers(n: int, error: PITError, where: str | None, margin: float) -> Draw:
    """Certificates of normal forecasts."""
    forecast = Normal(np.zeros(n), 1.0)

    def drawn(rng: np.random.Generator) -> Certificate:
        u = rng.random(n)
        return certify(ndtri(u if where is None else ARCS[where](u, margin)), forecast, margin, error=error)

    return drawn


def classes(n: int, rng: np.random.Generator, k: int = 10) -> np.ndarray:
    """Probabilities of ten classes, some sure and some not."""
    return rng.dirichlet(np.full(k, 0.3), n)


def classwise_error(p: np.ndarray, truth: np.ndarray, error: ECE | DebiasedECE) -> float:
    """The error of the cells of all classes, with true probabilities in the place of what happened."""
    found = []
    for each, true in zip(p.T, truth.T, strict=True):
        cell = np.unique(error.bins.bins(each).of_rows(each, slice(None)), return_inverse=True)[1]
        rows = np.bincount(cell)
        found.append(norm_of(np.abs(np.bincount(cell, weights=each - true) / rows), rows / len(p), error.norm))
    return float(norm_of(np.array(found), np.full(len(found), 1 / len(found)), error.norm))


def tempered(p: np.ndarray, x: float) -> np.ndarray:
    """Probabilities to a power: more sure above x = 0, less sure below."""
    powers = p ** np.exp(x)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def moved(p: np.ndarray, x: float) -> np.ndarray:
    """A share of the second class goes to the first."""
    found = p.copy()
    found[:, 0], found[:, 1] = p[:, 0] + x * p[:, 1], (1 - x) * p[:, 1]
    return found


CLASSES: dict[str, tuple[Callable[[np.ndarray, float], np.ndarray], float]] = {
    "too sure": (tempered, -3.0),
    "too timid": (tempered, 3.0),
    "one class": (moved, 1.0),
}
"""True probabilities of classes as a function of a number, and how far that goes."""


def classwise(p: np.ndarray, error: ECE | DebiasedECE, where: str, margin: float) -> np.ndarray | None:
    """True probabilities with the class-wise error at the margin; ``None`` where it does not get so large."""
    curve, most = CLASSES[where]
    if classwise_error(p, curve(p, most), error) < margin:
        return None
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if classwise_error(p, curve(p, middle * most), error) < margin else (low, middle)
    return curve(p, high * most)


def many(p: np.ndarray, truth: np.ndarray, margin: float, error: Any) -> Draw:
    """Certificates of data sets of many classes."""
    reached = truth.cumsum(axis=1)

    def drawn(rng: np.random.Generator) -> Certificate:
        y = (reached < rng.random((len(p), 1))).sum(axis=1).clip(0, p.shape[1] - 1)
        return certify(y, p, margin, error=error)

    return drawn


def top_label(p: np.ndarray, where: str, margin: float) -> np.ndarray | None:
    """True probabilities with this error of the confidences; the other classes share what is left as before."""
    top = p.argmax(axis=1)
    confidence = p.max(axis=1)
    truth = placed(confidence, None, L1, where, margin)
    if truth is None:
        return None
    found = p * ((1 - truth) / np.maximum(1 - confidence, 1e-12))[:, None]
    found[np.arange(len(p)), top] = truth
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Cell:
    """One statement in one world: with calibrated data sets, and with those that have the error at the margin.

    ``is_assumed`` says whether what the statement assumes is true there; otherwise it cannot be false.
    """

    error: str
    world: str
    n: int
    calibrated: Callable[[float], Draw]
    wrong: Callable[[str, float], Draw | None]
    places: Sequence[str]
    is_assumed: bool = True

    @property
    def share(self) -> float:
        """Of the data sets that are drawn: fewer where one takes long."""
        return 0.2 if self.error == "single" else 1.0


def weights_of(n: int) -> np.ndarray:
    """A few rows that count much, and many that count little."""
    return np.random.default_rng(5).exponential(size=n)


def cells_of_two_classes(rows: Sequence[int]) -> Iterator[Cell]:
    """Cells of two classes: three norms in every world, and with weights and hidden certainty in some."""
    for name, error in {"L1": L1, "L2": L2, "largest": LARGEST}.items():
        for world in WORLDS:
            for n in rows if world in ("even", "0.5 % events", "2 % events") else rows[:-1]:
                yield _binary_cell(name, error, world, n)
    for name, error in {"L1": L1, "L2": L2}.items():
        for world in ("even", "2 % events"):
            yield _binary_cell(name, error, world, 2000, weights_of(2000))
        yield _binary_cell(name, error, "even", 2000, is_hidden=True)
    yield _binary_cell("largest", LARGEST, "even", 2000, is_hidden=True)


def _binary_cell(
    name: str, error: Any, world: str, n: int, weights: np.ndarray | None = None, *, is_hidden: bool = False
) -> Cell:
    p = scores(world, n)

    def wrong(where: str, margin: float) -> Draw | None:
        truth = placed(p, weights, error, where, margin)
        if truth is not None and is_hidden:
            truth = hidden(truth, error.bins.bins(p).of_rows(p, slice(None)), np.random.default_rng(7))
        return None if truth is None else binary(p, truth, margin, error, weights)

    label = world + (", weights" if weights is not None else "") + (", half certain" if is_hidden else "")
    return Cell(
        name, label, n, lambda m: binary(p, p, m, error, weights), wrong, tuple(SIGNS), not (is_hidden and name == "L2")
    )


def _monotone_cell(world: str, n: int) -> Cell:
    p = scores(world, n)

    def wrong(where: str, margin: float) -> Draw | None:
        truth = monotone(p, where, margin)
        return None if truth is None else binary(p, truth, margin, MonotoneECE())

    return Cell("single", world, n, lambda m: binary(p, p, m, MonotoneECE()), wrong, tuple(MONOTONE))


def _class_cell(kind: str, n: int) -> Cell:
    p = classes(n, np.random.default_rng(3))
    if kind == "top label":
        error: Any = ECE(EqualMass(10), lens=TopLabel())

        def wrong(where: str, margin: float) -> Draw | None:
            truth = top_label(p, where, margin)
            return None if truth is None else many(p, truth, margin, error)

        return Cell("L1", "ten classes, top label", n, lambda m: many(p, p, m, error), wrong, tuple(SIGNS))
    error = ECE(EqualMass(10), lens=ClassWise()) if kind == "L1" else DebiasedECE(EqualMass(10), lens=ClassWise())

    def wrong_classes(where: str, margin: float) -> Draw | None:
        truth = classwise(p, error, where, margin)
        return None if truth is None else many(p, truth, margin, error)

    name = "ten classes, class-wise"
    return Cell(kind, name, n, lambda m: many(p, p, m, error), wrong_classes, tuple(CLASSES))


def cells(rows: Sequence[int], more: Sequence[int]) -> Iterator[Cell]:
    """All there are."""
    yield from cells_of_two_classes(rows)
    for world in ("even", "towards 0 and 1", "sharp", "2 % events", "three values"):
        for n in more:
            yield _monotone_cell(world, n)
    for error, name, places in ((PITError(), "PIT", PIT), (PITError("kuiper"), "PIT, any interval", ARCS)):
        for n in rows:
            draw = partial(numbers, n, error)
            yield Cell(name, "normal forecasts", n, partial(draw, None), draw, tuple(places))
    for kind in ("top label", "L1", "L2"):
        for n in (500, 2000):
            yield _class_cell(kind, n)


def usual_margin(cell: Cell, rng: np.random.Generator) -> float:
    """Within which four of five calibrated data sets are certified."""
    draw = cell.calibrated(0.5)
    return float(np.quantile([draw(rng).upper for _ in range(round(PILOT * cell.share))], POWER))


def false_ones(draw: Draw, rng: np.random.Generator, n_sets: int) -> int:
    """Certificates among data sets that have the error at the margin; those above the bound are drawn again, four times as many."""
    return sum(draw(rng).certified for _ in range(n_sets))


def judged(cell: Cell, n_sets: int, seed: int) -> Iterator[dict[str, Any]]:
    """The cell at its usual margin and at twice that, with the place where certificates are false most often."""
    rng = np.random.default_rng([seed, cell.n, *cell.world.encode(), *cell.error.encode()])
    usual = max(usual_margin(cell, rng), 1.000_001 * (1 - LEVEL ** (1 / cell.n)))  # below, no rows certify anything
    n_sets = round(n_sets * cell.share)
    for margin in (usual, 2 * usual):
        if margin > 0.4:
            continue
        worst, where, most, is_false = 0.0, "", int(binom.isf(1 - CERTAINTY, n_sets, LEVEL)), False
        for place in cell.places:
            draw = cell.wrong(place, margin)
            if draw is None:
                continue
            found, sets = false_ones(draw, rng, n_sets), n_sets
            if found > most:
                found, sets = false_ones(draw, rng, 4 * n_sets), 4 * n_sets
                is_false |= cell.is_assumed and bool(found > binom.isf(1 - CERTAINTY, sets, LEVEL))
            if found / sets >= worst:
                worst, where = found / sets, place
        named = {"error": cell.error, "world": cell.world, "n": cell.n, "margin": margin}
        yield named | {"false": worst, "where": where, "is_false": is_false}


NEEDED = (0.01, 0.02, 0.05)
"""Margins of the table of rows."""


def rows_needed(
    make: Callable[[int, float], Draw], margin: float, rng: np.random.Generator, sets: int, power: float = 2.0
) -> int:
    """Rows with which four of five calibrated data sets are certified, by three steps of scaling."""
    n = 4000
    for _ in range(3):
        draw = make(n, 0.5)
        upper = float(np.quantile([draw(rng).upper for _ in range(sets)], POWER))
        n = int(np.clip(n * (upper / margin) ** power, 60, 400_000))
    return n


def in_points(margin: float) -> str:
    """A margin in percentage points."""
    return "1 point" if margin == 0.01 else f"{100 * margin:g} points"


def rounded(n: int) -> str:
    """To two digits, in words where it is beyond the search."""
    if n >= 400_000:
        return "more than 400,000"
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{round(n / unit) * unit:,}"


def needed(seed: int) -> Iterator[dict[str, str]]:
    """How many rows certify 1, 2 and 5 points for a calibrated model, by world and error."""
    errors = {"mean": L1, "root mean square": L2, "largest": LARGEST, "single": MonotoneECE(), "report": SHOWN}
    for world in ("even", "towards 0 and 1", "sharp", "confidences", "2 % events", "0.5 % events", "three values"):
        for margin in NEEDED:
            row = {"world": world, "margin": in_points(margin)}
            for name, error in errors.items():
                rng = np.random.default_rng([seed, round(1000 * margin), *world.encode()])
                sets, power = (6, 2.5) if name == "single" else (40, 2.0)
                row[name] = rounded(rows_needed(partial(_calibrated, world, error), margin, rng, sets, power))
            yield row


def _calibrated(world: str, error: Any, n: int, margin: float) -> Draw:
    p = scores(world, n)
    return binary(p, p, margin, error, confidence=AS_SHOWN if error is SHOWN else 1 - LEVEL)


def _forecasts(error: PITError, n: int, margin: float) -> Draw:
    return numbers(n, error, None, margin)


def needed_elsewhere(seed: int) -> Iterator[dict[str, str]]:
    """The same of ten classes and of forecasts."""

    def of_classes(lens: Any) -> Callable[[int, float], Draw]:
        def make(n: int, m: float) -> Draw:
            p = classes(n, np.random.default_rng(3))
            return many(p, p, m, ECE(EqualMass(10), lens=lens))

        return make

    kinds: dict[str, Callable[[int, float], Draw]] = {
        "ten classes, top label, mean": of_classes(TopLabel()),
        "ten classes, class-wise, mean": of_classes(ClassWise()),
        "forecasts of numbers, largest gap of PIT values": partial(_forecasts, PITError()),
        "forecasts of numbers, any interval": partial(_forecasts, PITError("kuiper")),
    }
    for name, make in kinds.items():
        row = {"problem": name}
        for margin in NEEDED:
            rng = np.random.default_rng([seed, round(1000 * margin)])
            row[in_points(margin)] = rounded(rows_needed(make, margin, rng, 40))
        yield row


def kept(
    path: Path, rows: Callable[[Any, int, int], Iterator[dict[str, Any]]], cell: Any, options: Any
) -> list[dict[str, Any]]:
    """The rows of a table, drawn once and kept in a file."""
    if not path.exists():
        found = list(rows(cell, options.data_sets, options.seed))
        path.write_text(json.dumps(jsonable(found)), "utf-8")
        print(
            path.stem,
            *({k: v for k, v in row.items() if k not in ("error", "world", "n")} for row in found),
            sep="\n  ",
            flush=True,
        )
    return list(json.loads(path.read_text("utf-8")))


def _columns(rows: list[dict[str, Any]]) -> Table:
    return Table({name: [row[name] for row in rows] for name in rows[0]})


WORDS = """# Certificates: how often false, how many rows

`certify` says that a calibration error is *below* a margin. Here a model's error is exactly the margin, so every
certificate is false; at most 5 % of data sets may have one. Of {sets:,} data sets a true 5 % shows at most {most} in 99.9 %
of studies; a cell with more is drawn again with four times as many, and is false if it fails twice. (Of single predictions
there are a fifth as many.) Repeat by `python -m studies.certificates --keep FOLDER --write`.

Errors are those of ten cells of equal mass (mean, root mean square, largest gap), of single predictions (`MonotoneECE`), and
of PIT values. They are placed in every cell upwards, in turn, away from one half, and in the first, middle or last cell alone;
for single predictions as a shift, a squeeze, a jump, stairs, or a steep curve; for PIT values at either end, in the middle,
and everywhere; where any interval counts, as forecasts that are too narrow, too. `false` is the share of false certificates
in the worst of these places. Of ten classes, true probabilities are more or less sure than predicted, or one class takes
from another.

{verdict}

`half certain` hides half of the noise: every second row has a true probability of 0 or 1, whatever was predicted. Means and
largest gaps allow for that. {hidden}

## How many rows certify a calibrated model

In four of five data sets; two digits are meant at most, and one for single predictions (six data sets each). `report` is what a
report shows and certifies by: the mean gap of fifteen cells, by the upper end of its 95 % interval.

{needed}

{elsewhere}

## How often certificates are false

`margin` is first the one within which four of five calibrated data sets of these rows are certified, then twice that.

{levels}
"""


def page(levels: Table, needs: Table, elsewhere: Table, n_sets: int) -> str:
    """The page of the study."""
    bad = int(np.sum(levels["is_false"]))
    most = int(binom.isf(1 - CERTAINTY, n_sets, LEVEL))
    assumed = np.array(
        [e == "L2" and w.endswith("half certain") for e, w in zip(levels["error"], levels["world"], strict=True)]
    )
    share = float(np.max(np.asarray(levels["false"])[assumed], initial=0.0))
    shown = Table(
        {
            "error": levels["error"],
            "world": levels["world"],
            "n": [f"{n:,}" for n in levels["n"]],
            "margin": [f"{m:.3f}" for m in levels["margin"]],
            "false": [f"{100 * x:.1f} %" for x in levels["false"]],
            "where": levels["where"],
        }
    )
    verdict = f"Of {len(levels['n'])} cells, {'none is' if not bad else f'{bad} are'} false."
    hidden_words = (
        f"The root mean square gap, from which noise has been taken off, shows at most {100 * share:.1f} % there; "
        "it assumes that true frequencies vary little within a cell, and `ECE(EqualMass(10), norm=2)` does not."
    )
    return WORDS.format(
        sets=n_sets,
        most=most,
        verdict=verdict,
        hidden=hidden_words,
        needed=needs.to_markdown(),
        elsewhere=elsewhere.to_markdown(),
        levels=shown.to_markdown(),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, print, and leave with 1 where a level does not hold."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/certificates"), help="folder for finished cells")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    found: list[dict[str, Any]] = []
    options.keep.mkdir(parents=True, exist_ok=True)
    for cell in cells((200, 2000, 20_000), (1000, 5000)):
        found += kept(options.keep / f"{cell.error}-{cell.world}-{cell.n}.json", judged, cell, options)
    levels = _columns(found)
    needs = kept(options.keep / "needed.json", lambda _, __, seed: needed(seed), None, options)
    elsewhere = kept(options.keep / "elsewhere.json", lambda _, __, seed: needed_elsewhere(seed), None, options)
    text = page(levels, _columns(needs), _columns(elsewhere), options.data_sets)
    print(text)
    if options.write:
        PAGE.write_text(text, "utf-8")
    return int(bool(np.any(levels["is_false"])))


if __name__ == "__main__":
    sys.exit(main())
