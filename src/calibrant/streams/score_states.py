"""Means over rows, ratios of observed to expected events, and binned errors without their bias, of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._numerics.sums import BLOCK, UNIT, sum_any, to_float, to_text, total
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import View
from calibrant.estimators.binned.binning import Tally, tally
from calibrant.estimators.binned.debiased import BinWeights, DebiasedECE
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.estimators.scoring_rules.proper_scores import INFINITE_LOSS, Score
from calibrant.estimators.smooth.weak_calibration import CalibrationRatio
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.results import Estimate
from calibrant.spec import parse
from calibrant.streams.base import (
    NAMES,
    PairSums,
    SumState,
    as_count,
    check_events,
    exact_sums,
    family_of,
    quotient,
)
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class ScoreState(SumState):
    """What a mean loss and its interval need to know of the rows so far: nine sums without rounding, and four extremes.

    Scores by draws (:class:`~calibrant.CRPS` of families without a closed form) draw anew for each part: the parts then
    change the score within the noise of the draws. There is no table (of the levels of :class:`~calibrant.Pinball`, say).

    >>> from calibrant import Brier
    >>> monday, tuesday = (ScoreState(Brier()).update(*rows) for rows in (([1, 0], [0.8, 0.4]), ([1], [0.5])))
    >>> monday.merge(tuesday).finalize().value == Brier()([1, 0, 1], [0.8, 0.4, 0.5]).value
    True
    """

    kind = "score"

    estimator: Score
    n: int = 0
    family: str | None = None
    losses: PairSums = field(default=PairSums(), repr=False)
    shape: "LossShape | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Score):
            raise InputError(f"estimator must be a score such as Brier(); got {self.estimator!r}")

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        losses = to_numpy(self.estimator.losses(targets, predictions)).astype(np.float64)
        sums = PairSums.of(losses) if weights is None else PairSums.of(losses * weights, weights)
        shape = LossShape.of(self.estimator, losses, weights, predictions)
        return replace(self, n=len(predictions), family=family_of(predictions), losses=sums, shape=shape)

    def joined(self, other: Self) -> Self:
        """All sums added."""
        shape = None if self.shape is None or other.shape is None else self.shape + other.shape
        return replace(self, n=self.n + other.n, losses=self.losses + other.losses, shape=shape)

    def result(self) -> Estimate:
        """The mean loss, its standard error and limits."""
        sums, mean = self.losses, self.losses.ratio
        if not np.isfinite(mean):
            return Estimate(self.estimator.name, mean, self.n, self.estimator, withheld=INFINITE_LOSS)
        shape = self.shape or LossShape()
        limits = MeanLimits(
            mean=mean,
            n=shape.counted or self.n,
            squares=sums.squares / sums.second**2,
            cubes=shape.cubes(sums) / sums.second**3,
            share=shape.heaviest / sums.second,
            lowest=shape.lowest,
            highest=shape.highest,
            least=self.estimator.least,
            most=self.estimator.most,
        )
        found = self.estimator.of_limits(limits, self.n, shape.needed)
        return found if self.shape else replace(found, withheld="the state was written without cubes of losses")

    def sums(self) -> dict[str, Any]:
        """Sums as texts, extremes as numbers."""
        return {"losses": self.losses.to_list(), "shape": None if self.shape is None else self.shape.to_list()}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        shape = sums.get("shape")
        return cls(
            estimator,
            n,
            family,
            PairSums.from_list(sums["losses"]),
            None if shape is None else LossShape.from_list(shape),
        )


@dataclass(frozen=True)
class LossShape:
    """How skewed losses are: ``sum a^3``, ``sum a^2 w``, ``sum a w^2`` and ``sum w^3`` of ``a = w loss``, and extremes.

    ``lowest`` and ``highest`` are the losses one must reckon with, ``heaviest`` is the largest weight, ``counted`` are the rows
    that have any, and ``needed`` those that an interval needs.
    """

    sums: tuple[int, int, int, int] = (0, 0, 0, 0)
    lowest: float = np.inf
    highest: float = -np.inf
    heaviest: float = 0.0
    counted: int = 0
    needed: int = 2

    @classmethod
    def of(
        cls, score: Score, losses: np.ndarray, weights: np.ndarray | None, predictions: Distribution
    ) -> "LossShape | None":
        """Of the losses of some rows; none where one is infinite."""
        if not np.isfinite(losses).all():
            return None
        w = np.ones(len(losses)) if weights is None else np.asarray(weights, dtype=np.float64)
        a = w * losses
        lowest, highest = score.likely(losses, predictions)
        with np.errstate(over="ignore"):
            terms = (a**3, a**2 * w, a * w**2, w**3)
        if not all(np.isfinite(x).all() for x in terms):
            return None
        sums: Any = tuple(total(x) for x in terms)
        return cls(sums, lowest, highest, float(w.max()), int(np.count_nonzero(w)), score.needs(predictions))

    def __add__(self, other: "LossShape") -> "LossShape":
        return LossShape(
            sums=tuple(x + y for x, y in zip(self.sums, other.sums, strict=True)),  # type: ignore[arg-type]
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            heaviest=max(self.heaviest, other.heaviest),
            counted=self.counted + other.counted,
            needed=max(self.needed, other.needed),
        )

    def cubes(self, losses: PairSums) -> float:
        """``sum (a - R w)^3`` with the mean ``R``, without rounding but that of single cubes."""
        (first, second, *_), (aaa, aab, abb, bbb) = losses.sums, self.sums
        numerator = aaa * second**3 - 3 * aab * first * second**2 + 3 * abb * first**2 * second - bbb * first**3
        return quotient(numerator, second**3 << UNIT)

    def to_list(self) -> list[Any]:
        """Plain data for JSON."""
        return [*to_text(self.sums), self.lowest, self.highest, self.heaviest, self.counted, self.needed]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Self:
        """The shape of :meth:`to_list`."""
        lowest, highest, heaviest, counted, needed = data[4:]
        sums: Any = exact_sums(data[:4], 4)
        return cls(sums, float(lowest), float(highest), float(heaviest), as_count(counted), as_count(needed))


@dataclass(frozen=True, eq=False)
class RatioState(SumState):
    """What :class:`CalibrationRatio` and its interval need to know of the rows so far: five sums per event, without rounding.

    >>> state = RatioState().update([1, 0, 1], [0.6, 0.2, 0.7]).update([1, 0], [0.3, 0.2])
    >>> state.finalize().value
    1.5
    """

    kind = "ratio"

    estimator: CalibrationRatio = CalibrationRatio()  # noqa: RUF009  # frozen
    n: int = 0
    family: str | None = None
    lens: Lens | None = None
    lens_name: str | None = None
    events: Mapping[str, PairSums] = field(default_factory=dict, repr=False)
    weights: PairSums = field(default=PairSums(), repr=False)  # frozen

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, CalibrationRatio):
            raise InputError(f"estimator must be a CalibrationRatio; got {self.estimator!r}")

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        view = View.of(self.estimator.lens, predictions)
        w = np.ones(len(predictions)) if weights is None else weights
        events = {
            e.name: PairSums.of(w * e.observed(targets).astype(np.float64), w * e.probability.astype(np.float64))
            for e in view.events
        }
        about = {"family": family_of(predictions), "lens": view.lens, "lens_name": view.name}
        return replace(self, n=len(predictions), events=events, weights=PairSums.of(w), **about)  # type: ignore[arg-type]

    def joined(self, other: Self) -> Self:
        """All sums added."""
        check_events(self.events, other.events)
        events = {name: sums + other.events[name] for name, sums in self.events.items()}
        return replace(self, n=self.n + other.n, events=events, weights=self.weights + other.weights)

    def result(self) -> Estimate:
        """The ratio with its interval; the mean over several events."""
        found = [
            self.estimator.of_sums(
                sums.first, sums.second, sums.squares if sums.second > 0 else 0.0, self.n, self._weight_of_event(sums)
            )
            for sums in self.events.values()
        ]
        return self.estimator.assembled(found, list(self.events), self.lens, self.lens_name, self.n)

    def sums(self) -> dict[str, Any]:
        """Five sums per event, and those of the weights."""
        events = {name: sums.to_list() for name, sums in self.events.items()}
        about = {"lens": repr(self.lens), "lens_name": self.lens_name}
        return {**about, "events": events, "weights": self.weights.to_list()}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        events = {name: PairSums.from_list(texts) for name, texts in sums["events"].items()}
        weights = PairSums.from_list(sums["weights"])
        return cls(estimator, n, family, parse(sums["lens"], NAMES), sums["lens_name"], events, weights)

    def _weight_of_event(self, sums: PairSums) -> float:
        """``sum w^2 y / sum w y``, the weight of a typical event; ``sum w^2 / sum w`` where nothing happened yet."""
        a, _, aa, *_ = sums.sums if sums.sums[0] else self.weights.sums
        return quotient(aa, a)


@dataclass(frozen=True, eq=False)
class DebiasedState(SumState):
    """What :class:`~calibrant.DebiasedECE` with fixed bins needs to know of the rows so far: six sums per bin and event.

    ``sums`` has, of each event, rows of exact whole numbers: the two of a :class:`Tally`, ``sum (w r)^2`` with the residuals
    ``r = f - y``, and ``sum w^2``.

    >>> from calibrant import DebiasedECE, EqualWidth
    >>> state = DebiasedState(DebiasedECE(EqualWidth(2))).update([1, 0], [0.9, 0.2]).update([1, 0], [0.7, 0.4])
    >>> whole = DebiasedECE(EqualWidth(2))([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.4])
    >>> bool(abs(state.finalize().value - whole.value) < 1e-12)
    True
    """

    kind = "debiased"

    estimator: DebiasedECE
    n: int = 0
    family: str | None = None
    lens: Lens | None = None
    lens_name: str | None = None
    events: Mapping[str, tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, DebiasedECE) or not self.estimator.bins.is_fixed:
            raise InputError(
                "a state keeps sums in bins that do not depend on the data: use DebiasedECE(EqualWidth(15)), or take the bins "
                f"from a first sample, state(..., like=(y_true, y_pred)); got {self.estimator!r}"
            )

    def of_rows(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Self:
        """The sums of these rows."""
        settled, events, name = self.estimator.look(predictions)
        found = {e.name: self._of_event(e, e.observed(targets), weights) for e in events}
        about: dict[str, Any] = {"lens": settled.lens, "lens_name": name, "family": family_of(predictions)}
        return replace(self, n=len(predictions), events=found, **about)

    def _of_event(self, event: Event, observed: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
        p = event.probability
        bins = self.estimator.bins.bins(p)
        counted, size = tally(p, observed, bins, weights), len(bins)
        w = np.ones(len(p)) if weights is None else weights
        residual_squares, weight_squares = (np.zeros(size, dtype=object) for _ in range(2))
        for start in range(0, len(p), BLOCK):
            rows = slice(start, start + BLOCK)
            cell, residual = bins.of_rows(p, rows), p[rows].astype(np.float64) - observed[rows]
            residual_squares += sum_any((w[rows] * residual) ** 2, cell, size)
            weight_squares += sum_any(w[rows] ** 2, cell, size)
        return counted.mass, counted.score, residual_squares, weight_squares

    def joined(self, other: Self) -> Self:
        """All sums added."""
        check_events(self.events, other.events)
        pairs = {name: zip(sums, other.events[name], strict=True) for name, sums in self.events.items()}
        added = {name: tuple(a + b for a, b in sums) for name, sums in pairs.items()}
        return replace(self, n=self.n + other.n, events=added)

    def result(self) -> Estimate:
        """The error with its bin table."""
        bins, parts = self.estimator.bins.bins(np.zeros(0)), []
        for mass, score, residual_squares, weight_squares in self.events.values():
            counted = Tally(bins, mass, score)
            squares = to_float(weight_squares)
            are_ones = counted.weight.sum() == self.n == squares.sum()
            weights = BinWeights(counted.weight, squares, 1.0 if are_ones else None)
            parts.append((counted, to_float(residual_squares), weights))
        settled = replace(self.estimator, lens=self.lens)
        return settled.of_counts(list(self.events), parts, self.lens_name, self.n)

    def sums(self) -> dict[str, Any]:
        """Five sums a bin and event."""
        events = {name: [to_text(part) for part in sums] for name, sums in self.events.items()}
        return {"lens": repr(self.lens), "lens_name": self.lens_name, "events": events}

    @classmethod
    def revived(cls, estimator: Any, n: int, family: str | None, sums: Mapping[str, Any]) -> Self:
        """The state of such a text."""
        size = len(estimator.bins.bins(np.zeros(0)))
        sizes = 2 * size, 2 * size, size, size
        events = {
            name: tuple(np.array(exact_sums(part, m), dtype=object) for part, m in zip(parts, sizes, strict=True))
            for name, parts in sums["events"].items()
        }
        return cls(estimator, n, family, parse(sums["lens"], NAMES), sums["lens_name"], events)
