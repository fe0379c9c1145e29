"""Public names that take points, distributions, several models, statistics or tensors, and good arguments for each."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from calibrant import ECE, SKCE, Bernoulli, Brier, EqualMass, Mixture, MultivariateNormal, Normal, Poisson, state
from calibrant.distributions import Censored, Foreign, Truncated, check_positive_definite, coordinate, dimensions
from calibrant.inference import (
    HosmerLemeshow,
    PairedDifference,
    RankTest,
    differences,
    interval_of_share,
    westfall_young,
)
from calibrant.kernels import (
    Cityblock,
    Energy,
    Euclidean,
    Exponential,
    Gaussian,
    Identity,
    LabelMatrix,
    Matern,
    Metric,
    expectation,
)
from calibrant.lab import EmpiricalScores, fit_scores
from calibrant.lenses import CountWise, MultiLabel, exceeds, within
from calibrant.plots import comparison
from calibrant.recalibration import Recalibrated
from calibrant.reports import before_and_after, evaluate, judge
from calibrant.reports import compare as compared_report
from calibrant.streams import from_bins, merged
from tests.hostile.arrays import N


class Subject(NamedTuple):
    """A public name, what is called, and the good arguments of the parameters that take data."""

    name: str
    call: Callable[..., Any]
    good: dict[str, Any]


def others() -> Iterator[Subject]:
    """All of them."""
    rng = np.random.default_rng(3)
    yield from _of_points(rng)
    yield from _of_distributions(rng)
    yield from _of_models(rng)
    yield from _of_parts(rng)


def _of_points(rng: np.random.Generator) -> Iterator[Subject]:
    """Kernels and distances."""
    functions = [Exponential(1.0), Exponential(1.0, power=1.5), Gaussian(1.0), Matern(1.5, 1.0), Energy(), Identity()]
    functions += [Gaussian(1.0, Cityblock()), Gaussian(1.0) + Energy(), Gaussian(1.0) * Energy(), 2.0 * Energy()]
    metrics: list[Metric] = [Euclidean(), Cityblock()]
    for function in (*functions, *metrics):
        for d in (1, 3, 20):
            x = rng.normal(size=(N, d))
            yield Subject(repr(function), function, {"x": x, "y": x + 1})
    labels = rng.integers(0, 2, (N, 1))
    yield Subject("LabelMatrix", LabelMatrix(((1.0, 0.5), (0.5, 1.0))), {"x": labels, "y": labels})
    yield Subject("resolve", Gaussian().resolve, {"points": rng.normal(size=(N, 2))})


def _of_distributions(rng: np.random.Generator) -> Iterator[Subject]:
    """Functions of distributions, and distributions of distributions."""
    normal, vectors = Normal(rng.normal(size=N), 1.0), MultivariateNormal(rng.normal(size=(N, 2)), scale=1.0)
    yield Subject("dimensions", dimensions, {"predictions": vectors})
    yield Subject("coordinate", lambda predictions: coordinate(predictions, 0), {"predictions": vectors})
    yield Subject("Foreign", Foreign, {"source": _Gumbel()})
    yield Subject("Truncated", Truncated, {"base": normal, "low": -9.0, "high": 9.0})
    yield Subject("Censored", Censored, {"base": normal, "low": -9.0, "high": 9.0})
    yield Subject(
        "Mixture", lambda a, b, weights: Mixture((a, b), weights), {"a": normal, "b": normal, "weights": None}
    )
    data = {"base": normal, "scores": [-1.0, 1.0], "values": [-0.5, 0.5]}
    yield Subject("Recalibrated", Recalibrated, data)
    yield Subject("expectation", lambda p, q: expectation(Gaussian(1.0), p, q), {"p": normal, "q": normal})
    yield Subject(
        "positive", lambda predictions: check_positive_definite(Gaussian(1.0), predictions), {"predictions": normal}
    )


class _Gumbel:
    """A distribution of another library."""

    def cdf(self, x: Any) -> Any:
        """``exp(-exp(-x))``."""
        return np.exp(-np.exp(-np.asarray(x)))

    def ppf(self, u: Any) -> Any:
        """Its inverse."""
        return -np.log(-np.log(u))


def _of_models(rng: np.random.Generator) -> Iterator[Subject]:
    """What compares predictions, and what asks for one kind of them; pages only take data that are refused soon."""
    p, mu = rng.random(N), rng.normal(size=N)
    y, counts = (rng.random(N) < p).astype(int), rng.poisson(2.0, N)
    two = {"y_true": y, "a": p, "b": p**2, "sample_weight": None}

    def of_two(call: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
        return lambda y_true, a, b, sample_weight: call(
            y_true, {"a": a, "b": b}, sample_weight=sample_weight, n_resamples=99, **settings
        )

    yield Subject("differences", of_two(lambda *data, **more: differences(Brier(), *data, **more)), two)
    yield Subject("comparison", of_two(lambda *data, **more: comparison(Brier(), *data, **more)), two)
    yield Subject("reports.compare", of_two(compared_report), two)
    pair = {"y_true": y, "pred_a": p, "pred_b": p**2, "sample_weight": None}
    yield Subject("PairedDifference", PairedDifference(Brier()), pair)
    one = {"y_true": y, "y_pred": p, "sample_weight": None}
    yield Subject("HosmerLemeshow", HosmerLemeshow(1), one)
    yield Subject("RankTest", RankTest(n_resamples=19), {"y_true": mu, "y_pred": rng.normal(size=(N, 9))})
    yield Subject("CountWise", CountWise(), {"y_true": counts, "y_pred": Poisson(np.full(N, 2.0))})
    yield Subject(
        "MultiLabel", MultiLabel(), {"y_true": rng.integers(0, 2, (N, 3)), "y_pred": Bernoulli(rng.random((N, 3)))}
    )
    numbers = {"y_true": mu, "y_pred": Normal(mu, 1.0)}
    yield Subject("exceeds", exceeds, {**numbers, "threshold": 0.0})
    yield Subject("within", within, {**numbers, "low": -1.0, "high": 1.0})

    def page(call: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
        return lambda by, **data: call(**data, by=None if by is None else {"x": by}, n_resamples=99, **settings)

    yield Subject("evaluate", page(evaluate, advice=False), {**one, "by": None})
    yield Subject("judge", page(judge), {**one, "by": None})
    after = {"y_true": y, "y_pred": p, "better": p**2, "sample_weight": None}
    yield Subject("before_and_after", lambda **data: before_and_after(**data, n_resamples=99), after)


def _of_parts(rng: np.random.Generator) -> Iterator[Subject]:
    """States, statistics and samples of scores."""
    p = rng.random(N)
    y = (rng.random(N) < p).astype(int)
    first = {"y_true": y, "y_pred": p}
    yield Subject("state", lambda y_true, y_pred: state(ECE(EqualMass(3)), like=(y_true, y_pred)), first)
    for estimator in (ECE(), Brier()):
        one = state(estimator, like=(y, p))
        yield Subject("update", one.update, {**first, "sample_weight": None})
    yield Subject("merged", merged, {"texts": [json.dumps(state(ECE()).update(y, p).to_dict())]})
    yield Subject("from_bins", lambda rows: from_bins(ECE(), rows), {"rows": [(0, 20, 1.0, 1)]})
    yield Subject("westfall_young", westfall_young, {"statistics": rng.random(3), "largest": rng.random(9)})
    yield Subject("interval_of_share", interval_of_share, {"successes": 1, "trials": 9, "level": 0.9})
    yield Subject("fit_scores", fit_scores, {"scores": p})
    yield Subject("EmpiricalScores", EmpiricalScores, {"scores": p})


def of_tensors() -> Iterator[Subject]:
    """Losses and heads, which take tensors: what torch can read becomes one."""
    from calibrant import losses

    def given(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda outputs, targets: call(_as_tensor(outputs), _as_tensor(targets))

    rng = np.random.default_rng(4)
    two, labels = rng.normal(size=(N, 2)), rng.integers(0, 2, N)
    kernel = SKCE(Exponential(0.5))
    for loss in (
        losses.FocalLoss(),
        losses.LabelSmoothing(),
        losses.CalibrationLoss(kernel),
        losses.SharpnessRegularised(),
        losses.squared_error,
        losses.class_head,
        losses.CalibrationLoss(losses.SoftBinnedECE()),
    ):
        yield Subject(f"{loss}".split("(")[0], given(loss), {"outputs": two, "targets": labels})
    for head in (losses.normal_head, losses.mixture_head):
        outputs = two if head is losses.normal_head else rng.normal(size=(N, 6))
        yield Subject(head.__name__, given(head), {"outputs": outputs, "targets": rng.normal(size=N)})


def _as_tensor(x: Any) -> Any:
    import torch

    try:
        return torch.as_tensor(x.copy() if isinstance(x, np.ndarray) else x)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return x
