"""The claims of a reliability diagram: one event a row, and how its probabilities are spread."""

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.lenses import Lens, TopLabel, default_lens
from calibrant.results import Table
from calibrant.typing import Array

NARROW = 0.3
"""Probabilities with a smaller range than this are looked at close up."""

CROWDED = 0.5
"""From this share of probabilities on that lie within 5 % of 0 or 1, log-odds show more."""

Claims = tuple[Array, Categorical, np.ndarray | None]
"""Targets, probabilities of one event, and weights."""


def claims_of(targets: Array, predictions: Distribution, weights: np.ndarray | None, lens: Lens | None) -> Claims:
    """One event a row: that of the lens, else the favoured class of several, and each label as a row of its own.

    >>> y, p, _ = claims_of(np.array([[1, 0], [1, 1]]), Bernoulli([[0.9, 0.2], [0.4, 0.7]]), None, None)
    >>> y, p.probs
    (array([1, 0, 1, 1]), array([0.9, 0.2, 0.4, 0.7]))
    """
    if lens is None and isinstance(predictions, Bernoulli):
        w = None if weights is None else np.repeat(weights, predictions.n_labels)
        return to_numpy(targets).reshape(-1), Categorical(to_numpy(predictions.probs).reshape(-1)), w
    if lens is None:
        several = isinstance(predictions, Categorical) and predictions.n_classes > 2
        lens = TopLabel() if several else default_lens(predictions)
    events = lens.events(predictions)
    if len(events) > 1:
        raise InputError(
            f"a reliability diagram shows one event, and {lens!r} has {len(events)}: "
            "see calibrant.plots.classwise, or pick one with PositiveClass(label)"
        )
    return *events[0].problem(targets), weights


def floor_of(n: int) -> float:
    """The least probability on an axis of log-odds: fewer than half a row of n would show nothing; smaller ones go there.

    >>> [floor_of(n) for n in (10, 5_000, 10**8)]
    [0.01, 0.0001, 1e-06]
    """
    return float(np.clip(0.5 / n, 1e-6, 0.01))


def is_crowded(scores: np.ndarray, weights: np.ndarray | None = None) -> bool:
    """Whether most probabilities lie close to 0 or 1."""
    return float(np.average(np.minimum(scores, 1 - scores) <= 0.05, weights=weights)) >= CROWDED


def histogram_of(scores: np.ndarray, weights: np.ndarray | None, floor: float | None = None) -> Table:
    """How probabilities are spread over forty equal parts of [0, 1], or of the range they fill where it is narrow.

    With a ``floor`` the parts are equal in log-odds, and what is nearer to 0 or 1 than the floor goes to the outermost.
    """
    low, high = float(scores.min()), float(scores.max())
    if floor is not None:
        scores = np.clip(scores, floor, 1 - floor)
        ends = np.clip([low, high], floor, 1 - floor)
        low, high = np.log(ends / (1 - ends)) + (np.array([-0.5, 0.5]) if ends[0] == ends[1] else 0)
        edges = 1 / (1 + np.exp(-np.linspace(low, high, 41)))
        edges[[0, -1]] = min(edges[0], scores.min()), max(edges[-1], scores.max())
    elif high - low > NARROW or high == low:
        edges = np.linspace(0, 1, 41)
    else:
        edges = np.linspace(low, high, 41)
    return Table(lower=edges[:-1], upper=edges[1:], weight=np.histogram(scores, edges, weights=weights)[0])
