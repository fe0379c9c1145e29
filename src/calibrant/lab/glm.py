"""Maximum likelihood for the curves ``link(T) = b0 + b1 transform(f)``."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.lab.problems.curves import on_scale

STEPS = 200

Fit: TypeAlias = tuple[np.ndarray, float]
"""The parameters ``(b0, b1)`` and their log-likelihood."""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The likelihood of outcomes as a function of ``(b0, b1)``, given the transformed scores t; concave for every link.

    With log and logflip links ``b0 <= 0 <= b1`` and t is below zero, so that every score has a probability.

    >>> t = np.log([0.2, 0.4, 0.6, 0.8])
    >>> b, value = Likelihood("log", np.array([False, False, True, True]), t).slope()
    >>> b.round(3), round(value, 3)
    (array([0.   , 1.197]), -1.442)
    """

    link: str
    happened: np.ndarray
    t: np.ndarray

    def constant(self) -> Fit:
        """The best curve without slope: the rate of the event."""
        rate = self.happened.mean()
        value = self.happened.sum() * np.log(rate) + (~self.happened).sum() * np.log1p(-rate)
        return np.array([float(on_scale(self.link, rate, 1 - rate)), 0.0]), float(value)

    def slope(self) -> Fit:
        """The best curve without constant."""
        return self._maximum(np.array([0.0, 0.0 if self.link == "logit" else 1.0]), [1])

    def both(self, slope: Fit | None = None) -> Fit:
        """The best curve, from that without constant where it is known.

        It is at an end of the allowed range where the likelihood does not grow from there, else within.
        """
        slope, constant = slope or self.slope(), self.constant()
        if self.link != "logit":
            if self._derivatives(slope[0])[0][0] >= 0:
                return slope
            if self._derivatives(constant[0])[0][1] <= 0:
                return constant
        return self._maximum((slope[0] + constant[0]) / 2, [0, 1])

    def value(self, b: np.ndarray) -> float:
        """The log-likelihood; minus infinity outside of the allowed range."""
        eta = b[0] + b[1] * self.t
        if self.link == "logit":
            return float(np.sum(self.happened * eta - np.logaddexp(0, eta)))
        if b[0] > 0 or b[1] < 0 or not b.any():
            return -np.inf
        return float(np.sum(np.where(self._is_named, eta, np.log(-np.expm1(eta)))))

    @property
    def _is_named(self) -> np.ndarray:
        """Rows with the outcome whose probability is ``exp(b0 + b1 t)``."""
        return self.happened if self.link == "log" else ~self.happened

    def _derivatives(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian."""
        eta = b[0] + b[1] * self.t
        if self.link == "logit":
            p = expit(eta)
            first, second = self.happened - p, -p * expit(-eta)
        else:
            missing = -np.expm1(eta)
            odds = np.exp(eta) / missing
            first, second = np.where(self._is_named, 1.0, -odds), np.where(self._is_named, 0.0, -odds / missing)
        columns = np.stack([np.ones_like(self.t), self.t])
        return columns @ first, (columns * second) @ columns.T

    def _maximum(self, b: np.ndarray, free: list[int]) -> Fit:
        """Newton's method; steps are halved until they gain."""
        value = self.value(b)
        for _ in range(STEPS):
            gradient, hessian = self._derivatives(b)
            step = np.zeros(2)
            step[free] = -np.linalg.lstsq(hessian[np.ix_(free, free)], gradient[free], rcond=None)[0]
            while np.any(b + step != b) and (gained := self.value(b + step)) <= value:
                step = step / 2
            if not np.any(b + step != b):
                break
            small = gained - value < 1e-14 * abs(value)
            b, value = b + step, gained
            if small:
                break
        return b, value
