"""Calibration errors as the risk that recalibration removes, found by cross-fitting."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri, xlog1py, xlogy

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.lensed import View, check_lens
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.lenses import Event, Lens
from calibrant.recalibration.base import Map, Recalibrator
from calibrant.recalibration.default import Default
from calibrant.recalibration.folds import folds_of_rows
from calibrant.results import Estimate, Interval, Table
from calibrant.typing import Array, ArrayLike

LEVEL = 0.95
"""The confidence level of the lower bound."""

SHARED = 2**0.5
"""Next to calibration the spread is larger than that of independent rows by so much: each of two rows in different folds
decides over the direction of the other, as in a degenerate U-statistic, whose variance is twice the sum of squares."""


@dataclass(frozen=True)
class Lp:
    """The distance ``||E[y | f] - f||_p`` of what happens from what was predicted, averaged over rows.

    >>> Lp(2)
    Lp(p=2)
    """

    p: float = 1

    def __post_init__(self) -> None:
        if not isinstance(self.p, int | float) or isinstance(self.p, bool) or not self.p >= 1:
            raise InputError(f"p must be a number of at least 1, or inf; got {self.p!r}")

    def gradient(self, gap: np.ndarray) -> np.ndarray:
        """The gradient of the norm at gaps ``(n, k)``; 0 where there is none, the first largest for p = inf."""
        size = np.abs(gap)
        largest = size.max(axis=1, keepdims=True)
        if np.isinf(self.p):
            first = np.arange(gap.shape[1]) == size.argmax(axis=1)[:, None]
            return np.where(first, np.sign(gap), 0.0)
        share = size / np.where(largest > 0, largest, 1.0)  # powers of shares of the largest cannot vanish
        norm = (share**self.p).sum(axis=1, keepdims=True) ** (1 / self.p)
        slope = np.sign(gap) * (share / np.where(norm > 0, norm, 1.0)) ** (self.p - 1)
        return np.where(largest > 0, slope, 0.0)


@dataclass(frozen=True)
class Variational(BaseEstimator):
    """A calibration error as the loss that a recalibrator removes from rows it has not seen.

    For any proper loss, ``E loss(f, Y) - min_g E loss(g(f), Y)`` is a calibration error: the squared one for
    ``Brier()``, that of Kullback and Leibler for ``LogLoss()``. For ``Lp(p)`` the mean of
    ``<grad ||g - f||_p, y - f>`` is ``E ||E[y | f] - f||_p`` at the best g. With g from the other ``folds`` the estimate is
    a lower bound on average, whatever the recalibrator, and may be negative: nothing is claimed that new rows do not
    show. The result carries a lower confidence bound, ``value - 1.645 sqrt(2) standard errors``: the root of two is what
    the rows of different folds, which decide over each other's directions, add to the spread next to calibration, and a
    margin elsewhere. A symmetric interval would be wrong for small errors. ``repeats`` averages over several splits.

    Without a lens it looks at whole vectors of three or more classes, and at the probability of class 1 of two, where all
    ``Lp`` are ``E |E[y | f] - f|``. Lenses ask of events, one by one, and are averaged; the recalibrator sees the
    probability of the event alone, or the whole vector with ``sees="vector"``, which finds a larger error.
    ``sign="soft"`` takes, for Lp, the expected direction of g - f where the map knows its uncertainty (as that of
    ``Default()`` does), which is shorter the less is known; ``"hard"`` the direction itself. Berta et al. (2026).

    >>> from calibrant.recalibration.temperature import Temperature
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = (rng.random(2_000) < 0.5 * p + 0.25) * 1
    >>> round(Variational(Lp(1), Temperature())(y, p).value, 2)  # the truth is 1/8
    0.14
    """

    loss: Lp | Brier | LogLoss = Lp(1)  # frozen
    recalibrator: Recalibrator | None = None
    folds: int = 5
    repeats: int = 1
    lens: Lens | None = None
    sees: Literal["event", "vector"] = "event"
    sign: Literal["soft", "hard"] = "soft"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Lp | Brier | LogLoss):
            raise InputError(f"loss must be Lp(p), Brier() or LogLoss(); got {self.loss!r}")
        if not isinstance(self.recalibrator, Recalibrator | None):
            raise InputError(f"recalibrator must be a recalibrator such as Temperature(); got {self.recalibrator!r}")
        check_count(self.folds, "folds", least=2)
        check_count(self.repeats, "repeats")
        check_count(self.seed, "seed", least=0)
        check_lens(self.lens)
        check_one_of(self.sees, ("event", "vector"), "sees")
        check_one_of(self.sign, ("soft", "hard"), "sign")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The mean of what recalibration removes from held-out rows, with its lower bound."""
        held_out = self._held_out(to_numpy(targets), predictions, weights)
        differences = np.mean([self._removed(h) for h in held_out.answers], axis=0)
        value, error = _mean_and_error(differences, weights)
        bound = Interval(value - SHARED * float(ndtri(LEVEL)) * error, np.inf, LEVEL, "lower confidence bound")
        return Estimate(
            name=f"variational {_named(self.loss)}",
            value=value,
            n=len(predictions),
            estimator=replace(self, recalibrator=self._recalibrator()),
            reduction=held_out.reduction,
            standard_error=error,
            interval=bound,
        )

    def confidence(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Table:
        """How much of the error of an event is over-confidence, and how much under-confidence, with standard errors.

        Over-confidence is what remains of the error where g lies from f towards the middle, 1/2; under-confidence where it
        lies further out. For ``Lp`` and ``Brier()`` they add up to the total, row by row.

        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(2_000)
        >>> y = (rng.random(2_000) < 0.5 * p + 0.25) * 1
        >>> from calibrant.recalibration.temperature import Temperature
        >>> Variational(Brier(), Temperature()).confidence(y, p)["error"].tolist()
        ['total', 'over-confidence', 'under-confidence']
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        held_out = self._held_out(to_numpy(targets), predictions, weights)
        if held_out.is_vector:
            raise InputError("over- and under-confidence are those of events: give a lens such as TopLabel()")
        kinds = {"total": None, "over-confidence": True, "under-confidence": False}
        rows = []
        for over in kinds.values():
            parts = [self._removed(h if over is None else h.towards_the_middle(over)) for h in held_out.answers]
            rows.append(_mean_and_error(np.mean(parts, axis=0), weights))
        values, errors = zip(*rows, strict=True)
        return Table(error=list(kinds), value=list(values), standard_error=list(errors))

    def _recalibrator(self) -> Recalibrator:
        return Default() if self.recalibrator is None else self.recalibrator

    def _held_out(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> "_HeldOut":
        """What maps from the other folds say of the rows of each, for every question and every split."""
        if not isinstance(predictions, Categorical | Bernoulli):
            raise InputError(f"Variational looks at class probabilities; got {type(predictions).__name__} predictions")
        if self.lens is None and isinstance(predictions, Categorical) and predictions.n_classes > 2:
            y, f = targets, to_numpy(predictions.matrix).astype(np.float64)
            answers = [_Answers(y, f, *self._cross_fitted(y, predictions, weights, r)) for r in range(self.repeats)]
            return _HeldOut("canonical", tuple(answers), is_vector=True)
        view = View.of(self.lens, predictions)
        if self.sees == "vector" and isinstance(predictions, Bernoulli):
            raise InputError("sees='vector' goes with class probabilities: labels have no common vector")
        answers = [
            self._event(event, targets, predictions, weights, r) for event in view.events for r in range(self.repeats)
        ]
        return _HeldOut(view.reduction, tuple(answers), is_vector=False)

    def _event(
        self, event: Event, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, repeat: int
    ) -> "_Answers":
        happened, f = event.happened(targets).astype(np.int64), event.probability.astype(np.float64)
        if self.sees == "event":
            g, direction = self._cross_fitted(happened, Categorical(f), weights, repeat)
            return _Answers(happened, f, g[:, 1], direction)
        g, _ = self._cross_fitted(targets, predictions, weights, repeat)
        answer = np.broadcast_to(event.answer, f.shape)
        return _Answers(happened, f, np.take_along_axis(g, answer[:, None], axis=1)[:, 0], None)

    def _cross_fitted(
        self, y: np.ndarray, predictions: Distribution, weights: np.ndarray | None, repeat: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Held-out probabilities ``(n, k)`` and, where maps know them, expected signs or certainties ``(n,)``."""
        fold = folds_of_rows(y, self.folds, self.seed + repeat)
        recalibrator = self._recalibrator()
        g: np.ndarray | None = None
        signs = np.full(len(y), np.nan)
        for k in range(self.folds):
            learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            found = recalibrator.find(y[learn], predictions[learn], None if weights is None else weights[learn]).map
            p = to_numpy(found.apply(predictions[rest]).matrix)  # type: ignore[attr-defined]
            g = np.empty((len(y), p.shape[1])) if g is None else g
            g[rest] = p
            signs[rest] = _expected_signs(found, predictions[rest])
        assert g is not None
        return g, None if np.isnan(signs).any() else signs

    def _removed(self, held: "_Answers") -> np.ndarray:
        """The loss that each held-out row lost, ``(n,)``."""
        y, f, g = held.happened, held.f, held.g
        if f.ndim == 1:
            if isinstance(self.loss, Lp):
                soft = held.signs if self.sign == "soft" else None
                return (np.sign(g - f) if soft is None else soft) * (y - f)
            if isinstance(self.loss, Brier):
                return (f - y) ** 2 - (g - y) ** 2
            return xlogy(y, g) + xlog1py(1 - y, -g) - xlogy(y, f) - xlog1py(1 - y, -f)
        rows = np.arange(len(y))
        if isinstance(self.loss, LogLoss):
            with np.errstate(divide="ignore"):
                return np.log(g[rows, y]) - np.log(f[rows, y])
        residual = np.eye(f.shape[1])[y] - f
        if isinstance(self.loss, Brier):
            return (residual**2).sum(axis=1) - ((residual - (g - f)) ** 2).sum(axis=1)
        removed = (self.loss.gradient(g - f) * residual).sum(axis=1)
        return removed if held.signs is None or self.sign == "hard" else held.signs * removed


@dataclass(frozen=True, eq=False)
class _Answers:
    """What happened, what was predicted and what held-out maps make of it: ``(n,)`` of an event, ``(n, k)`` of vectors."""

    happened: np.ndarray
    f: np.ndarray
    g: np.ndarray
    signs: np.ndarray | None = None

    def towards_the_middle(self, over: bool) -> "_Answers":
        """g where it lies from f towards 1/2 (over-confidence), or where it lies further out; f elsewhere."""
        lower, upper = np.minimum(self.f, self.g), np.maximum(self.f, self.g)
        high, low = (lower, upper) if over else (upper, lower)
        middle = np.full_like(self.f, 0.5) if over else self.g
        g = np.where(self.f > 0.5, high, np.where(self.f < 0.5, low, middle))
        return _Answers(
            self.happened, self.f, g, None if self.signs is None else np.where(g == self.f, 0.0, self.signs)
        )


@dataclass(frozen=True, eq=False)
class _HeldOut:
    reduction: str
    answers: tuple[_Answers, ...]
    is_vector: bool


def _expected_signs(found: Map, predictions: Distribution) -> np.ndarray | float:
    """Of two classes the expected sign of g - f, of more how certain its direction is, where the map knows; NaN else."""
    p = to_numpy(predictions.matrix).astype(np.float64)  # type: ignore[attr-defined]
    known = getattr(found, "direction" if p.shape[1] == 2 else "certainty", None)
    return np.nan if known is None else known(p)


def _mean_and_error(values: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    w = np.full(len(values), 1 / len(values)) if weights is None else weights / weights.sum()
    mean = float(w @ values)
    with np.errstate(invalid="ignore"):  # an infinite loss has no spread
        return mean, float(np.sqrt((w**2 * (values - mean) ** 2).sum() * len(values) / (len(values) - 1)))


def _named(loss: Lp | Brier | LogLoss) -> str:
    return f"L{loss.p:g}" if isinstance(loss, Lp) else loss.name
