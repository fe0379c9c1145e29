"""What the library saved, tampered with: maps, states of monitors and of streams, reports."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    Bernoulli,
    Brier,
    Categorical,
    DebiasedECE,
    Ensemble,
    Monitor,
    Normal,
    Quantiles,
    state,
)
from calibrant import recalibration as r
from calibrant.estimators import UCME, CalibrationRatio, RandomFeatureSKCE
from tests.hostile.content import damaged
from tests.hostile.values import DEEP, tampered

N = 40


@cache
def problems() -> dict[str, tuple[Any, Any]]:
    """Targets and predictions of each kind."""
    rng = np.random.default_rng(1)
    p, q, mu = rng.random(N), rng.dirichlet(np.ones(3), N), rng.normal(size=N)
    return {
        "two classes": ((rng.random(N) < p).astype(int), p),
        "classes": (rng.integers(0, 3, N), q),
        "named": (rng.choice(["a", "b", "c"], N), Categorical(q, labels=["a", "b", "c"])),
        "labels": ((rng.random((N, 2)) < 0.5).astype(int), Bernoulli(rng.random((N, 2)))),
        "numbers": (mu + rng.normal(size=N), Normal(mu, 1.0)),
        "ensemble": (mu, Ensemble(mu[:, None] + rng.normal(size=(N, 5)))),
        "fan": (mu, Quantiles(np.sort(rng.normal(size=(N, 3))), (0.1, 0.5, 0.9))),
    }


RECALIBRATORS: dict[str, list[Any]] = {
    "two classes": [
        r.Temperature(),
        r.Platt(),
        r.BetaScaling(),
        r.Intercept(),
        r.Quadratic(),
        r.Isotonic(),
        r.VennAbers(),
    ],
    "classes": [
        r.Temperature(),
        r.VectorScaling(),
        r.MatrixScaling(),
        r.DirichletScaling(),
        r.StructuredMatrix(),
        r.SharedSpline(),
    ],
    "named": [r.Temperature(), r.OneVsRest(r.Platt()), r.SimplexRidge(), r.NadarayaWatson(), r.Default()],
    "numbers": [r.VarianceScaling(), r.VarianceScaling(bias=True), r.QuantileRecalibration()],
    "ensemble": [r.Dressing()],
    "fan": [r.QuantileRecalibration()],
}
RECALIBRATORS["two classes"] += [
    r.HistogramBinning(),
    r.ScalingBinning(),
    r.SplineScaling(),
    r.Best((r.Platt(), r.Isotonic())),
    r.Stack((r.Platt(), r.Isotonic())),
    r.Default(),
]

STATES: dict[str, list[Any]] = {
    "two classes": [ECE(), Brier(), DebiasedECE(), CalibrationRatio(), SKCE(block=4), RandomFeatureSKCE()],
    "classes": [Brier(), SKCE(block=4), UCME()],
    "numbers": [CRPS(), SKCE(block=4)],
}


@cache
def maps() -> list[tuple[str, str]]:
    """The kind of problem, and the text of a saved map."""
    found = []
    for kind, recalibrators in RECALIBRATORS.items():
        for recalibrator in recalibrators:
            fit = recalibrator.fit(*problems()[kind], folds=2)
            found.append((kind, fit.to_json()))
    return found


@cache
def monitors() -> list[tuple[str, str]]:
    """The kind of problem, and the text of a monitor's state."""
    found = [(kind, Monitor(window=9).update(*problem).to_json()) for kind, problem in problems().items()]
    return [*found, ("two classes", Monitor(window=9).update(np.ones(200, dtype=int), np.full(200, 0.1)).to_json())]


@cache
def states() -> list[tuple[str, str]]:
    """The kind of problem, and the text of the state of a stream."""
    found = []
    for kind, estimators in STATES.items():
        y, p = problems()[kind]
        found += [(kind, json.dumps(state(e, like=(y, p)).update(y, p).to_dict())) for e in estimators]
    y, p = problems()["two classes"]
    return [*found, ("two classes", json.dumps(state(ECE(), Brier()).update(y, p).to_dict()))]


SAVED: dict[str, Callable[[], list[tuple[str, str]]]] = {"map": maps, "monitor": monitors, "state": states}


def hostile_text(chance: random.Random, what: str) -> tuple[str, str, bytes]:
    """How it was tampered with, the kind of problem, and the bytes."""
    kind, text = chance.choice(SAVED[what]())
    way = chance.random()
    if way < 0.7:
        data = json.loads(text)
        for _ in range(chance.choice([1, 1, 2, 3])):
            data = tampered(data, chance)
        return "value", kind, json.dumps(data).encode("utf-8", "surrogatepass")
    if way < 0.95:
        how, content = damaged(text.encode(), chance)
        return how, kind, content
    return (
        "nonsense",
        kind,
        chance.choice([DEEP, "1" + "0" * 5000, "[]", "{}", "null", "", text * 2, text + "x"]).encode(),
    )
