"""Worlds like your data: maximum-likelihood fits of score distributions and calibration curves.

Roelofs et al. (2022), appendix A. Scores near 0 and 1 are known only as well as their floating-point numbers: closer to
an end than the resolution they count as "somewhere in there" in the fit of their distribution, and as lying at the
resolution in the fit of curves. Where no resolution is given, a score of 0 lies below half of the smallest other one.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, expit, hyp2f1

from calibrant._array import to_numpy
from calibrant._numerics.newton import Derivatives, newton
from calibrant._validate import InputError, as_probabilities
from calibrant.distributions.reading.conversion import as_problem
from calibrant.lab.score_worlds import GLM, BetaScores, ScoreWorld, on_scale
from calibrant.lenses.class_lenses import Lens, default_lens
from calibrant.results import Table
from calibrant.typing import ArrayLike

GLM_STEPS = 200

MIN_PROBABILITY = 1e-100
"""Smaller probabilities count as this one: its inverse can be squared."""

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
    observed: np.ndarray
    t: np.ndarray

    def constant(self) -> Fit:
        """The best curve without slope: the rate of the event."""
        rate = self.observed.mean()
        value = self.observed.sum() * np.log(rate) + (~self.observed).sum() * np.log1p(-rate)
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
            return float(np.sum(self.observed * eta - np.logaddexp(0, eta)))
        if b[0] > 0 or b[1] < 0 or not b.any():
            return -np.inf
        return float(np.sum(np.where(self._is_named, eta, np.log(np.maximum(-np.expm1(eta), MIN_PROBABILITY)))))

    @property
    def _is_named(self) -> np.ndarray:
        """Rows with the outcome whose probability is ``exp(b0 + b1 t)``."""
        return self.observed if self.link == "log" else ~self.observed

    def _derivatives(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian."""
        eta = b[0] + b[1] * self.t
        if self.link == "logit":
            p = expit(eta)
            first, second = self.observed - p, -p * expit(-eta)
        else:
            missing = np.maximum(-np.expm1(eta), MIN_PROBABILITY)
            odds = np.exp(eta) / missing
            first, second = np.where(self._is_named, 1.0, -odds), np.where(self._is_named, 0.0, -odds / missing)
        columns = np.stack([np.ones_like(self.t), self.t])
        return columns @ first, (columns * second) @ columns.T

    def _maximum(self, b: np.ndarray, free: list[int]) -> Fit:
        """Newton's method for some of the coefficients."""

        def whole(some: np.ndarray) -> np.ndarray:
            every = b.copy()
            every[free] = some
            return every

        def derivatives(some: np.ndarray) -> Derivatives:
            gradient, hessian = self._derivatives(whole(some))
            return Derivatives(-gradient[free], -hessian[np.ix_(free, free)])

        found = newton(
            lambda some: np.asarray(-self.value(whole(some))),
            derivatives,
            b[free],
            max_steps=GLM_STEPS,
            solve=_shortest,
        )
        return whole(found.x), -float(found.value)


def _shortest(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Newton's step, the shortest where scores that are all the same leave several."""
    return np.linalg.lstsq(hessian, gradient, rcond=None)[0]


PAIRS = (("logit", "logit"), ("logit", "logflip"), ("logflip", "logflip"), ("log", "log"))
"""Links and transforms of the curves that are tried."""

STEPS = 8
"""Scores fewer steps of their floating-point numbers from 1 are not told apart."""


def fit_world(
    y_true: ArrayLike, y_pred: ArrayLike, *, lens: Lens | None = None, resolution: float | None = None
) -> ScoreWorld:
    """The world most like these data: beta-distributed scores, and the curve of :func:`fit_curves` with the least AIC.

    ``ScoreWorld(EmpiricalScores(scores), fit_world(y_true, y_pred).curve)`` keeps the scores as they are.

    >>> from calibrant.lab import Power
    >>> data = ScoreWorld(BetaScores(2.0, 1.0), Power(1.5)).draw(20_000, np.random.default_rng(0))
    >>> world = fit_world(*data)
    >>> round(world.scores.alpha, 1), world.curve.link, round(world.curve.b1, 1)
    (2.0, 'log', 1.5)
    """
    observed, scores = _event(y_true, y_pred, lens)
    best = next(_fits(observed, scores, resolution).rows())
    link, transform, _ = str(best["model"]).split("_", 2)
    curve = GLM(link, transform, float(best["b0"]), float(best["b1"]))
    return ScoreWorld(fit_scores(scores, resolution=resolution), curve)


def fit_curves(
    y_true: ArrayLike, y_pred: ArrayLike, *, lens: Lens | None = None, resolution: float | None = None
) -> Table:
    """Twelve curves fitted to outcomes and scores, best first by Akaike's information criterion.

    Models are named by link, transform and free parameters, as in table 2 of Roelofs et al. (2022). With log and logflip
    links ``b0 <= 0 <= b1``, so that every score has a probability. The four constants are the same curve.

    >>> table = fit_curves([0, 1, 0, 1, 1, 0], [0.2, 0.4, 0.5, 0.7, 0.8, 0.6])
    >>> list(table), table.n_rows
    (['model', 'b0', 'b1', 'log_likelihood', 'aic'], 12)
    """
    return _fits(*_event(y_true, y_pred, lens), resolution)


def fit_scores(scores: ArrayLike, *, resolution: float | None = None) -> BetaScores:
    """The beta distribution under which these scores are most likely.

    Scores within ``resolution`` of an end contribute the probability of that end. Unless given it is a few steps of the
    shortest floating-point numbers that hold the scores; say ``resolution=0.005`` for scores of two decimals.

    >>> fitted = fit_scores(BetaScores(2.8, 0.05).draw(np.random.default_rng(0), 10_000))
    >>> bool(abs(fitted.beta - 0.05) < 0.002)
    True
    """
    f = to_numpy(as_probabilities(scores, "scores")).astype(float)
    low, high = _ends(f, resolution)
    inside = f[(f >= low) & (f <= 1 - high)]
    if len(np.unique(inside)) < 2 or inside.var() == 0:
        raise InputError(
            "scores must have two or more different values between 0 and 1 to fit a distribution; "
            f"got {np.unique(f)[:5]} with a resolution of {high:g}"
        )
    n_low, n_high = int(np.sum(f < low)), int(np.sum(f > 1 - high))
    mean_log, mean_flip = np.mean(np.log(inside)), np.mean(np.log1p(-inside))

    def loss(parameters: np.ndarray) -> float:
        a, b = np.exp(parameters)
        density = (a - 1) * mean_log + (b - 1) * mean_flip - betaln(a, b)
        tails = n_low * _log_tail(low, a, b) + n_high * _log_tail(high, b, a)
        return -float(len(inside) * density + tails) / len(f)

    options = {"xatol": 1e-10, "fatol": 1e-15, "maxfev": 4000, "maxiter": 4000}
    alpha, beta = np.exp(minimize(loss, np.log(_moments(inside)), method="Nelder-Mead", options=options).x)
    return BetaScores(float(alpha), float(beta))


def _moments(scores: np.ndarray) -> tuple[float, float]:
    """Alpha and beta with the mean and variance of the scores."""
    mean = scores.mean()
    total = mean * (1 - mean) / scores.var() - 1
    return mean * total, (1 - mean) * total


def _log_tail(x: float, a: float, b: float) -> float:
    """``log I_x(a, b)``, the chance of a beta variable below a small x, also where it is below the least number."""
    return float(a * np.log(x) - np.log(a) - betaln(a, b) + np.log(hyp2f1(a, 1 - b, a + 1, x)))


def _ends(scores: np.ndarray, resolution: float | None) -> tuple[float, float]:
    """How close to 0 and to 1 scores can be told apart."""
    if resolution is not None:
        if not 0 < resolution < 0.5:
            raise InputError(f"resolution must lie strictly between 0 and 0.5; got {resolution!r}")
        return resolution, resolution
    kinds = (np.float16, np.float32, np.float64)
    kind = next(np.finfo(kind) for kind in kinds if np.array_equal(scores.astype(kind), scores))
    low = float(kind.tiny)
    return low if scores.min() >= low else _least_told(scores, low) / 2, STEPS * float(kind.eps)


def _least_told(scores: np.ndarray, low: float) -> float:
    """The smallest score that is told from 0; a 0 lies below half of it, as the least number there is would decide the fit."""
    told = scores[scores >= low]
    if not len(told):
        raise InputError(f"scores must have one of at least {low:g} to fit a world; the largest is {scores.max():g}")
    return max(float(told.min()), 2 * low)


def _event(y_true: ArrayLike, y_pred: ArrayLike, lens: Lens | None) -> tuple[np.ndarray, np.ndarray]:
    """Whether the event happened, and its score."""
    targets, predictions = as_problem(y_true, y_pred)
    events = (lens or default_lens(predictions)).events(predictions)
    if len(events) != 1:
        raise InputError(f"lens must look at a single event, such as TopLabel(); {lens!r} looks at {len(events)}")
    observed = events[0].observed(targets)
    if observed.all() or not observed.any():
        raise InputError(f"y_true must hold both outcomes to fit a curve; all {len(observed):,} rows have the same")
    return observed, to_numpy(events[0].probability).astype(float)


def _fits(observed: np.ndarray, scores: np.ndarray, resolution: float | None) -> Table:
    low, high = _ends(scores, resolution)
    f, rest = np.clip(scores, low, 1 - high), np.clip(1 - scores, high, 1 - low)
    rows = []
    for link, transform in PAIRS:
        likelihood = Likelihood(link, observed, on_scale(transform, f, rest))
        slope = likelihood.slope()
        fits = {"b0_b1": likelihood.both(slope), "b1": slope, "b0": likelihood.constant()}
        for free, (b, value) in fits.items():
            rows.append((f"{link}_{transform}_{free}", *b.tolist(), value, 2 * free.count("b") - 2 * value))
    rows.sort(key=lambda row: row[-1])  # stable: of equally good models the first
    columns = ("model", "b0", "b1", "log_likelihood", "aic")
    return Table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
