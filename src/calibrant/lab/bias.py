"""How far off estimators are, and how often tests see it: studies with the Monte-Carlo error of every number."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from calibrant._validate import InputError
from calibrant.lab.problems import World
from calibrant.lab.study import Measure, Progress, Study
from calibrant.results import Table
from calibrant.results.words import brief
from calibrant.typing import Engine

Measures: TypeAlias = Mapping[str, Measure] | Sequence[Measure]
"""Measures by name; those of a list are named by their settings."""


def bias_study(
    world: World,
    estimators: Measures,
    sizes: Sequence[int],
    n_sets: int = 200,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
    path: str | PathLike[str] | None = None,
) -> Table:
    """Bias, standard deviation and root mean squared error of estimators on data sets of a world with known truth.

    Columns ending in ``_error`` are Monte-Carlo standard errors of the column before: ``sd / sqrt(n_sets)`` for the bias,
    and those of normal values for ``sd`` and ``rmse``. ``engine``, ``progress`` and ``path`` are those of
    :class:`~calibrant.lab.study.Study`.

    >>> from calibrant import ECE, EqualMass
    >>> from calibrant.lab.problems import BetaScores, ScoreWorld
    >>> table = bias_study(ScoreWorld(BetaScores()), {"few": ECE(EqualMass(5)), "many": ECE(EqualMass(50))}, [500], 50)
    >>> table["estimator"].tolist(), table["bias"].round(2)
    (['few', 'many'], array([0.03, 0.1 ]))
    """
    table = Study([world], sizes, _named(estimators, "estimators"), n_sets, seed)(
        engine=engine, progress=progress, path=path
    )
    if np.any(np.isfinite(table["rejected"])):
        raise InputError("estimators must give numbers, not p-values: for tests there is power_study")
    sd, bias, rmse = table["sd"], table["bias"], table["rmse"]
    spread = np.sqrt(2 * sd**4 + 4 * sd**2 * bias**2)  # of the squared error of a normal value
    with np.errstate(invalid="ignore"):
        return Table(
            n=table["n"],
            estimator=table["measure"],
            truth=table["truth"],
            mean=table["mean"],
            bias=bias,
            bias_error=sd / np.sqrt(n_sets),
            sd=sd,
            sd_error=sd / np.sqrt(2 * (n_sets - 1)),
            rmse=rmse,
            rmse_error=spread / (2 * rmse * np.sqrt(n_sets)),
        )


def power_study(
    worlds: Mapping[str, World] | Sequence[World],
    tests: Measures,
    sizes: Sequence[int],
    n_sets: int = 200,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
    path: str | PathLike[str] | None = None,
) -> Table:
    """How often tests reject at level ``alpha``, world by world: their level where it is calibrated, else their power.

    ``error`` is the Monte-Carlo standard error of the share, ``low`` and ``high`` are its exact 95 % limits.

    >>> from calibrant import ECE, EqualMass, ExactTest
    >>> from calibrant.lab.problems import BetaScores, Power, ScoreWorld
    >>> worlds = {"right": ScoreWorld(BetaScores()), "wrong": ScoreWorld(BetaScores(), Power(2))}
    >>> power_study(worlds, {"exact": ExactTest(ECE(EqualMass(5)), 19)}, [200], 20)["rejected"]
    array([0.05, 1.  ])
    """
    names = list(worlds) if isinstance(worlds, Mapping) else [world.name for world in worlds]
    some = list(worlds.values()) if isinstance(worlds, Mapping) else list(worlds)
    table = Study(some, sizes, _named(tests, "tests"), n_sets, seed, alpha)(engine=engine, progress=progress, path=path)
    if np.any(np.isnan(table["rejected"])):
        raise InputError("tests must give p-values: for estimators there is bias_study")
    rejected = table["rejected"]
    titles = {world.name: name for world, name in zip(some, names, strict=True)}
    return Table(
        world=[titles[name] for name in table["world"].tolist()],
        n=table["n"],
        test=table["measure"],
        rejected=rejected,
        error=np.sqrt(rejected * (1 - rejected) / n_sets),
        low=table["rejected_low"],
        high=table["rejected_high"],
    )


def _named(measures: Measures, name: str) -> list[tuple[str, Measure]]:
    """Pairs for a study."""
    if isinstance(measures, Mapping):
        return list(measures.items())
    if callable(measures):
        raise InputError(f"{name} must be a list, or a dictionary of names; got {measures!r}")
    return [(_title(measure), measure) for measure in measures]


def _title(measure: Callable[..., Any]) -> str:
    return getattr(measure, "__name__", None) or brief(measure)
