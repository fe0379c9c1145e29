"""Data and published numbers of the regressions of Widmann, Lindsten & Zachariah (2021)."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

QUANTITIES = ("NLL", "MSE", "pinball", "SKCE (unbiased)", "SKCE (biased)", "p-value")
"""What was published of every model: accuracy first, then calibration."""

EXACT = "p-value, exact"
MEASURED = (*QUANTITIES, EXACT)
"""What is measured here: the published test is a bootstrap, and this library has an exact one."""

SKCES = slice(3, 5)
"""Where the two estimates of the kernel error stand among the quantities."""

Data = Literal["train", "test"]
DATA: tuple[Data, ...] = ("train", "test")


@dataclass(frozen=True, eq=False)
class Sample:
    """Features ``(n,)`` or ``(n, d)`` and targets ``(n,)``."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Models:
    """Normal models of the same targets ``(n,)``: means ``(k, n)``, and a standard deviation each, ``(k,)``."""

    targets: np.ndarray
    means: np.ndarray
    sds: np.ndarray


@dataclass(frozen=True, eq=False)
class Published:
    """Ten networks after some iterations of training, and what was published of them.

    ``of_models`` is ``(10, 6)`` and ``of_ensemble`` ``(6,)``, in the order of :data:`QUANTITIES`. ``all_pairs`` are the
    unbiased and the biased SKCE of the ensemble over all pairs of components, by an independent program: the published
    ones leave pairs out.
    """

    models: Models
    of_models: np.ndarray
    of_ensemble: np.ndarray
    all_pairs: np.ndarray


@cache
def least_squares() -> dict[str, Any]:
    """Samples to fit and to validate, and the numbers to find.

    >>> case = least_squares()
    >>> len(case["train"].y), len(case["validation"].y), case["published"]["p-value"]
    (100, 50, 0.04625)
    """
    case = _read("least_squares.json")
    return {**case, "train": _sample(case["train"]), "validation": _sample(case["validation"])}


@cache
def friedman() -> dict[Data, Sample]:
    """Features in ten dimensions and targets.

    >>> {name: sample.x.shape for name, sample in friedman().items()}
    {'train': (100, 10), 'test': (50, 10)}
    """
    return {name: _sample(_friedman()[name]) for name in DATA}


@cache
def networks() -> dict[tuple[int, Data], Published]:
    """The published networks, by iteration and data.

    >>> sorted({iteration for iteration, _ in networks()})
    [0, 10, 100, 500, 1000, 1500]
    """
    found = {}
    for iteration, case in _friedman()["iterations"].items():
        for name in DATA:
            part = {key: np.array(values) for key, values in case[name].items()}
            models = Models(friedman()[name].y, part["loc"], np.array(case["scale"]))
            found[int(iteration), name] = Published(models, part["models"], part["ensemble"], part["all pairs"])
    return found


@cache
def _friedman() -> dict[str, Any]:
    return _read("friedman.json")


def _read(name: str) -> dict[str, Any]:
    return json.loads(files("studies.widmann").joinpath(name).read_text(encoding="utf-8"))


def _sample(columns: dict[str, Any]) -> Sample:
    return Sample(np.array(columns["x"]), np.array(columns["y"]))
