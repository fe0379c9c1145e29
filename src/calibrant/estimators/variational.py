"""Calibration errors as the risk that recalibration removes, found by cross-fitting."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri, xlog1py, xlogy

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._tasks import elsewhere, mapping
from calibrant._validate import InputError, check_count, check_finite, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.base import BaseEstimator, View, check_lens
from calibrant.estimators.distances import ConvexDistance, Lp
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss
from calibrant.estimators.signs import without_limits
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.recalibration.base import Recalibrator, folds_of_rows
from calibrant.recalibration.maps import Map
from calibrant.recalibration.stacking.default import most_sensitive
from calibrant.results import Estimate, Interval, Table, how_many
from calibrant.typing import Array, ArrayLike, Engine

Loss: TypeAlias = ConvexDistance | Brier | LogLoss
Sign: TypeAlias = Literal["soft", "hard"]

MIN_PROBABILITY = 1e-9
"""The least probability that changes of logits are counted from."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What happened, what was predicted and what a map from other rows makes of it: ``(n,)`` of an event, ``(n, k)`` of vectors.

    ``sure`` is what the map knows of its own direction from f: of an event the expected sign of g - f, of vectors how
    certain the direction is; ``None`` where it knows nothing.
    """

    observed: np.ndarray
    f: np.ndarray
    g: np.ndarray
    sure: np.ndarray | None = None

    @property
    def is_event(self) -> bool:
        """Whether one number per row is predicted."""
        return self.f.ndim == 1

    def towards_the_middle(self, over: bool) -> "Judged":
        """g where it lies from f towards 1/2 (over-confidence), or where it lies further out; f elsewhere."""
        lower, upper = np.minimum(self.f, self.g), np.maximum(self.f, self.g)
        high, low = (lower, upper) if over else (upper, lower)
        middle = np.full_like(self.f, 0.5) if over else self.g
        g = np.where(self.f > 0.5, high, np.where(self.f < 0.5, low, middle))
        return Judged(self.observed, self.f, g, None if self.sure is None else np.where(g == self.f, 0.0, self.sure))

    def removed(self, loss: Loss, sign: Sign) -> np.ndarray:
        """The loss that g in place of f removes from each row, ``(n,)``."""
        if isinstance(loss, Lp):
            soft = self.sure if sign == "soft" else None
            if self.is_event:
                return (np.sign(self.g - self.f) if soft is None else soft) * (self.observed - self.f)
            hard = loss.removed(self._outcomes, self.f, self.g)
            return hard if soft is None else soft * hard
        if isinstance(loss, ConvexDistance):
            return loss.removed(self._outcomes, _two(self.f), _two(self.g))
        before, after = self.losses(loss, self.f), self.losses(loss, self.g)
        # what f calls impossible, and happens, is lost to f whatever the map says of it
        return np.where(np.isinf(before), np.inf, before - np.where(np.isinf(before), 0.0, after))

    def expected(self, loss: Loss, sign: Sign, part: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """By how much :meth:`removed` exceeds its mean, and its variance, ``(n,)``, if ``f + part (g - f)`` was true.

        Few events show less than this variance: where none has happened, all rows tell the same. An event that f calls
        possible and g impossible has an infinite log loss, and so an infinite variance.
        """
        f, slope = _two(self.f), self._by_outcome(loss, sign)
        q = (1 - part) * f + part * _two(self.g)
        observed = np.take_along_axis(slope, self.observed[:, None].astype(np.intp), axis=1)
        with np.errstate(invalid="ignore"):
            mean = np.where(q > 0, q * slope, 0.0).sum(axis=1, keepdims=True)
            variance = np.where(q > 0, q * (slope - mean) ** 2, 0.0).sum(axis=1)
            excess = (observed - mean)[:, 0]
        return excess, np.where(np.isnan(variance), np.inf, variance)

    def _by_outcome(self, loss: Loss, sign: Sign) -> np.ndarray:
        """What each outcome adds to :meth:`removed`, up to a constant per row, ``(n, k)``."""
        f, g = _two(self.f), _two(self.g)
        if isinstance(loss, Brier):
            return (g - f) * (1 if self.is_event else 2)
        if isinstance(loss, LogLoss):
            with np.errstate(divide="ignore"):
                return np.where(f > 0, np.log(g) - np.log(np.where(f > 0, f, 1.0)), 0.0)
        soft = self.sure if isinstance(loss, Lp) and sign == "soft" else None
        if isinstance(loss, Lp) and self.is_event:
            direction = np.sign(self.g - self.f) if soft is None else soft
            return np.stack([np.zeros_like(direction), direction], axis=1)
        slope = loss.gradient(g, f)
        return slope if soft is None else soft[:, None] * slope

    def losses(self, loss: Brier | LogLoss, p: np.ndarray) -> np.ndarray:
        """The proper loss of each row under the predictions p."""
        y = self.observed
        if isinstance(loss, Brier):
            return (p - y) ** 2 if self.is_event else ((p - self._outcomes) ** 2).sum(axis=1)
        if self.is_event:
            return -xlogy(y, p) - xlog1py(1 - y, -p)
        with np.errstate(divide="ignore"):
            return -np.log(p[np.arange(len(y)), y])

    def map_variance(self, loss: Loss, sign: Sign) -> np.ndarray | None:
        """Variances that the noise of the map adds to :meth:`removed`, ``(n,)``; ``None`` where it is not known.

        A row of one fold is judged by a map that a row of another fold helped to make, and the other way round: next to
        calibration, where nothing but noise decides the direction, the sum is a degenerate U-statistic, whose variance
        is twice what the rows show. Far from it directions are sure, and nothing is to be added. In between, with the
        change d of the map t standard deviations from 0, it is the square of the slope of the removed loss in t.
        """
        if self.sure is None:
            return None
        if isinstance(loss, Lp) and self.is_event:
            # the slope of the expected sign 2 Phi(t) - 1; a sign has none: what doubles the variance where t is noise alone
            t = _deviations(self.sure)
            factor = 2 / np.pi * np.exp(-(t**2)) if sign == "soft" else 2**0.5 * np.exp(-(t**2) / 2)
            return np.where(self.g == self.f, 0.0, factor * (self.observed - self.f) ** 2)
        if isinstance(loss, Lp):
            return (1 - self.sure**2) * loss.removed(self._outcomes, self.f, self.g) ** 2
        if isinstance(loss, ConvexDistance):
            return None
        sure = np.abs(self.sure)
        t = _deviations(sure) if self.is_event else sure / np.sqrt(np.maximum(1 - sure**2, np.finfo(np.float64).tiny))
        slope = self._slope(loss)
        return np.divide(slope, t, out=np.zeros_like(slope), where=t > 0) ** 2

    def _slope(self, loss: Brier | LogLoss) -> np.ndarray:
        """How the removed loss grows with the change of logits from f to g, made longer in its own direction."""
        f, g = _two(self.f), _two(self.g)
        change = np.log(np.maximum(g, MIN_PROBABILITY)) - np.log(np.maximum(f, MIN_PROBABILITY))
        change -= (g * change).sum(axis=1, keepdims=True)
        missed = self._outcomes - g
        if isinstance(loss, LogLoss):
            return (missed * change).sum(axis=1)
        return (missed * g * change).sum(axis=1) * (1 if self.is_event else 2)

    @property
    def _outcomes(self) -> np.ndarray:
        """What happened as a one among zeros, ``(n, k)``."""
        return np.eye(2 if self.is_event else self.f.shape[1])[self.observed]


def _two(p: np.ndarray) -> np.ndarray:
    """The probabilities of an event as those of two classes; vectors as they are."""
    return np.stack([1 - p, p], axis=1) if p.ndim == 1 else p


def _deviations(sign: np.ndarray) -> np.ndarray:
    """By how many standard deviations a normal variable with this expected sign is off 0."""
    t: np.ndarray = ndtri((1 + np.clip(sign, -1 + 1e-15, 1 - 1e-15)) / 2)
    return t


def check_proper(loss: Loss) -> Brier | LogLoss:
    """The loss where it is a proper one."""
    if isinstance(loss, Brier | LogLoss):
        return loss
    raise InputError(f"refinement is what is left of a proper loss, Brier() or LogLoss(); got {loss!r}")


LEVEL = 0.95
"""The confidence level of the lower bound."""

SHARED = 2**0.5
"""What standard errors of Lp are multiplied by: rows are judged by maps that they share, whose noise moves them together.

Without it the errors stated of 100 to 700 rows were 70 to 83 % of the spread of estimates, where the model is wrong.
"""

HALVINGS = 6
"""Steps to the least miscalibration that is not ruled out."""

SEEN = -1
"""The fold of rows that are judged by a map which has seen them."""

IN_SAMPLE = "in-sample: the map has seen the rows it is judged by, so the error is overstated"

OVERSTATED = "an error that is overstated by an unknown amount bounds nothing. in_sample=False gives a lower bound"


@dataclass(frozen=True)
class LowerBound:
    """The lower confidence bound of an estimate, at any level; there is no upper one.

    >>> LowerBound(0.1, 0.01)(0.5)
    Interval(low=0.1, high=inf, level=0.5, method='lower confidence bound')
    """

    value: float
    standard_error: float

    def __call__(self, level: float) -> Interval:
        """From the bound up."""
        return Interval(self.value - float(ndtri(level)) * self.standard_error, np.inf, level, "lower confidence bound")


@dataclass(frozen=True)
class Variational(BaseEstimator):
    """A calibration error as the loss that a recalibrator removes from rows it has not seen.

    For any proper loss, ``E loss(f, Y) - min_g E loss(g(f), Y)`` is a calibration error: the squared one for
    ``Brier()``, that of Kullback and Leibler for ``LogLoss()``. For ``Lp(p)`` the mean of
    ``<grad ||g - f||_p, y - f>`` is ``E ||E[y | f] - f||_p`` at the best g; any
    :class:`~calibrant.estimators.ConvexDistance` works alike. With g from the other ``folds`` the estimate is at
    most the error on average over data sets of independent rows, whatever the recalibrator, and may be negative: nothing is
    claimed that new rows do not show. Folds are dealt without looking at what happened: dealt evenly by class, the rows a map
    has learned from would tell it of those it is judged by.

    The result carries a lower confidence bound, ``value - 1.645 standard errors``. Few events show little or no spread by
    themselves. The standard error counts the larger of the spread that rows show and the one they would have if the model was
    calibrated or, where what is removed rules that out, the least wrong of all models between f and g that it does not rule
    out. It allows for map variance, and errs on the large side. Maps that do not know their uncertainty get twice the variance.
    A symmetric interval would be wrong for small errors. There is no bound where a log loss is infinite, or may be as the map
    calls something impossible that the model does not, nor with ``in_sample=True``, which judges rows by a map that has seen
    them and overstates the error. ``repeats`` averages over several splits. ``ExactTest(Variational(...))`` is exact.

    Without a lens it looks at whole vectors of three or more classes, and at the probability of class 1 of two, where all
    ``Lp`` are ``E |E[y | f] - f|``. Lenses ask of events, one by one, and are averaged; the recalibrator sees the
    probability of the event alone, or the whole vector with ``sees="vector"``, which finds a larger error.
    The recalibrator is ``SplineScaling()`` for two classes, ``Default()`` for more. ``sign="soft"`` takes the expected direction of
    g - f for Lp, shorter the less is known, of maps that know it as theirs; ``"hard"`` the direction itself. Berta et al. (2026).

    >>> from calibrant.recalibration import Temperature
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = (rng.random(2_000) < 0.5 * p + 0.25) * 1
    >>> round(Variational(Lp(1), Temperature())(y, p).value, 2)  # the truth is 1/8
    0.14
    """

    loss: Loss = Lp(1)  # noqa: RUF009  # frozen
    recalibrator: Recalibrator | None = None
    folds: int = 5
    repeats: int = 1
    lens: Lens | None = None
    sees: Literal["event", "vector"] = "event"
    sign: Literal["soft", "hard"] = "soft"
    in_sample: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.loss, ConvexDistance | Brier | LogLoss):
            raise InputError(f"loss must be Lp(p), Brier(), LogLoss() or a ConvexDistance; got {self.loss!r}")
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
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None,
        clusters: Clusters | None = None,
    ) -> Estimate:  # fmt: skip
        """The same, a fold being a task of the engine; rows of a cluster share theirs."""
        lens, judged = self._judged(to_numpy(targets), predictions, weights, engine, clusters)
        value, error = self._error(judged, weights)
        is_known = not self.in_sample and np.isfinite(value) and np.isfinite(error)
        bound = LowerBound(value, error) if is_known else None
        return Estimate(
            name=f"variational {self.loss.name}",
            value=value,
            n=len(predictions),
            estimator=replace(self, recalibrator=self._recalibrator(predictions)),
            lens=lens,
            standard_error=self._stated(error, judged) if is_known else None,
            interval=None if bound is None else bound(LEVEL),
            limits=bound,
            notes=(IN_SAMPLE,) if self.in_sample else (),
            withheld=_impossible(judged, self.loss) or (OVERSTATED if self.in_sample else None),
        )

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """With folds of whole clusters, so that no map has seen rows like those it is judged by; without bound."""
        return without_limits(self.estimate_by(None, targets, predictions, weights, clusters))

    def confidence(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None, pos_label: Any = None,
    ) -> Table:  # fmt: skip
        """How much of the error of an event is over-confidence, and how much under-confidence, with standard errors.

        Over-confidence is what remains of the error where g lies from f towards the middle, 1/2; under-confidence where it
        lies further out. For ``Lp`` and ``Brier()`` they add up to the total, row by row.

        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(2_000)
        >>> y = (rng.random(2_000) < 0.5 * p + 0.25) * 1
        >>> from calibrant.recalibration import Temperature
        >>> Variational(Brier(), Temperature()).confidence(y, p)["error"].tolist()
        ['total', 'over-confidence', 'under-confidence']
        """
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        _, judged = self._judged(to_numpy(targets), predictions, weights)
        if not judged[0].is_event:
            raise InputError("over- and under-confidence are those of events: give a lens such as TopLabel()")
        parts = [[rows.towards_the_middle(over) for rows in judged] for over in (True, False)]
        values, errors = zip(*(self._error(part, weights) for part in (judged, *parts)), strict=True)
        return Table(
            error=["total", "over-confidence", "under-confidence"],
            value=list(values),
            standard_error=[self._stated(error, judged) for error in errors],
        )

    def refinement(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None, pos_label: Any = None,
    ) -> Table:  # fmt: skip
        """A proper loss as calibration error and refinement, what no recalibration removes, with standard errors.

        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(2_000)
        >>> table = Variational(Brier()).refinement((rng.random(2_000) < 0.5 * p + 0.25) * 1, p)
        >>> table["part"].tolist(), bool(abs(table["value"][1] + table["value"][2] - table["value"][0]) < 1e-12)
        (['loss', 'calibration error', 'refinement'], True)
        """
        loss = check_proper(self.loss)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        _, judged = self._judged(to_numpy(targets), predictions, weights)
        before, after = (np.mean([rows.losses(loss, p(rows)) for rows in judged], axis=0) for p in _BEFORE_AND_AFTER)
        rows = [_mean_and_error(before, weights), self._error(judged, weights), _mean_and_error(after, weights)]
        values, errors = zip(*rows, strict=True)
        return Table(part=["loss", "calibration error", "refinement"], value=list(values), standard_error=list(errors))

    def _error(self, judged: list[Judged], weights: np.ndarray | None) -> tuple[float, float]:
        """The mean of what is removed, over rows, questions and splits, and its standard error."""
        parts = [rows.removed(self.loss, self.sign) for rows in judged]
        endless = np.isposinf(parts)
        removed = np.where(endless.any(axis=0), np.inf, np.mean(np.where(endless, 0, parts), axis=0))
        map_variance = [rows.map_variance(self.loss, self.sign) for rows in judged]
        known = [part for part in map_variance if part is not None]
        if len(known) < len(judged):  # as much again, as next to calibration
            value, error = _mean_and_error(removed, weights, self._spread(judged, weights, None))
            return value, 2**0.5 * error
        # map variance is at most what it would be if all had the same
        most = np.mean(np.sqrt(known), axis=0) ** 2
        return _mean_and_error(removed, weights, self._spread(judged, weights, most), most)

    def _stated(self, error: float, judged: list[Judged]) -> float:
        """The standard error of the estimate, from that of its lower bound; where maps do not know their noise, it is in there."""
        return error * (SHARED if isinstance(self.loss, Lp) and all(rows.sure is not None for rows in judged) else 1.0)

    def _spread(self, judged: list[Judged], weights: np.ndarray | None, map_variance: np.ndarray | None) -> np.ndarray:
        """Variances of rows if as little was wrong as what is removed does not rule out, of all from nothing to what maps say."""
        n = len(judged[0].observed)
        w = np.full(n, 1 / n) if weights is None else weights / weights.sum()

        def at(part: float) -> tuple[np.ndarray, bool]:
            parts = [rows.expected(self.loss, self.sign, part) for rows in judged]
            # standard deviations of questions and splits add up at most
            spread = np.mean([np.sqrt(variance) for _, variance in parts], axis=0) ** 2
            total = float(w**2 @ (spread + (spread if map_variance is None else map_variance)))
            excess = float(w @ np.mean([excess for excess, _ in parts], axis=0))
            return spread, excess > float(ndtri(LEVEL)) * np.sqrt(total)

        spread, is_ruled_out = at(0.0)
        if not is_ruled_out or not np.isfinite(spread).all():
            return spread
        low, high = 0.0, 1.0
        spread, is_ruled_out = at(high)
        if is_ruled_out:
            return spread
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            some, is_ruled_out = at(middle)
            low, high, spread = (middle, high, spread) if is_ruled_out else (low, middle, some)
        return spread

    def _recalibrator(self, seen: Distribution) -> Recalibrator:
        is_whole = self.lens is None or self.sees == "vector"
        return self.recalibrator or most_sensitive(seen.n_classes if is_whole and isinstance(seen, Categorical) else 2)

    def _judged(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None,
        engine: Engine | None = None, clusters: Clusters | None = None,
    ) -> tuple[str, list[Judged]]:  # fmt: skip
        """The lens, and what maps from the other folds say of the rows of each, for every question and split."""
        if not isinstance(predictions, Categorical | Bernoulli):
            raise InputError(f"Variational looks at class probabilities; got {type(predictions).__name__} predictions")
        if self.sees == "vector" and isinstance(predictions, Bernoulli):
            raise InputError("sees='vector' goes with class probabilities: labels have no common vector")
        n, seeds = len(targets), range(self.seed, self.seed + self.repeats)
        splits = [np.full(n, SEEN) if self.in_sample else folds_of_rows(n, self.folds, i, clusters) for i in seeds]
        if self.lens is None and isinstance(predictions, Categorical) and predictions.n_classes > 2:
            f = to_numpy(predictions.matrix).astype(np.float64)
            fits = [self._cross_fitted(targets, predictions, weights, split, engine) for split in splits]
            return "canonical", [Judged(targets, f, *fit) for fit in fits]
        view = View.of(self.lens, predictions)
        events = [(event, split) for event in view.events for split in splits]
        return view.name, [self._event(*one, targets, predictions, weights, engine) for one in events]

    def _event(
        self, event: Event, split: np.ndarray, targets: np.ndarray, predictions: Distribution,
        weights: np.ndarray | None, engine: Engine | None,
    ) -> Judged:  # fmt: skip
        observed, f = event.observed(targets).astype(np.int64), event.probability.astype(np.float64)
        if self.sees == "event":
            g, sure = self._cross_fitted(observed, Categorical.trusted(f), weights, split, engine)
            return Judged(observed, f, g[:, 1], sure)
        g, _ = self._cross_fitted(targets, predictions, weights, split, engine)
        answer = np.broadcast_to(event.answer, f.shape)
        return Judged(observed, f, np.take_along_axis(g, answer[:, None], axis=1)[:, 0])

    def _cross_fitted(
        self, y: np.ndarray, predictions: Distribution, weights: np.ndarray | None, fold: np.ndarray,
        engine: Engine | None,
    ) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
        """Held-out probabilities ``(n, k)`` and, where maps know them, expected signs or certainties ``(n,)``."""
        recalibrator = self.recalibrator or most_sensitive(predictions.n_classes)  # type: ignore[attr-defined]
        task = partial(_seen_by_others, recalibrator, y, predictions, weights, fold)
        found = list(mapping(elsewhere(engine))(task, [SEEN] if self.in_sample else list(range(self.folds))))
        g, sure = np.empty((len(y), found[0][1].shape[1])), np.full(len(y), np.nan)
        for rest, p, known in found:
            g[rest], sure[rest] = p, known
        check_finite(g, "what the recalibrator's maps give")
        return g, None if np.isnan(sure).any() else sure


def _seen_by_others(
    recalibrator: Recalibrator, y: np.ndarray, predictions: Distribution, weights: np.ndarray | None,
    fold: np.ndarray, k: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:  # fmt: skip
    """The rows of a fold, what a map from all others makes of them, and how certain it is; rows that are seen are their own."""
    rest = np.flatnonzero(fold == k)
    learn = rest if k == SEEN else np.flatnonzero(fold != k)
    found = recalibrator.find(y[learn], predictions[learn], None if weights is None else weights[learn]).map
    p = to_numpy(found.apply(predictions[rest]).matrix)  # type: ignore[attr-defined]
    return rest, p, _certainty(found, predictions[rest])


_BEFORE_AND_AFTER: tuple[Callable[[Judged], np.ndarray], ...] = (lambda rows: rows.f, lambda rows: rows.g)


def _certainty(found: Map, predictions: Distribution) -> np.ndarray | float:
    """Of two classes the expected sign of g - f, of more how certain its direction is, where the map knows; NaN else."""
    p = to_numpy(predictions.matrix).astype(np.float64)  # type: ignore[attr-defined]
    known = getattr(found, "direction" if p.shape[1] == 2 else "certainty", None)
    return np.nan if known is None else known(p)


def _mean_and_error(
    values: np.ndarray, weights: np.ndarray | None,
    spread: np.ndarray | float = 0.0, map_variance: np.ndarray | float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """The weighted mean and its standard error.

    ``spread`` are variances of single rows below which their own spread is not believed, ``map_variance`` those that come on top.
    """
    n = len(values)
    w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    if np.isposinf(values[w > 0]).any():
        return np.inf, np.inf
    mean = float(w @ values)
    if np.isinf(mean):
        return mean, np.inf
    shown = max(float(w**2 @ (values - mean) ** 2), float((w**2 * spread).sum()))
    return mean, float(np.sqrt((shown + (w**2 * map_variance).sum()) * n / (n - 1)))


def _impossible(judged: list[Judged], loss: Loss) -> str | None:
    """Why there is no bound, where a log loss is or may be infinite."""
    if not isinstance(loss, LogLoss):
        return None
    before, after = (
        np.any([np.isinf(rows.losses(loss, p(rows))) for rows in judged], axis=0) for p in _BEFORE_AND_AFTER
    )
    if before.any():
        rows = how_many(int(before.sum()), "row was", "rows were")
        return (
            f"{rows} predicted to be impossible, and happened: the log loss is infinite. Variational(Brier()) is finite"
        )
    if after.any() or not all(np.isfinite(rows.expected(loss, "hard")[1]).all() for rows in judged):
        seen = f", {int(after.sum()):,} of which happened" if after.any() else ""
        return (
            f"the recalibrator calls rows impossible that the model does not{seen}: their log loss is infinite. Take one that "
            "does not, such as Default()"
        )
    return None
