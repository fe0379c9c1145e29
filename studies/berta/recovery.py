"""How close estimates come to the truth on the data of Berta et al. (2026), beside the published numbers."""

import csv
from collections.abc import Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from calibrant import __version__
from calibrant.lab.study import StudyRecord, resumed
from calibrant.typing import Engine
from studies.berta.data import RUNS, SCENARIOS, data_sets
from studies.berta.methods import METHODS

BOOSTING, SOFT = "boosting", "soft sign"

MAX_RATIO = 1.1
"""How far the errors of soft signs may exceed those of boosting."""

FALSE_ALARM = 0.001
"""The probability that chance alone breaks any of the statements about soft signs: none above the truth, at any size and on
average over sizes, and none below on average where predictions are calibrated."""

MAX_DEVIATIONS = 3.0
"""Standard errors by which numbers may differ that are not the same digit by digit."""

DIGIT = 1e-8
"""The last in print."""


class Published(NamedTuple):
    """How many experiments there were, and what they gave."""

    runs: int
    mean: float
    error: float
    rmse: float


def recovery(
    n_sets: int, scenarios: Sequence[str], sizes: Sequence[int], seed: int, engine: Engine | None, path: Path | None
) -> list[dict[str, Any]]:
    """A row a scenario, method and size: means over experiments, their errors, and the published ones."""
    cells = [(name, s) for name in scenarios for s in range(seed, seed + n_sets)]
    about = {"calibrant": __version__, "cells": cells, "sizes": list(sizes)}
    record = None if path is None else StudyRecord(path, about)
    done = resumed(partial(_experiment, tuple(sizes)), cells, record, engine)
    rows = []
    level = FALSE_ALARM / n_statements(scenarios, sizes)
    for k, name in enumerate(scenarios):
        values = np.stack(done[k * n_sets : (k + 1) * n_sets])
        for method, found in _by_method(name, sizes, values, level).items():
            rows += _rows(name, method, sizes, found, runs=n_sets if seed == 0 else 0)
    return rows


def n_statements(scenarios: Sequence[str], sizes: Sequence[int]) -> int:
    """How many statements about soft signs chance might break: one a scenario and size, one a scenario, and one more where
    predictions are calibrated.

    >>> n_statements(tuple(SCENARIOS), range(15))
    163
    """
    calibrated = sum(SCENARIOS[name].is_calibrated for name in scenarios)
    return len(scenarios) * (len(sizes) + 1) + calibrated


def _experiment(sizes: tuple[int, ...], name: str, seed: int) -> np.ndarray:
    """The true error, then what each method finds, on every data set of an experiment, ``(sizes, 1 + methods)``."""
    scenario = SCENARIOS[name]
    _, true = scenario.stream(seed)
    return np.array(
        [[true, *(f(scenario, y, p, seed) for f in METHODS.values())] for _, y, p in data_sets(scenario, seed, sizes)]
    )


def _by_method(name: str, sizes: Sequence[int], values: np.ndarray, level: float) -> dict[str, dict[str, np.ndarray]]:
    """What each method gave at every size, from values ``(runs, sizes, 1 + methods)``; boosting as published.

    ``most`` and ``most_above`` are the standard errors that chance exceeds with the probability ``level``, at one size and
    on average over sizes: quantiles of Student's t, for the errors are estimated from as many experiments.
    """
    true, found = values[:, :, 0], values[:, :, 1:]
    off = found - values[:, :, :1]
    numbers = {
        method: {
            "mean": found[:, :, j].mean(axis=0),
            "error": found[:, :, j].std(axis=0, ddof=1) / len(values) ** 0.5,
            "rmse": np.sqrt((off[:, :, j] ** 2).mean(axis=0)),
        }
        for j, method in enumerate(METHODS)
    }
    boosting = [published()[name, n, BOOSTING] for n in sizes]
    numbers[BOOSTING] = {key: np.array([getattr(cell, key) for cell in boosting]) for key in ("mean", "error", "rmse")}
    for some in numbers.values():
        gap, noise = some["mean"] - true.mean(axis=0), np.sqrt((some["error"] ** 2).sum())
        some["truth"] = true.mean(axis=0)
        some["ratio"] = np.full(len(sizes), some["rmse"].mean() / numbers[BOOSTING]["rmse"].mean())
        some["above"] = np.full(len(sizes), gap.sum() / noise)
        some["most"] = np.full(len(sizes), student.isf(level, len(values) - 1))
        some["most_above"] = np.full(len(sizes), student.isf(level, _freedom(some["error"], len(values))))
    return numbers


def _freedom(errors: np.ndarray, runs: int) -> float:
    """Degrees of freedom of a sum of independent means of so many runs, after Welch and Satterthwaite.

    >>> round(_freedom(np.ones(15), 10))
    135
    """
    variances = errors**2
    return float((runs - 1) * variances.sum() ** 2 / (variances**2).sum())


def _rows(
    name: str, method: str, sizes: Sequence[int], found: dict[str, np.ndarray], runs: int
) -> list[dict[str, Any]]:
    """Rows of a method; ``runs`` are the experiments that are the published ones."""
    rows = []
    for i, n in enumerate(sizes):
        row: dict[str, Any] = {"scenario": name, "n": n, "method": method, **{key: x[i] for key, x in found.items()}}
        known = published().get((name, n, method)) if method != BOOSTING else None
        row |= {
            "published": np.nan if known is None else known.mean,
            "published_error": np.nan if known is None else known.error,
        }
        rows.append(row | {"part": _part(row, is_same=known is not None and known.runs == runs == RUNS)})
    return rows


def _part(row: dict[str, Any], *, is_same: bool) -> float:
    """How much of what was to be shown is used up; NaN where nothing was."""
    scenario = SCENARIOS[row["scenario"]]
    if row["method"] == SOFT:
        average = abs(row["above"]) if scenario.is_calibrated else row["above"]
        here = (row["mean"] - row["truth"]) / row["error"]
        return float(max(row["ratio"] / MAX_RATIO, average / row["most_above"], here / row["most"]))
    off = abs(row["mean"] - row["published"])
    if row["method"] == "bins" and scenario.n_classes > 2:
        return float(off / np.hypot(row["error"], row["published_error"]) / MAX_DEVIATIONS)
    return float(off / DIGIT) if is_same else np.nan


@cache
def published() -> dict[tuple[str, int, str], Published]:
    """The published numbers, by scenario, size and method."""
    text = files("studies.berta").joinpath("synthetic.csv").read_text(encoding="utf-8")
    return {
        (f"{row['scenario']}, {row['classes']} classes", int(row["n"]), row["method"]): Published(
            int(row["runs"]), float(row["mean"]), float(row["error"]), float(row["rmse"])
        )
        for row in csv.DictReader(text.splitlines())
    }
