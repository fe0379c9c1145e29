"""Rows judged by maps that have not seen them: the loss each one lost, and how much of that is the luck of the map."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtri, xlog1py, xlogy

from calibrant._validate import InputError
from calibrant.estimators.distances import ConvexDistance, Lp
from calibrant.estimators.scores import Brier, LogLoss

Loss: TypeAlias = ConvexDistance | Brier | LogLoss
Sign: TypeAlias = Literal["soft", "hard"]

LEAST = 1e-9
"""The least probability that changes of logits are counted from."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What happened, what was predicted and what a map from other rows makes of it: ``(n,)`` of an event, ``(n, k)`` of vectors.

    ``sure`` is what the map knows of its own direction from f: of an event the expected sign of g - f, of vectors how
    certain the direction is; ``None`` where it knows nothing.
    """

    happened: np.ndarray
    f: np.ndarray
    g: np.ndarray
    sure: np.ndarray | None = None

    @property
    def is_event(self) -> bool:
        """Whether one number a row is predicted."""
        return self.f.ndim == 1

    def towards_the_middle(self, over: bool) -> "Judged":
        """g where it lies from f towards 1/2 (over-confidence), or where it lies further out; f elsewhere."""
        lower, upper = np.minimum(self.f, self.g), np.maximum(self.f, self.g)
        high, low = (lower, upper) if over else (upper, lower)
        middle = np.full_like(self.f, 0.5) if over else self.g
        g = np.where(self.f > 0.5, high, np.where(self.f < 0.5, low, middle))
        return Judged(self.happened, self.f, g, None if self.sure is None else np.where(g == self.f, 0.0, self.sure))

    def removed(self, loss: Loss, sign: Sign) -> np.ndarray:
        """The loss that g in place of f removes from each row, ``(n,)``."""
        if isinstance(loss, Lp):
            soft = self.sure if sign == "soft" else None
            if self.is_event:
                return (np.sign(self.g - self.f) if soft is None else soft) * (self.happened - self.f)
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
        happened = np.take_along_axis(slope, self.happened[:, None].astype(np.intp), axis=1)
        with np.errstate(invalid="ignore"):
            mean = np.where(q > 0, q * slope, 0.0).sum(axis=1, keepdims=True)
            variance = np.where(q > 0, q * (slope - mean) ** 2, 0.0).sum(axis=1)
            excess = (happened - mean)[:, 0]
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
        y = self.happened
        if isinstance(loss, Brier):
            return (p - y) ** 2 if self.is_event else ((p - self._outcomes) ** 2).sum(axis=1)
        if self.is_event:
            return -xlogy(y, p) - xlog1py(1 - y, -p)
        with np.errstate(divide="ignore"):
            return -np.log(p[np.arange(len(y)), y])

    def luck(self, loss: Loss, sign: Sign) -> np.ndarray | None:
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
            return np.where(self.g == self.f, 0.0, factor * (self.happened - self.f) ** 2)
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
        change = np.log(np.maximum(g, LEAST)) - np.log(np.maximum(f, LEAST))
        change -= (g * change).sum(axis=1, keepdims=True)
        missed = self._outcomes - g
        if isinstance(loss, LogLoss):
            return (missed * change).sum(axis=1)
        return (missed * g * change).sum(axis=1) * (1 if self.is_event else 2)

    @property
    def _outcomes(self) -> np.ndarray:
        """What happened as a one among zeros, ``(n, k)``."""
        return np.eye(2 if self.is_event else self.f.shape[1])[self.happened]


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
