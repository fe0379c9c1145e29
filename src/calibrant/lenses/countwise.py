"""Forecasts of counts as class probabilities: 0, 1, 2, ..., and one class for all that is more."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.discrete.count_families import Counts
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.lenses.thresholds import RangeEvent
from calibrant.typing import Array, ArrayLike

MAX_LAST_SHARE = 0.01
"""Share of the targets that predictions may expect in the last class."""

MAX_COUNTS = 1000
"""More classes than this are not chosen unasked."""


@dataclass(frozen=True)
class CountWise(Lens):
    """Each count in turn against the rest, up to ``most``, which stands for all larger ones, too.

    Through this lens a forecast of counts has the errors of a classifier with ``most + 1`` classes: class-wise errors, as in
    ``ECE(lens=CountWise())``, and errors of whole vectors, as in ``CanonicalECE()(*CountWise()(y_true, y_pred))``, which are
    those of countable targets, ``E sum_k |P(Y = k | P) - P(k)|^p``, on a support that is cut off. With p = 1 merging classes can
    only lower such an error, so that it is a lower bound that grows with ``most``. With p > 1 it may raise it: gaps of 0.1 and
    0.1 have a sum of squares of 0.02, and 0.04 when merged.

    If not given, ``most`` is the first count that the predictions expect to be exceeded by at most one target in a hundred.
    It depends on the predictions alone, so that exact tests stay exact. Takes ``Poisson``, ``NegativeBinomial``, mixtures of
    those, and ensembles of counts. Widmann, Lindsten & Zachariah (2021), appendix G.

    >>> from calibrant import Poisson
    >>> from calibrant.lenses import CountWise
    >>> y_true, y_pred = CountWise(most=2)([0, 1, 7], Poisson([0.5, 1.0, 2.0]))
    >>> y_true, y_pred.labels
    (array([0, 1, 2]), ('0', '1', '2 or more'))
    >>> y_pred.probs.round(3)
    array([[0.607, 0.303, 0.09 ],
           [0.368, 0.368, 0.264],
           [0.135, 0.271, 0.594]])
    """

    most: int | None = None

    name = "count-wise"

    def __post_init__(self) -> None:
        if self.most is not None:
            check_count(self.most, "most")

    def classes(self, predictions: Distribution) -> Categorical:
        """Probabilities of 0, 1, ..., and of ``most`` or more, ``(n, most + 1)``."""
        if not _are_counts(predictions):
            raise InputError(f"{self!r} looks at forecasts of counts; got {type(predictions).__name__} predictions")
        most = _exceeded_rarely(predictions) if self.most is None else self.most
        upto = np.stack([_cdf(predictions, k) for k in range(most)], axis=1)
        ends = np.zeros((len(predictions), 1)), np.ones((len(predictions), 1))
        probs = np.diff(np.concatenate([ends[0], upto, ends[1]], axis=1), axis=1)
        return Categorical(probs, (*map(str, range(most)), f"{most} or more"))

    def events(self, predictions: Distribution) -> tuple[Event, ...]:
        """As many events as classes."""
        p = self.classes(predictions)
        ends = [*range(p.n_classes - 1), np.inf]
        return tuple(
            RangeEvent(name, p.probability(k), low=k, high=end)
            for k, (name, end) in enumerate(zip(p.class_names, ends, strict=True))
        )

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> tuple[Array, Categorical]:
        """The problem of classes."""
        targets, predictions = as_problem(y_true, y_pred, Classes(labels, pos_label))
        p = self.classes(predictions)
        return np.minimum(to_numpy(targets), p.n_classes - 1).astype(np.int64), p


def _are_counts(predictions: Distribution) -> bool:
    if isinstance(predictions, Mixture):
        return all(_are_counts(component) for component in predictions.components)
    if isinstance(predictions, Ensemble) and predictions.members.ndim == 2:
        members = to_numpy(predictions.members)
        return bool(np.all((members >= 0) & (members == np.floor(members))))
    return isinstance(predictions, Counts)


def _cdf(predictions: Distribution, k: int) -> np.ndarray:
    return to_numpy(predictions.cdf(np.full(len(predictions), float(k))))


def _exceeded_rarely(predictions: Distribution) -> int:
    """The least count, above zero, beyond which the predictions expect few enough targets."""
    low, high = 0, 1
    while 1 - _cdf(predictions, high).mean() > MAX_LAST_SHARE:
        low, high = high, 2 * high
        if high > 2 * MAX_COUNTS:
            raise InputError(
                "the predictions expect more than 1,000 different counts: say how many, CountWise(most=...)"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 1 - _cdf(predictions, middle).mean() > MAX_LAST_SHARE else (low, middle)
    return high
