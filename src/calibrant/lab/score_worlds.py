"""Binary worlds made of two parts: how scores are distributed, and the true calibration curve."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import betaincinv, betaln, expit, log_expit

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_probabilities, check_is, check_norm, did_you_mean
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import lp_norm
from calibrant.lab.world import World, check_positive, norm_of_gap, power_of_gap

SCALES = ("logit", "log", "logflip")
"""The log-odds, the logarithm of a probability, and the logarithm of what is missing to one."""

TINY = float(np.finfo(float).tiny)


class TrueCurve(ABC):
    """The probability of the event as a function of the score; subclasses are frozen dataclasses that write :meth:`at`."""

    @property
    def is_identity(self) -> bool:
        """Whether scores are calibrated."""
        return False

    @abstractmethod
    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The probability at scores, and at ``rest``, one minus the score: known better where scores round to one."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The probability at scores, within [0, 1] also at the ends."""
        scores = np.asarray(scores, dtype=float)
        return self.at(scores, 1 - scores)


def on_scale(scale: str, p: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Probabilities on one of the scales; finite also at certainty.

    >>> on_scale("logflip", np.array([0.0, 1.0]), np.array([1.0, 0.0])).round(1)
    array([   0. , -708.4])
    """
    if scale == "log":
        return np.log(np.maximum(p, TINY))
    if scale == "logflip":
        return np.where(
            p < 0.5, np.log1p(0 - np.minimum(p, 0.5)), np.log(np.maximum(rest, TINY))
        )  # no digits of p are lost
    return np.log(np.maximum(p, TINY)) - np.log(np.maximum(rest, TINY))


def from_scale(scale: str, value: np.ndarray) -> np.ndarray:
    """Probabilities from one of the scales; what would exceed certainty is certain.

    >>> from_scale("logflip", np.log([0.25, 2.0]))
    array([0.75, 0.  ])
    """
    if scale == "logit":
        return expit(value)
    below = np.minimum(value, 0.0)
    return np.exp(below) if scale == "log" else 0.0 - np.expm1(below)


@dataclass(frozen=True)
class Diagonal(TrueCurve):
    """Events happen as often as predicted.

    >>> Diagonal()(np.array([0.3]))
    array([0.3])
    """

    @property
    def is_identity(self) -> bool:
        """Yes."""
        return True

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The score itself."""
        return scores


@dataclass(frozen=True)
class GLM(TrueCurve):
    """A generalised linear model: ``link(T) = b0 + b1 transform(f)``, both on one of :data:`SCALES`.

    Roelofs et al. (2022), appendix A, fit ``logit_logit``, ``logit_logflip``, ``logflip_logflip``, where
    ``T = 1 - e^b0 (1 - f)^b1``, and ``log_log``, ``T = e^b0 f^b1``. Berta et al. (2026) take logit and logit:
    ``sigmoid(b1 logit(f) + b0)``.

    >>> GLM("logflip", "logflip", b0=-0.24, b1=0.30)(np.array([0.0, 0.9, 1.0])).round(4)
    array([0.2134, 0.6058, 1.    ])
    """

    link: str
    transform: str
    b0: float = 0.0
    b1: float = 1.0

    def __post_init__(self) -> None:
        for name in ("link", "transform"):
            scale = getattr(self, name)
            if scale not in SCALES:
                raise InputError(f"{name} must be a scale; got {scale!r}{did_you_mean(str(scale), SCALES)}")
        for name in ("b0", "b1"):
            if not np.isfinite(getattr(self, name)):
                raise InputError(f"{name} must be a finite number; got {getattr(self, name)!r}")

    @property
    def is_identity(self) -> bool:
        """The same scale twice, without shift or stretch."""
        return self.link == self.transform and (self.b0, self.b1) == (0, 1)

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A straight line between two scales."""
        return from_scale(self.link, self.b0 + self.b1 * on_scale(self.transform, scores, rest))


@dataclass(frozen=True)
class Power(TrueCurve):
    """``f^degree``: the larger the degree, the more the scores promise too much.

    >>> Power(2)(np.array([0.5]))
    array([0.25])
    """

    degree: float

    def __post_init__(self) -> None:
        check_positive(self.degree, "degree")

    @property
    def is_identity(self) -> bool:
        """Degree 1."""
        return self.degree == 1

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The power."""
        return scores**self.degree


@dataclass(frozen=True)
class Shifted(TrueCurve):
    """``f + amount``, cut at 0 and 1. Berta et al. (2026) take 0.02: almost calibrated.

    >>> Shifted(0.02)(np.array([0.5, 0.99]))
    array([0.52, 1.  ])
    """

    amount: float

    def __post_init__(self) -> None:
        if not -1 <= self.amount <= 1:
            raise InputError(f"amount must lie between -1 and 1; got {self.amount!r}")

    @property
    def is_identity(self) -> bool:
        """No shift."""
        return self.amount == 0

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A parallel to the diagonal."""
        return np.clip(scores + self.amount, 0, 1)


@dataclass(frozen=True)
class LogisticCurve(TrueCurve):
    """``sigmoid(slope f + shift)``. Roelofs et al. (2022) take 10 and -5 in figure 15.

    >>> LogisticCurve(10, -5)(np.array([0.5, 1.0])).round(4)
    array([0.5   , 0.9933])
    """

    slope: float = 10.0
    shift: float = -5.0

    def __post_init__(self) -> None:
        for name in ("slope", "shift"):
            if not np.isfinite(getattr(self, name)):
                raise InputError(f"{name} must be a finite number; got {getattr(self, name)!r}")

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A sigmoid in the score itself."""
        return expit(self.slope * scores + self.shift)


ACCURACY = 1e-10
"""Relative error that is asked of integrals."""

NEGLIGIBLE = 45.0
"""Integrals end where densities have fallen to ``exp(-45)``, 3e-20, of their largest value."""

GRID = 4001
"""Places among which the largest gap is looked for before it is refined."""

Gap: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A function of scores and of one minus the scores."""


class Scores(ABC):
    """A distribution of scores; subclasses are frozen dataclasses that write :meth:`quantile`."""

    @abstractmethod
    def quantile(self, u: np.ndarray) -> np.ndarray:
        """The score at each level."""

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """Independent scores."""
        return self.quantile(rng.random(shape))

    def norm_of(self, gap: Gap, norm: float) -> float:
        """``(E |gap|^norm)^(1/norm)`` over all scores, by quadrature over the level; infinite: the largest gap."""

        def at(u: np.ndarray) -> np.ndarray:
            scores = self.quantile(u)
            return np.abs(gap(scores, 1 - scores))

        return _norm(at, np.ones_like, (0.0, 1.0), norm)


@dataclass(frozen=True)
class BetaScores(Scores):
    """Scores with density proportional to ``f^(alpha - 1) (1 - f)^(beta - 1)``; uniform unless said otherwise.

    Networks that are nearly always sure have a small beta: with 0.04 every fifth score rounds to exactly 1.

    >>> BetaScores(2.8, 0.05).quantile(np.array([0.01, 0.5, 0.99])).round(4)
    array([0.6308, 1.    , 1.    ])
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.beta, "beta")

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """The inverse of the incomplete beta function."""
        return betaincinv(self.alpha, self.beta, u)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
        """A ratio of gamma variables, an order faster than the quantile."""
        return rng.beta(self.alpha, self.beta, shape)

    def norm_of(self, gap: Gap, norm: float) -> float:
        """Quadrature over the log-odds, where the density is smooth and its tails are exponential."""
        a, b, scale = self.alpha, self.beta, betaln(self.alpha, self.beta)
        mode = np.log(a / b)
        least = NEGLIGIBLE - (a * log_expit(mode) + b * log_expit(-mode))

        def density(x: np.ndarray) -> np.ndarray:
            return np.exp(a * log_expit(x) + b * log_expit(-x) - scale)

        return _norm(lambda x: np.abs(gap(expit(x), expit(-x))), density, (-least / a, mode, least / b), norm)


@dataclass(frozen=True, eq=False)
class EmpiricalScores(Scores):
    """Your own scores, drawn again and again with equal chance.

    >>> EmpiricalScores([0.9, 0.2]).quantile(np.array([0.1, 0.8]))
    array([0.2, 0.9])
    """

    scores: np.ndarray

    def __post_init__(self) -> None:
        values = to_numpy(as_probabilities(self.scores, "scores")).astype(float)
        if values.ndim != 1:
            raise InputError(f"scores must be one probability per row; got shape {values.shape}")
        object.__setattr__(self, "scores", np.sort(values))

    def __repr__(self) -> str:
        digest = sha256(self.scores.tobytes()).hexdigest()[:8]  # tells worlds apart in tables and files
        return f"EmpiricalScores({len(self.scores):,} scores, {digest})"

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """One of the scores."""
        return self.scores[np.minimum((u * len(self.scores)).astype(np.intp), len(self.scores) - 1)]

    def norm_of(self, gap: Gap, norm: float) -> float:
        """A mean over the scores."""
        return float(lp_norm(gap(self.scores, 1 - self.scores), np.ones(len(self.scores)), norm))


@dataclass(frozen=True)
class ScoreWorld(World):
    """Scores from any distribution, and an event that happens at each score as often as any curve says.

    Roelofs et al. (2022) simulate such worlds to measure the bias of binned errors: :func:`tce` knows the truth.

    >>> from calibrant.lab import Power
    >>> world = ScoreWorld(BetaScores(2.8, 0.05), Power(2))
    >>> y_true, y_pred = world.draw(1000, np.random.default_rng(0))
    >>> round(float(y_true.mean()), 3), round(float(y_pred.probs.mean()), 3)
    (0.976, 0.983)
    """

    scores: Scores
    curve: TrueCurve = Diagonal()  # frozen

    def __post_init__(self) -> None:
        if not isinstance(self.scores, Scores):
            raise InputError(
                f"scores must be a distribution such as BetaScores() or EmpiricalScores(y_pred); got {self.scores!r}"
            )
        if not isinstance(self.curve, TrueCurve):
            raise InputError(f"curve must be a TrueCurve such as Diagonal() or Power(2); got {self.curve!r}")

    @property
    def is_calibrated(self) -> bool:
        """The curve is the diagonal."""
        return self.curve.is_identity

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The feature is the level of the score."""
        scores = self.scores.quantile(u[:, 0])
        return Categorical(scores), Categorical(self.curve(scores))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, Distribution]:
        """Outcomes and scores of n independent rows."""
        scores = self.scores.draw(rng, n)
        return Categorical(self.curve(scores)).sample(rng, 1)[0], Categorical(scores)

    def truth(self, estimator: object) -> float | None:
        """For norms of the gap of the positive class :func:`tce`, and its power."""
        if (norm := norm_of_gap(estimator)) is not None:
            return tce(self, norm) ** power_of_gap(estimator)
        return super().truth(estimator)


def tce(world: ScoreWorld, norm: float = 2) -> float:
    """True calibration error: ``(E |f - T(f)|^norm)^(1/norm)`` over the scores of a world, to eight digits or more.

    >>> from calibrant.lab import Power
    >>> round(tce(ScoreWorld(BetaScores(), Power(2))) ** 2, 12) == round(1 / 30, 12)
    True
    """
    check_is(world, ScoreWorld, "world", "a world of scores such as ScoreWorld(BetaScores())")
    check_norm(norm)
    return _tce(world, norm)


@lru_cache(maxsize=128)
def _tce(world: ScoreWorld, norm: float) -> float:
    """The integral, of which some are asked for often."""
    if world.is_calibrated:
        return 0.0
    return world.scores.norm_of(lambda scores, rest: world.curve.at(scores, rest) - scores, norm)


def _norm(
    size: Callable[[np.ndarray], np.ndarray],
    density: Callable[[np.ndarray], np.ndarray],
    ends: tuple[float, ...],
    norm: float,
) -> float:
    """The norm of sizes under a density between the first and the last of ``ends``."""
    low, *between, high = ends
    if np.isinf(norm):
        x = np.linspace(low, high, GRID)
        best = int(np.argmax(size(x)))
        around = x[max(best - 1, 0)], x[min(best + 1, GRID - 1)]
        refined = minimize_scalar(lambda x: -float(size(x)), bounds=around, method="bounded", options={"xatol": 1e-12})
        return max(float(size(x[best])), -float(refined.fun))
    integral, _ = quad(
        lambda x: float(density(x) * size(x) ** norm),
        low,
        high,
        points=between or None,
        epsabs=0,
        epsrel=ACCURACY,
        limit=1000,
    )
    return float(integral ** (1 / norm))
