"""Warm-started boosting as a recalibrator: the default of Berta et al. (2026), from their package `probmetrics`.

Eight CatBoost models of ten trees, each on seven eighths of the rows and with the given logits as a start; their mean is
put right by quadratic or structured matrix scaling on the rows that each left out. The package fits the eight in
processes of their own; here they are fitted in turn, so that CPU seconds are counted, and forks cannot hang.
"""

import warnings
from collections.abc import Callable, Iterable
from contextlib import chdir
from dataclasses import dataclass
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import numpy as np

from calibrant import Categorical
from calibrant._array import to_numpy
from calibrant.distributions import Distribution
from calibrant.recalibration import Found, Recalibrator
from calibrant.recalibration.maps import ClassMap

IS_INSTALLED = all(find_spec(name) is not None for name in ("probmetrics", "catboost"))
"""`pip install torch probmetrics catboost`, where torch is best the build without CUDA."""


class InTurn:
    """Takes the place of a pool of processes."""

    def __init__(self, processes: int) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: type[BaseException] | BaseException | TracebackType | None) -> None: ...

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
        return [function(task) for task in tasks]


@dataclass(frozen=True)
class Boosting(Recalibrator):
    """The classifier of the package with its own settings."""

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        from probmetrics.classifiers import WS_CatboostClassifier

        assert isinstance(predictions, Categorical)
        assert weights is None
        p = to_numpy(predictions.matrix).astype(np.float64)
        quiet = warnings.catch_warnings(action="ignore")  # of what the package is built on
        with (
            TemporaryDirectory() as folder,
            chdir(folder),
            patch("multiprocessing.Pool", InTurn),
            quiet,
        ):  # it writes files
            model = WS_CatboostClassifier().fit(p, targets)
        return Found(BoostingMap(predictions.n_classes, model))


@dataclass(frozen=True, eq=False)
class BoostingMap(ClassMap):
    n_classes: int
    model: Any

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        found = np.asarray(self.model.predict_proba(p), dtype=np.float64)
        return found / found.sum(axis=1, keepdims=True)
