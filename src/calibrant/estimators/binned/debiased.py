"""Binned errors with the bias of small bins taken off."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.special import erf

from calibrant._validate import InputError, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import LensedEstimator, Statistic
from calibrant.estimators.binned.binning import Binning, Bins, EqualMass, Tally, tally
from calibrant.estimators.binned.ece import ADAPTIVE, ECE, EventCounts, bin_table
from calibrant.estimators.limits import (
    ErrorLimits,
    Moved,
    RootOfSquares,
    Slack,
    SquareWithoutBias,
    SumOfGaps,
    binned_slack,
)
from calibrant.lenses.class_lenses import Event, Lens
from calibrant.results import Estimate, Table
from calibrant.typing import Array

UNKNOWN_WEIGHTS = "a state does not keep the largest weight; DebiasedECE() of all rows has one"
"""Why the error of a stream of weighted rows has no interval."""


@dataclass(frozen=True)
class DebiasedECE(LensedEstimator):
    """Binned calibration error without the bias that comes from the noise in every bin.

    A bin of a calibrated model has a gap, if only by chance, and :class:`~calibrant.ECE` adds up the sizes of these
    gaps. With ``norm=2`` the squared gap of a bin is estimated without bias by the products of residuals ``r = f - y``
    of all pairs of different rows, ``((sum r)^2 - sum r^2) / (n_b (n_b - 1))`` (``method="pairs"``); Kumar, Liang & Ma
    (2019) subtract ``ybar (1 - ybar) / (n_b - 1)`` from it instead (``method="variance"``). With S the mean of these over
    bins, each by its share of the weight, the value is ``sign(S) sqrt(|S|)``: it may be negative, and the mean of its
    signed square over calibrated data is zero. With ``norm=1`` it is ``2 |gap| - E |gap + noise|`` with normal noise of
    variance ``ybar (1 - ybar) / n_b``, whose expectation has a closed form.

    ``confidence_interval()`` covers the error of these bins with the true frequencies of the predictions, as that of
    :class:`~calibrant.ECE` does. It is never negative, and begins with zero where chance explains the error: an estimate below
    zero lies outside of it.

    With weights, a bin has ``n_b = (sum w)^2 / sum w^2`` rows: a row of weight 3 is one draw, and not three.

    Bins of a single row tell nothing of noise. They add nothing with ``singletons="drop"``; ``"keep"`` adds their gap as
    it is, as Roelofs et al. (2022) do.

    >>> from calibrant import ECE, EqualMass
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = (rng.random(1000) < p) * 1
    >>> round(ECE(EqualMass(50), norm=2)(y, p).value, 3), round(DebiasedECE(EqualMass(50))(y, p).value, 3)
    (0.085, -0.033)
    """

    most = 1.0
    least = -1.0

    bins: Binning = EqualMass(15)  # noqa: RUF009  # frozen
    norm: Literal[1, 2] = 2
    lens: Lens | None = None
    method: Literal["pairs", "variance"] = "pairs"
    singletons: Literal["drop", "keep"] = "drop"

    def __post_init__(self) -> None:
        ECE(self.bins, lens=self.lens)  # which checks them
        if self.norm not in (1, 2):
            raise InputError(f"norm must be 1 or 2, for other powers no correction is known; got {self.norm!r}")
        check_one_of(self.method, ("pairs", "variance"), "method")
        check_one_of(self.singletons, ("drop", "keep"), "singletons")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with its bin table."""
        settled, events, lens = self.look(predictions)
        parts = [self._counted(e, e.observed(targets), weights) for e in events]
        return settled.of_counts([e.name for e in events], parts, lens, len(predictions))

    def of_counts(
        self, names: list[str], parts: "list[tuple[Tally, np.ndarray, BinWeights]]", lens: str | None, n: int
    ) -> Estimate:
        """The estimate from what fell into the bins of each event, sums of squared residuals, and weights."""
        terms = [self._terms(t.gap, t.observed, s, w) for t, s, w in parts]
        value = self._root(np.mean([w.shares @ x for x, (_, _, w) in zip(terms, parts, strict=True)]))
        table = bin_table(names, [t for t, _, _ in parts])
        column = np.concatenate([x[w.weight > 0] for x, (_, _, w) in zip(terms, parts, strict=True)])
        slacks = tuple(self._slack(t, s, w, float(w.shares @ x)) for x, (t, s, w) in zip(terms, parts, strict=True))
        withheld = ADAPTIVE if self.bins.is_adaptive else UNKNOWN_WEIGHTS if parts[0][2].largest is None else None
        return Estimate(
            name="debiased ECE",
            value=float(value),
            n=n,
            estimator=self,
            lens=lens,
            table=Table({**table, "debiased": column}),
            limits=None if withheld else ErrorLimits(float(value), slacks, self.norm, self.most),
            withheld=withheld,
        )

    def _slack(self, t: Tally, squares: np.ndarray, w: "BinWeights", found: float) -> Slack:
        """How far the error of one event may lie from the truth: as of the plain error, but measured from this one."""
        mean = t.predicted / np.where(w.weight > 0, w.weight, 1)
        noise = np.maximum(squares, mean * (1 - mean) * w.squares)
        total = float(w.weight.sum())
        plain = binned_slack(t, noise, (1.0 if w.largest is None else w.largest) / total, self.norm)
        if isinstance(plain, SumOfGaps):
            return Moved(plain, float(np.abs(plain.gaps).sum()) - found)
        assert isinstance(plain, RootOfSquares)
        full = w.weight > 0
        alone = full & (w.effective <= 1 + 1e-9)
        # bins of one row are not in the unbiased square: their gaps may be as large as a gap can be
        unseen = float((w.shares * np.maximum(mean, 1 - mean) ** 2)[alone].sum())
        kept = float((w.shares * t.gap**2)[alone].sum()) if self.singletons == "keep" else 0.0
        units = w.squares[full] / (w.weight[full] * total)
        value = float(self._root(np.asarray(found)))
        return SquareWithoutBias(plain, found - kept, value, mean[full], w.shares[full], units, unseen)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Bins, and sums of the predictions in them, are found once; each resample only counts what happened."""
        if self.bins.is_adaptive:
            return super().given(predictions, weights)
        _, events, _ = self.look(predictions)
        bins = [self.bins.bins(e.probability, weights) for e in events]
        return _Resamples(self, tuple(_Prepared.of(e, b, weights) for e, b in zip(events, bins, strict=True)))

    def _counted(
        self, event: Event, observed: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Tally, np.ndarray, "BinWeights"]:
        """What fell into each bin, with the sum of squared residuals."""
        p = event.probability
        bins = self.bins.bins(p, weights, observed)
        cell = bins.of_rows(p, slice(None))
        residual = p.astype(np.float64) - observed
        if weights is not None:
            residual *= weights
        return (
            tally(p, observed, bins, weights, cell),
            np.bincount(cell, weights=residual**2, minlength=len(bins)),
            BinWeights.of(cell, len(bins), weights),
        )

    def _terms(self, gap: np.ndarray, observed: np.ndarray, squares: np.ndarray, w: "BinWeights") -> np.ndarray:
        """What each bin adds, before it is weighted by its share: ``(..., bins)``."""
        total = np.where(w.weight > 0, w.weight, 1)
        frequency = observed / total
        several = w.effective > 1 + 1e-9
        size = np.where(several, w.effective, 2)
        if self.norm == 1:
            noise = np.sqrt(np.maximum(frequency * (1 - frequency), 0) / size)
            corrected = 2 * np.abs(gap) - _mean_absolute(gap, noise)
        elif self.method == "variance":
            corrected = gap**2 - frequency * (1 - frequency) / (size - 1)
        else:
            pairs = np.where(several, w.weight**2 - w.squares, 1)
            corrected = ((gap * w.weight) ** 2 - squares) / pairs
        alone = np.abs(gap) ** self.norm if self.singletons == "keep" else 0.0
        return np.where(several, corrected, alone)

    def _root(self, mean: np.ndarray) -> np.ndarray:
        """A mean square has its sign kept."""
        return mean if self.norm == 1 else np.sign(mean) * np.sqrt(np.abs(mean))


def _mean_absolute(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """``E |X|`` of normal X: ``sd sqrt(2/pi) exp(-mean^2 / 2 sd^2) + mean erf(mean / (sqrt(2) sd))``."""
    safe = np.where(sd > 0, sd, 1)
    z = mean / (np.sqrt(2) * safe)
    return np.where(sd > 0, safe * np.sqrt(2 / np.pi) * np.exp(-(z**2)) + mean * erf(z), np.abs(mean))


@dataclass(frozen=True, eq=False)
class BinWeights:
    """Weights of the rows in each bin and their squares, which the targets do not change, and the largest weight of all rows.

    The ``largest`` is ``None`` where it is not known; then nothing limits what a row that was not seen may add.
    """

    weight: np.ndarray
    squares: np.ndarray
    largest: float | None

    @classmethod
    def of(cls, cell: np.ndarray, size: int, weights: np.ndarray | None) -> Self:
        """Those of rows in cells."""
        count = np.bincount(cell, weights=weights, minlength=size).astype(np.float64)
        if weights is None:
            return cls(count, count, 1.0)
        return cls(count, np.bincount(cell, weights=weights**2, minlength=size), float(weights.max()))

    @property
    def shares(self) -> np.ndarray:
        """How much each bin counts."""
        return self.weight / self.weight.sum()

    @property
    def effective(self) -> np.ndarray:
        """How many rows of equal weight would tell as much; rows without weights are that many."""
        return self.weight**2 / np.where(self.squares > 0, self.squares, 1)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """An event whose targets are resampled: counts of what happened, and what that adds to the squared residuals."""

    counts: EventCounts
    cross: EventCounts
    squares: np.ndarray
    weights: BinWeights

    @classmethod
    def of(cls, event: Event, bins: Bins, weights: np.ndarray | None) -> Self:
        p = event.probability.astype(np.float64)
        cell = bins.of_rows(event.probability, slice(None))
        square = np.ones(len(p)) if weights is None else weights**2
        return cls(
            EventCounts.of(event, bins, weights),
            EventCounts.of(event, bins, square * (1 - 2 * p)),  # (p - y)^2 = p^2 + y (1 - 2p)
            np.bincount(cell, weights=square * p**2, minlength=len(bins)),
            BinWeights.of(cell, len(bins), weights),
        )


@dataclass(frozen=True, eq=False)
class _Resamples:
    estimator: DebiasedECE
    events: tuple[_Prepared, ...]

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return self.estimator._root(np.mean([self._of(e, targets) for e in self.events], axis=0))

    def _of(self, e: _Prepared, targets: np.ndarray) -> np.ndarray:
        observed = e.counts.observed(targets)[:, 0]
        gap = (e.counts.predicted - observed) / np.where(e.weights.weight > 0, e.weights.weight, 1)
        squares = e.squares + e.cross.observed(targets)[:, 0]
        return self.estimator._terms(gap, observed, squares, e.weights) @ e.weights.shares
