"""Estimators that average, over rows, what happened around each: by kernel regression on the simplex."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant._array import as_double, as_number, is_traced, matched, namespace, to_numpy
from calibrant._softmax import Softmax
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic, View, check_lens
from calibrant.estimators.simplex.dirichlet import Bandwidth, likeliest_bandwidth
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.results import Estimate, Table, how_many
from calibrant.typing import Array, Engine


@dataclass(frozen=True, eq=False)
class Question:
    """Points of the simplex ``(n, K)``, and the outcomes whose frequencies around them are asked for.

    Whole vectors ask for the frequencies of all K classes. An event has the points ``(1 - q, q)`` and asks for the
    second alone. Frequencies are compared with the points, or with another ``reference``, ``(n, q)``.
    """

    name: str
    points: Array
    event: Event | None = None
    reference: Array | None = None

    @classmethod
    def of_vectors(cls, predictions: Categorical) -> Self:
        """All classes at once."""
        return cls("canonical", as_double(predictions.matrix))

    @classmethod
    def of_event(cls, event: Event) -> Self:
        """One event."""
        q = as_double(event.predicted)
        return cls(event.name, namespace(q).stack([1 - q, q], axis=1), event)

    @property
    def first(self) -> int:
        """The first class whose frequency is asked for."""
        return 0 if self.event is None else 1

    @property
    def predicted(self) -> Array:
        """The probabilities of the outcomes asked for, ``(n, q)``."""
        return self.points[:, self.first :] if self.reference is None else self.reference

    def outcomes(self, targets: Array) -> Array:
        """Class numbers from 0 to K - 1, ``(n,)``, for targets of the problem; ``(m, n)`` for m resamples on the host."""
        if self.event is None:
            return targets
        if isinstance(targets, np.ndarray):
            return self.event.observed(targets).view(np.uint8)
        return self.event.problem(targets)[0]

    def observed(self, outcomes: Array) -> Array:
        """Whether each outcome asked for occurred, ``(..., n, q)`` as booleans, for outcomes ``(..., n)``."""
        classes = matched(np.arange(self.first, self.points.shape[1]), outcomes)
        return outcomes[..., None] == namespace(outcomes).astype(classes, outcomes.dtype)

    def asked(self, local: Softmax) -> Softmax:
        """The averages of the outcomes asked for."""
        cut = slice(self.first, None)
        return Softmax(local.log_sum, local.mean[:, cut], local.squares, local.mean_of_squares[:, cut])


def questions(lens: Lens | None, predictions: Distribution) -> tuple[list[Question], str]:
    """The questions a lens asks, or whole vectors where there is none and classes are several; and their name."""
    if lens is None and isinstance(predictions, Categorical) and predictions.n_classes > 2:
        return [Question.of_vectors(predictions)], "canonical"
    view = View.of(lens, predictions)
    return [Question.of_event(event) for event in view.events], view.name


INDICATORS = 1 << 24
"""Numbers that say which outcomes occurred, for as many resamples as are looked at together."""


@dataclass(frozen=True, eq=False)
class Around:
    """What a question adds up: the terms of all rows, their shares in the mean, and what a row's weight changes."""

    question: Question
    bandwidth: Bandwidth
    is_empty: Array
    shares: Array
    terms: Array
    influence: np.ndarray | None

    @property
    def mean(self) -> Array:
        """The mean over rows."""
        return namespace(self.terms).sum(self.shares * self.terms)

    def notes(self) -> Iterator[str]:
        """What a reader must know."""
        if self.bandwidth.note:
            yield self.bandwidth.note
        if not is_traced(self.is_empty) and (alone := int(to_numpy(self.is_empty).sum())):
            yield f"{how_many(alone, 'row is', 'rows are')} alone with the zeros of their probabilities and left out"


class LocalResamples:
    """The means of a question for resampled outcomes; subclasses write :meth:`means`."""

    question: Question

    @abstractmethod
    def means(self, outcomes: np.ndarray) -> np.ndarray:
        """The mean of the terms of m resamples of the outcomes ``(m, n)``."""

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The same of targets, some resamples at a time."""
        outcomes = self.question.outcomes(targets)
        n, q = self.question.predicted.shape
        size = max(1, INDICATORS // (n * q))
        parts = [outcomes[start : start + size] for start in range(0, len(outcomes), size)]
        return np.concatenate([self.means(part) for part in parts])


class LocalEstimator(BaseEstimator):
    """The mean over rows of what was found around them; several questions are averaged.

    Subclasses are frozen dataclasses with the fields ``bandwidth`` and ``lens``; they write :meth:`around` and
    :meth:`resamples`, and :meth:`finished` where the mean is not the value.
    """

    name: ClassVar[str]

    bandwidth: float | Literal["loo", "cv"]
    lens: Lens | None

    rules: ClassVar[tuple[str, ...]] = ("loo",)
    """Words for bandwidths that are to be found."""

    no_interval: ClassVar[str] = (
        "what kernels smooth away moves the value from the truth, by an amount that is not known"
    )
    """Why no interval around the value would hold the truth."""

    def __post_init__(self) -> None:
        check_lens(self.lens)
        is_number = isinstance(self.bandwidth, int | float | np.number) and not isinstance(self.bandwidth, bool)
        if self.bandwidth not in self.rules and not (is_number and 0 < float(self.bandwidth) < np.inf):
            words = " or ".join(map(repr, self.rules))
            raise InputError(f"bandwidth must be a positive number, or {words} to find one; got {self.bandwidth!r}")

    @abstractmethod
    def around(
        self, question: Question, outcomes: Array, weights: np.ndarray | None, engine: Engine | None = None
    ) -> Around:
        """The terms of a question, for its outcomes ``(n,)``."""

    @abstractmethod
    def resamples(self, question: Question, weights: np.ndarray | None) -> LocalResamples:
        """The means of resamples of a question on the host; what depends on predictions alone is done once."""

    def finished(self, mean: Array) -> Array:
        """The value from the mean of the terms."""
        return mean

    def slope_of_finish(self, mean: float, error: float) -> float | None:
        """The derivative of :meth:`finished`; ``None`` where it is no straight line within this error of the mean."""
        return 1.0

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean over questions; on NumPy arrays, with a given bandwidth, with a standard error."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same, some rows being a task of the engine."""
        if len(predictions) < 2:
            raise InputError(f"{type(self).__name__} compares each row with the others: at least two rows are needed")
        asked, lens = questions(self.lens, predictions)
        around = [self.around(question, question.outcomes(targets), weights, engine) for question in asked]
        values = [self.finished(a.mean) for a in around]
        notes = dict.fromkeys(note for a in around for note in a.notes())
        several = len(around) > 1
        return Estimate(
            name=self.name,
            value=as_number(sum(values[1:], start=values[0]) / len(values)),
            n=len(predictions),
            estimator=self if several else replace(self, bandwidth=around[0].bandwidth.value),  # type: ignore[type-var]
            lens=lens,
            standard_error=self._standard_error(around),
            table=_table(around, values) if several and not is_traced(values[0]) else None,
            notes=tuple(notes),
            withheld=self.no_interval,
        )

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """What depends on predictions alone is done once."""
        asked, _ = questions(self.lens, predictions)
        host = [replace(question, points=to_numpy(question.points)) for question in asked]
        return _MeanOfQuestions(self, tuple(self.resamples(question, weights) for question in host))

    def likeliest(self, question: Question, weights: np.ndarray | None) -> Bandwidth:
        """The bandwidth that is given, or the likeliest."""
        if not isinstance(self.bandwidth, str):
            return Bandwidth(float(self.bandwidth))
        if is_traced(question.points):
            raise InputError("give a bandwidth: none can be found for values that are being traced")
        return likeliest_bandwidth(question.points, weights)

    def _standard_error(self, around: list[Around]) -> float | None:
        """The infinitesimal jackknife: the root of the sum of squared influences; what is found is not known to it."""
        influences = []
        for a in around:
            if isinstance(self.bandwidth, str) or a.influence is None:
                return None
            slope = self.slope_of_finish(float(a.mean), _size(a.influence))
            if slope is None:
                return None
            influences.append(slope * a.influence)
        return _size(np.mean(influences, axis=0))


def shares_of_rows(is_empty: Array, weights: np.ndarray | None, like: Array) -> Array:
    """What each row counts in the mean, ``(n,)``: nothing where it has no neighbours."""
    xp = namespace(like)
    w = xp.ones_like(like) if weights is None else xp.astype(matched(weights, like), like.dtype)
    w = xp.where(is_empty, xp.zeros_like(w), w)
    total = xp.sum(w)
    if not is_traced(total) and float(total) == 0:
        raise InputError("no row has a neighbour: each is alone with the zeros of its probabilities")
    return w / total


def signed_root(x: Array, p: float) -> Array:
    """The p-th root of the size, with the sign; flat at zero, where a root has no derivative."""
    xp = namespace(x)
    is_zero = x == 0
    size = xp.where(is_zero, xp.ones_like(x), xp.abs(x))
    return xp.where(is_zero, xp.zeros_like(x), xp.sign(x) * size ** (1 / p))


def slope_of_root(x: float, p: float, error: float) -> float | None:
    """The derivative of the root; ``None`` within two standard errors of zero, where it is far from straight."""
    return abs(x) ** (1 / p - 1) / p if p == 1 or abs(x) > 2 * error else None


def _size(influence: np.ndarray) -> float:
    n = len(influence)
    return float(np.sqrt(n / (n - 1) * np.sum(influence**2)))


def _table(around: list[Around], values: list[Any]) -> Table:
    return Table(
        event=[a.question.name for a in around],
        bandwidth=[a.bandwidth.value for a in around],
        value=[float(to_numpy(value)) for value in values],
    )


@dataclass(frozen=True, eq=False)
class _MeanOfQuestions:
    estimator: LocalEstimator
    parts: tuple[LocalResamples, ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The value of each resample."""
        return np.mean([self.estimator.finished(part(targets)) for part in self.parts], axis=0)
