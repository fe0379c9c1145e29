"""The published networks measured again, and new ones trained: all quantities beside what was published."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.lab.papers.widmann_data import DATA, QUANTITIES, SKCES, Data, Models, Published, friedman, networks
from calibrant.lab.papers.widmann_models import evaluate
from calibrant.lab.papers.widmann_networks import train
from calibrant.lab.record import Record, resumed
from calibrant.typing import Engine

N_NETWORKS, TOGETHER = 10, 2
"""How many are trained, and how many of them in one task."""

COMPARED = (10, 100, 500, 1000, 1500)
"""Iterations of which numbers of every published network are known, but for 0: the first deviation is a random one."""

PUBLISHED_DRAWS, DRAWS = 1_000, 20_000
"""Of the bootstrap as published, and for the published networks here: so many that the noise is that of the former."""

RELATIVE, PVALUE, ERRORS, NEAR = 1e-9, 0.05, 4.0, 1.25
"""What may differ: computed numbers, p-values, means of ten networks (in standard errors), and iterations (their ratio)."""

KINDS = ("models", "ensemble", "ensemble, pairs left out")

Measured = Mapping[tuple[int, Data], np.ndarray]
"""All quantities of ten models, their ensemble, and the ensemble with pairs left out, ``(12, 6)``, by iteration and data."""

Row = dict[str, Any]


def measure_published(*, n_resamples: int = DRAWS, engine: Engine | None = None) -> Measured:
    """The quantities of the published networks."""
    keys = list(networks())
    tasks = [(networks()[key].models, n_resamples, 0) for key in keys]
    return dict(zip(keys, resumed(evaluate, tasks, None, engine), strict=True))


def measure_new(
    iterations: Sequence[int],
    *,
    n_resamples: int,
    seed: int,
    engine: Engine | None = None,
    folder: str | PathLike[str] | None = None,
) -> Measured:
    """Train new networks on the published data, and measure them; both are kept in the folder."""
    sample, others = friedman()["train"], friedman()["test"].x
    seeds = np.random.SeedSequence(seed).spawn(N_NETWORKS)
    groups = [seeds[i : i + TOGETHER] for i in range(0, N_NETWORKS, TOGETHER)]
    settings = {"iterations": list(iterations), "seed": seed}
    record = None if folder is None else Record(Path(folder) / "widmann-networks.jsonl", settings)
    trained = resumed(train, [(sample, others, iterations, group) for group in groups], record, engine)
    means = np.concatenate(trained)
    keys = [(iteration, name) for iteration in iterations for name in DATA]
    tasks = [(_models(means[:, i], name), n_resamples, seed) for i in range(len(iterations)) for name in DATA]
    settings |= {"n_resamples": n_resamples}
    record = None if folder is None else Record(Path(folder) / "widmann-measures.jsonl", settings)
    return dict(zip(keys, resumed(evaluate, tasks, record, engine), strict=True))


def _models(means: np.ndarray, name: Data) -> Models:
    """The likeliest deviations of networks that predict these means for the rows of both samples, ``(networks, n)``."""
    sample = friedman()
    n = len(sample["train"].y)
    sds = np.sqrt(np.mean((means[:, :n] - sample["train"].y) ** 2, axis=1))
    return Models(sample[name].y, means[:, :n] if name == "train" else means[:, n:], sds)


def published_rows(measured: Measured) -> Iterator[Row]:
    """A row an iteration, data, kind of model and quantity; of ten models, the one that differs most counts."""
    for (iteration, name), found in measured.items():
        case = networks()[iteration, name]
        singles, ensemble, incomplete = found[:-2], found[-2], found[-1]
        for q, quantity in enumerate(QUANTITIES):
            allowed = PVALUE if quantity == "p-value" else RELATIVE * np.abs(case.of_models[:, q])
            part = np.max(np.abs(singles[:, q] - case.of_models[:, q]) / allowed)
            values = singles[:, q], case.of_models[:, q].mean()
            yield _row("published networks", iteration, name, "models", quantity, *values, part)
            for kind, value in (("ensemble", ensemble[q]), ("ensemble, pairs left out", incomplete[q])):
                expected = _expected(case, kind, q)
                limit = PVALUE if quantity == "p-value" else RELATIVE * abs(expected)
                if np.isfinite(value):
                    part = abs(value - expected) / limit
                    yield _row("published networks", iteration, name, kind, quantity, value, expected, part)


def new_rows(measured: Measured) -> Iterator[Row]:
    """A row an iteration, data, kind of model and quantity, and where the curves of the test data turn."""
    for (iteration, name), found in measured.items():
        case = networks().get((iteration, name)) if iteration in COMPARED else None
        for q, quantity in enumerate(QUANTITIES):
            published = np.nan if case is None else case.of_models[:, q].mean()
            part = np.nan if case is None else _standardised(found[:-2, q], _with_itself(case, q)) / ERRORS
            yield _row("new networks", iteration, name, "models", quantity, found[:-2, q], published, part)
            for kind, value in zip(KINDS[1:], found[-2:, q], strict=True):
                if np.isfinite(value):
                    expected = np.nan if case is None else _expected(case, kind, q)
                    yield _row("new networks", iteration, name, kind, quantity, value, expected, np.nan)
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
        iterations[pvalues > PVALUE].max(initial=1),
    )
    for ((kind, name), expected), value in zip(TURNS.items(), found, strict=True):
        part = abs(np.log(value / expected)) / np.log(NEAR)
        yield _row("new networks", np.nan, "test", kind, name, float(value), expected, part)


def _expected(case: Published, kind: str, q: int) -> float:
    """What was published of an ensemble; its kernel errors over all pairs are those of an independent program."""
    if kind == "ensemble" and q in range(SKCES.start, SKCES.stop):
        return float(case.all_pairs[q - SKCES.start])
    return float(case.of_ensemble[q])


def _with_itself(case: Published, q: int) -> np.ndarray:
    """What was published of the models, with p-values that count the data as one more draw, as those of this library do."""
    values = case.of_models[:, q]
    return (1 + PUBLISHED_DRAWS * values) / (PUBLISHED_DRAWS + 1) if QUANTITIES[q] == "p-value" else values


def _standardised(new: np.ndarray, published: np.ndarray) -> float:
    """Difference of two means in standard errors; there is none where all values are the same."""
    noise = np.sqrt(new.var(ddof=1) / len(new) + published.var(ddof=1) / len(published))
    return float(abs(new.mean() - published.mean()) / max(noise, 1e-12))


def _row(
    experiment: str, iteration: float, name: str, kind: str, quantity: str, value: Any, expected: float, part: float
) -> Row:
    values = np.atleast_1d(value)
    return {
        "experiment": experiment,
        "data": name,
        "iteration": float(iteration),
        "model": kind,
        "quantity": quantity,
        "value": values.mean(),
        "low": values.min(),
        "high": values.max(),
        "expected": expected,
        "part": part,
    }
