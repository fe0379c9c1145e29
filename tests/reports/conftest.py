import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, Monitor, MultivariateNormal, Normal, Poisson
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem


@pytest.fixture
def problem_of():
    """The problem of a report, with few resamples."""

    def make(y, predictions, weights=None):
        kind = ClassProblem if isinstance(predictions, Categorical | Bernoulli) else ForecastProblem
        return kind(np.asarray(y), predictions, weights, 99, np.random.SeedSequence(0), None)

    return make


def tilted(p, shift):
    """Chances whose log odds are off."""
    return p / (p + (1 - p) * np.exp(-shift))


def stream_of_events(rng, n, change, names):
    p = rng.random(n)
    return (rng.random(n) < np.where(np.arange(n) < change, p, tilted(p, 1.2))) * 1, p


def stream_of_classes(rng, n, change, names):
    p = rng.dirichlet([0.7] * len(names), n)
    truth = p.copy()
    truth[change:, 1] *= 4
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return np.array(names, dtype=object)[y], Categorical(p, names)


def stream_of_labels(rng, n, change, names):
    p = rng.random((n, len(names)))
    truth = p.copy()
    truth[change:, 1] = tilted(truth[change:, 1], -1.2)
    return (rng.random(p.shape) < truth) * 1, Bernoulli(p, names)


def stream_of_numbers(rng, n, change, names):
    spread = np.where(np.arange(n) < change, 1.0, 1.6)
    return spread * rng.normal(size=n), Normal(np.zeros(n), 1.0)


def stream_of_counts(rng, n, change, names):
    rate = rng.gamma(3, 1, n)
    return rng.poisson(rate * np.where(np.arange(n) < change, 1.0, 1.6)), Poisson(rate)


def stream_of_vectors(rng, n, change, names):
    y = rng.normal(size=(n, 2))
    y[change:, 1] += 0.6
    return y, MultivariateNormal(np.zeros((n, 2)), 1.0)


STREAMS = {
    "binary": stream_of_events,
    "multi-class": stream_of_classes,
    "multi-label": stream_of_labels,
    "numbers": stream_of_numbers,
    "counts": stream_of_counts,
    "vectors": stream_of_vectors,
}


@pytest.fixture
def watched():
    """A monitor of a stream of some kind that goes wrong at a row, or at none."""

    def make(kind="binary", n=800, change=400, window=50, names=("cat", "dog", "bird"), **settings):
        seed = 2 if kind == "counts" else 0  # one stream in twenty raises a false alarm before
        rows = STREAMS[kind](np.random.default_rng(seed), n, n if change is None else change, names)
        return Monitor(window=window, **settings).update(*rows)

    return make


@pytest.fixture(params=STREAMS)
def kind_of_stream(request):
    """Every kind of stream in turn."""
    return request.param
