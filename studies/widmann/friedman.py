"""The published networks measured again, and new ones trained: all quantities beside what was published."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.lab.study import StudyRecord, resumed
from calibrant.typing import Engine
from studies.widmann.data import DATA, EXACT, MEASURED, QUANTITIES, SKCES, Data, Models, Published, friedman, networks
from studies.widmann.models import evaluate
from studies.widmann.networks import train

N_NETWORKS, TOGETHER = 10, 2
"""How many are trained, and how many of them in one task."""

COMPARED = (10, 100, 500, 1000, 1500)
"""Iterations of which numbers of every published network are known, but for 0: the first deviation is a random one."""

PUBLISHED_DRAWS, DRAWS = 1_000, 20_000
"""Of the bootstrap as published, and for the published networks here: so many that the noise is that of the former."""

EXACT_DRAWS = 1_999
"""Of the exact test, after the iterations whose numbers were published."""

RELATIVE, ERRORS, NEAR = 1e-9, 4.0, 1.25
"""What may differ: computed numbers, what is random (in standard errors), and iterations (their ratio)."""

LEVEL = 0.05

PLACES: dict[str, slice | int] = {"models": slice(0, -2), "ensemble": -2, "ensemble, pairs left out": -1}
"""Kinds of models, and where they stand in what is measured."""

Measured = Mapping[tuple[int, Data], np.ndarray]
"""All quantities of ten models, their ensemble, and the ensemble with pairs left out, ``(12, 7)``, by iteration and data."""

Row = dict[str, Any]


def measure_published(
    *, n_resamples: int = DRAWS, exact_resamples: int = EXACT_DRAWS, engine: Engine | None = None
) -> Measured:
    """The quantities of the published networks."""
    keys = list(networks())
    tasks = [(networks()[key].models, n_resamples, 0, exact_resamples) for key in keys]
    return dict(zip(keys, resumed(evaluate, tasks, None, engine), strict=True))


def measure_new(
    iterations: Sequence[int],
    *,
    n_resamples: int,
    seed: int,
    exact_resamples: int = EXACT_DRAWS,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Measured:
    """Train new networks on the published data, and measure them; both are kept in the folder.

    The exact test looks at the iterations whose numbers were published.
    """
    sample, others = friedman()["train"], friedman()["test"].x
    seeds = np.random.SeedSequence(seed).spawn(N_NETWORKS)
    groups = [seeds[i : i + TOGETHER] for i in range(0, N_NETWORKS, TOGETHER)]
    settings = {"iterations": list(iterations), "seed": seed}
    record = None if folder is None else StudyRecord(Path(folder) / "widmann-networks.jsonl", settings)
    trained = resumed(train, [(sample, others, iterations, group) for group in groups], record, engine)
    means = np.concatenate(trained)
    keys = [(iteration, name) for iteration in iterations for name in DATA]
    exact = [exact_resamples if iteration in COMPARED else 0 for iteration in iterations]
    tasks = [(_models(means[:, i], name), n_resamples, seed, exact[i]) for i in range(len(exact)) for name in DATA]
    settings |= {"n_resamples": n_resamples, "exact_resamples": exact_resamples}
    record = None if folder is None else StudyRecord(Path(folder) / "widmann-measures.jsonl", settings)
    return dict(zip(keys, resumed(evaluate, tasks, record, engine), strict=True))


def _models(means: np.ndarray, name: Data) -> Models:
    """The likeliest deviations of networks that predict these means for the rows of both samples, ``(networks, n)``."""
    sample = friedman()
    n = len(sample["train"].y)
    sds = np.sqrt(np.mean((means[:, :n] - sample["train"].y) ** 2, axis=1))
    return Models(sample[name].y, means[:, :n] if name == "train" else means[:, n:], sds)


def published_rows(measured: Measured, n_resamples: int = DRAWS) -> Iterator[Row]:
    """A row an iteration, data, kind of model and quantity; of ten models, the one that differs most counts."""
    for (iteration, name), found in measured.items():
        case = networks()[iteration, name]
        for q, quantity in enumerate(MEASURED):
            kinds = {kind: (found[i, q], _expected(case, kind, q)) for kind, i in PLACES.items()}
            for kind, (values, expected) in kinds.items():
                if np.all(np.isfinite(values)):
                    part = np.max(np.abs(values - expected) / _allowed(quantity, values, n_resamples))
                    yield _row("published networks", iteration, name, kind, quantity, values, expected, part)


def _allowed(quantity: str, values: np.ndarray, n_resamples: int) -> np.ndarray:
    """Rounding; for p-values the noise of both bootstraps."""
    if quantity not in ("p-value", EXACT):
        return RELATIVE * np.abs(values)
    return ERRORS * np.sqrt(values * (1 - values) * (1 / PUBLISHED_DRAWS + 1 / n_resamples))


def new_rows(measured: Measured) -> Iterator[Row]:
    """A row an iteration, data, kind of model and quantity, and where the curves of the test rows turn."""
    for (iteration, name), found in measured.items():
        case = networks().get((iteration, name)) if iteration in COMPARED else None
        for q, quantity in enumerate(MEASURED):
            for kind, i in PLACES.items():
                values = found[i, q]
                expected = np.array(np.nan) if case is None else _expected(case, kind, q)
                is_compared = case is not None and kind == "models" and quantity != EXACT
                part = _standardised(values, expected, quantity) / ERRORS if is_compared else np.nan
                if np.all(np.isfinite(values)):
                    yield _row("new networks", iteration, name, kind, quantity, values, expected, part)
    yield from _turning_points(measured)


TURNS = {
    ("ensemble", "iteration of the least NLL"): 276,
    ("ensemble, pairs left out", "iteration of the least SKCE (biased)"): 217,
    ("models", "last iteration with a p-value above 0.05"): 1000,
}
"""Where the published curves of the test data turn; the last as far as one can tell: 0.057 at 1,000, 0.015 at 1,500."""


def _turning_points(measured: Measured) -> Iterator[Row]:
    """Iterations at which the test data say that training should have stopped."""
    iterations = np.array(sorted({iteration for iteration, _ in measured}))
    curves = np.stack([measured[iteration, "test"] for iteration in iterations])
    pvalues = curves[:, :-2, QUANTITIES.index("p-value")].mean(axis=1)
    found = (
        iterations[curves[:, -2, QUANTITIES.index("NLL")].argmin()],
        iterations[curves[:, -1, QUANTITIES.index("SKCE (biased)")].argmin()],
        iterations[pvalues > LEVEL].max(initial=1),
    )
    for ((kind, name), expected), value in zip(TURNS.items(), found, strict=True):
        part = abs(np.log(value / expected)) / np.log(NEAR)
        yield _row("new networks", np.nan, "test", kind, name, np.array(float(value)), np.array(float(expected)), part)


def _expected(case: Published, kind: str, q: int) -> np.ndarray:
    """What was published; kernel errors of ensembles over all pairs are those of an independent program.

    The exact test is this library's own, with nothing to compare.
    """
    if q == len(QUANTITIES):
        return np.array(np.nan)
    if kind == "models":
        return case.of_models[:, q]
    if kind == "ensemble" and q in range(SKCES.start, SKCES.stop):
        return case.all_pairs[q - SKCES.start]
    return case.of_ensemble[q]


def _standardised(new: np.ndarray, published: np.ndarray, quantity: str) -> float:
    """Difference of two means in standard errors; p-values count the data as one more draw, as all of this library do."""
    if quantity == "p-value":
        published = (1 + PUBLISHED_DRAWS * published) / (PUBLISHED_DRAWS + 1)
    noise = np.sqrt(new.var(ddof=1) / len(new) + published.var(ddof=1) / len(published))
    return float(abs(new.mean() - published.mean()) / max(noise, 1e-12))  # all the same: no difference either


def _row(
    experiment: str,
    iteration: float,
    name: str,
    kind: str,
    quantity: str,
    values: np.ndarray,
    expected: np.ndarray,
    part: float,
) -> Row:
    off = np.abs(values - expected)
    return {
        "experiment": experiment,
        "data": name,
        "iteration": float(iteration),
        "model": kind,
        "quantity": quantity,
        "value": values.mean(),
        "low": values.min(),
        "high": values.max(),
        "expected": expected.mean(),
        "difference": np.max(off if quantity in ("p-value", EXACT) else off / np.abs(expected)),
        "part": part,
    }
