"""Public names that take settings, files, engines, results or classes under test, and good arguments for each."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from calibrant import ECE, Brier, Categorical, ExactTest, InputError, Normal
from calibrant.checks import (
    check_distribution,
    check_engine,
    check_estimator,
    check_expectation,
    check_kernel,
    check_recalibrator,
)
from calibrant.engines import connect, precision, stream
from calibrant.io import Batches, example, read, read_predictions
from calibrant.kernels import Gaussian
from calibrant.lab import BetaScores, Diagonal, ScoreWorld, bias_study, fit_curves, fit_world, power_study, tce
from calibrant.planning import plan
from calibrant.recalibration import Intercept
from calibrant.results import Table, brief, jsonable
from tests.hostile.arrays import N
from tests.hostile.others import Subject

FOLDER = TemporaryDirectory()
"""Of a file that is streamed."""


def tools() -> Iterator[Subject]:
    """All of them."""
    rng = np.random.default_rng(6)
    p = rng.random(N)
    y = (rng.random(N) < p).astype(int)
    yield from _of_files()
    yield from _of_engines()
    yield from _of_results(y, p)
    yield from _of_checks(y, p, rng)
    yield from _of_worlds(y, p)


def _of_files() -> Iterator[Subject]:
    """What reads."""
    digits, diabetes = (str(example(name)) for name in ("digits", "diabetes"))
    yield Subject("example", example, {"name": "digits"})
    asked = {"y_true": "digit", "y_pred": "p_*", "by": ["ink"], "sample_weight": None}
    yield Subject("read", read, {"path": digits, **asked})
    yield Subject("read_predictions", read_predictions, {"path": diabetes, "predict": "Normal(mu, sigma)"})
    yield Subject("Batches", lambda **said: next(iter(Batches(**said))), {"source": digits, "rows": 500, **asked})


def _of_engines() -> Iterator[Subject]:
    """Where work is done."""

    def entered(name: Any) -> None:
        with precision(name):
            pass

    yield Subject("connect", lambda engine: connect(engine, timeout=0.2), {"engine": "threads:2"})
    yield Subject("precision", entered, {"name": "float64"})
    table = pl.read_csv(example("digits"))
    table.write_parquet(f"{FOLDER.name}/digits.parquet")
    asked = {"source": FOLDER.name, "rows": 1000}
    yield Subject(
        "stream", lambda **said: stream(said.pop("source"), Brier(), y_true="digit", y_pred="p_*", **said), asked
    )


def _of_results(y: np.ndarray, p: np.ndarray) -> Iterator[Subject]:
    """What results are made of, and asked for."""
    yield Subject("Table", _refusing(lambda column: str(Table(column=column))), {"column": p})
    yield Subject("brief", brief, {"x": p})
    yield Subject("jsonable", jsonable, {"x": p})
    yield Subject("confidence_interval", _refusing(Brier()(y, p).confidence_interval), {"confidence_level": 0.9})


def _refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Results refuse by a plain ``ValueError``."""

    def refused(**said: Any) -> None:
        try:
            call(**said)
        except ValueError as error:
            raise InputError(str(error)) from error

    return refused


def _of_checks(y: np.ndarray, p: np.ndarray, rng: np.random.Generator) -> Iterator[Subject]:
    """Conformance: what is no estimator, kernel, family, engine or recalibrator fails, or is refused."""

    def checked(check: Callable[..., Any], *more: Any) -> Callable[..., None]:
        def run(**said: Any) -> None:
            with suppress(AssertionError):  # what fails a check is no fault of the check
                check(*said.values(), *more)

        return run

    normal = Normal(rng.normal(size=N), 1.0)
    data = {"estimator": ECE(), "y_true": y, "predictions": Categorical(p)}
    yield Subject("check_estimator", checked(check_estimator), data)
    yield Subject("check_kernel", checked(check_kernel), {"kernel": Gaussian(1.0), "points": rng.normal(size=(9, 2))})
    yield Subject("check_engine", checked(check_engine), {"engine": connect("threads:2")})
    yield Subject("check_distribution", checked(check_distribution, rng), {"family": Normal})
    pair = {"kernel": Gaussian(1.0), "p": normal, "q": normal}
    yield Subject("check_expectation", checked(check_expectation, rng), pair)
    yield Subject("check_recalibrator", checked(check_recalibrator, rng, 2), {"recalibrator": Intercept()})


def _of_worlds(y: np.ndarray, p: np.ndarray) -> Iterator[Subject]:
    """Worlds, studies and plans."""
    world = ScoreWorld(BetaScores(), Diagonal())
    yield Subject("fit_curves", fit_curves, {"y_true": y, "y_pred": p})
    yield Subject("fit_world", fit_world, {"y_true": y, "y_pred": p})
    yield Subject("tce", tce, {"world": world, "norm": 2})
    study = {"world": world, "estimators": [ECE()], "sizes": [10], "n_sets": 2}
    yield Subject("bias_study", bias_study, study)
    yield Subject(
        "power_study", power_study, {"worlds": [world], "tests": [ExactTest(ECE(), 19)], "sizes": [10], "n_sets": 2}
    )
    yield Subject("plan", plan, {"n": 100, "k": 2, "budget": 60.0, "memory": "1 GB"})
