"""Every public name, as something that can be called with good or with hostile arguments."""

import inspect
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from calibrant import ECE, Brier, Categorical, Monitor, Normal
from calibrant._names import PACKAGES, Words, homes
from calibrant.distributions import Distribution
from calibrant.kernels import Kernel
from calibrant.recalibration import Recalibrator
from calibrant.spec import parse
from tests.hostile.arrays import N, hostile_array
from tests.hostile.others import Subject

PLAIN = {
    "results": "values that the library makes",
    "checks": "their arguments are classes under test",
    "engines": "their arguments are engines",
    "io": "files",
    "losses": "tensors",
    "lab": "worlds, and samples of scores",
    "reports": "pages, of which one takes seconds",
}
"""Packages whose names take no predictions of users, or are in ``others`` or ``tools``."""

ELSEWHERE = (
    "dimensions",
    "coordinate",
    "Recalibrated",
    "Foreign",
    "westfall_young",
    "Truncated",
    "Censored",
    "Mixture",
)
"""What ``others`` gives a distribution, or statistics of resamples."""

TEXTS = {
    "Bootstrap": "Bootstrap(Brier(), 19)",
    "Jackknife": "Jackknife(Brier())",
    "WithInterval": "WithInterval(Brier())",
    "ExactTest": "ExactTest(ECE(), 19)",
    "AggregatedTest": "AggregatedTest(n_resamples=19)",
    "RankTest": "RankTest()",
    "ShuffleTest": "ShuffleTest(ECE(), 19)",
    "PairedDifference": "PairedDifference(Brier())",
    "Edges": "Edges((0, 1))",
    "WildBootstrapTest": "WildBootstrapTest(n_resamples=19)",
    "ConsistencyTest": "ConsistencyTest(ECE())",
    "BootstrapTest": "BootstrapTest(n_resamples=19)",
    "Exceeds": "Exceeds(0.5)",
    "Within": "Within(0.0, 1.0)",
    "Scaled": "Scaled(Gaussian(1.0), 2.0)",
    "Sum": "Sum((Gaussian(1.0), Exponential(1.0)))",
    "Variational": "Variational()",
    "Product": "Product((Gaussian(1.0), Exponential(1.0)))",
    "Gaussian": "Gaussian(1.0)",
    "Exponential": "Exponential(1.0)",
    "Best": "Best((Platt(), Isotonic()))",
    "Stack": "Stack((Platt(), Isotonic()))",
    "OneVsRest": "OneVsRest(Platt())",
    "Matern": "Matern(1.5, 1.0)",
    "ReliabilityCurve": "ReliabilityCurve(n_resamples=19)",
    "MeanOverEvents": "ECE()",
    "IntervalScore": "IntervalScore(0.9)",
    "ThresholdError": "ThresholdError((0.5,))",
    "EnergyScore": "EnergyScore()",
}
"""Settings of classes that need some, or are slow without."""


@cache
def words() -> Words:
    """What texts may name."""
    return Words("estimators", "inference", "kernels", "lenses", "residuals", "recalibration")


def subjects() -> Iterator[Subject]:
    """All that take data."""
    rng = np.random.default_rng(2)
    p, mu = rng.random(N), rng.normal(size=N)
    y = (rng.random(N) < p).astype(int)
    events: dict[str, Any] = {"y_true": y, "y_pred": p}
    numbers: dict[str, Any] = {"y_true": mu, "y_pred": Normal(mu, 1.0)}
    for package in PACKAGES:
        if package in PLAIN:
            continue
        for name, home in homes(package).items():
            if name in ELSEWHERE:
                continue
            value = getattr(import_module(home), name)
            if inspect.isclass(value):
                yield from _of_class(name, value, events, numbers)
            elif inspect.isfunction(value):
                yield from _of_function(name, value, events)


def _of_class(name: str, kind: type, events: dict[str, Any], numbers: dict[str, Any]) -> Iterator[Subject]:
    if issubclass(kind, Distribution):
        if not inspect.isabstract(kind):
            fields = [p.name for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
            yield Subject(name, kind, dict.fromkeys(fields, np.full(N, 0.5)))
        return
    one = _instance(name, kind)
    if one is None:
        return
    if isinstance(one, Recalibrator):
        yield Subject(name, one.fit, {**events, "sample_weight": None})
    elif isinstance(one, Monitor):
        yield Subject(name, one.update, events)
    elif callable(one) and not isinstance(one, Kernel):
        parameters = [*inspect.signature(one).parameters]
        if parameters[:2] != ["y_true", "y_pred"]:
            return
        weights = {"sample_weight": None} if "sample_weight" in parameters else {}
        for data in (events, numbers):
            try:
                one(**data)
            except ValueError:  # of predictions of another kind
                continue
            yield Subject(name, one, {**data, **weights})


def _instance(name: str, kind: type) -> Any:
    """One with usual settings; nothing of what needs others."""
    if name in TEXTS:
        return parse(TEXTS[name], words())
    try:
        return kind()
    except (TypeError, ValueError):
        return None


def _of_function(name: str, function: Callable[..., Any], events: dict[str, Any]) -> Iterator[Subject]:
    parameters = inspect.signature(function).parameters
    named = {"by": ["a", "b"] * (N // 2), "sample_weight": None, "predictions": events["y_pred"], "pvalues": [0.1, 0.5]}
    data = {key: {**events, **named}[key] for key in parameters if key in {**events, **named}}
    settings = {"measure": ECE(), "estimator": Brier()}
    extra = {"before": Categorical([0.2] * N), "after": Categorical([0.3] * N)}
    needed = {key for key, p in parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
    data |= {key: extra[key] for key in needed & set(extra)}
    said = {key: settings[key] for key in needed & set(settings)}
    if data and needed <= set(data) | set(said):
        yield Subject(name, partial(function, **said), data)


def hostile_call(chance: random.Random, subject: Subject) -> tuple[str, dict[str, Any]]:
    """What is odd, and the arguments of which one is hostile, or two."""
    arguments, odd = dict(subject.good), []
    for _ in range(chance.choice([1, 1, 2])):
        parameter = chance.choice(list(subject.good))
        kind, value = hostile_array(chance)
        arguments[parameter] = value
        odd.append(f"{parameter}: {kind}")
    return ", ".join(odd), arguments
