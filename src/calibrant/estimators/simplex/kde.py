"""The Lp calibration error by Dirichlet kernels, of what happens around each row or of residuals, and sharpness."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from calibrant._array import detached, is_traced, matched, namespace
from calibrant._softmax import Softmax
from calibrant._validate import InputError
from calibrant.estimators.simplex.dirichlet import (
    Bandwidth,
    DirichletRows,
    influences,
    regression,
    smoothed,
    weight_panels,
)
from calibrant.estimators.simplex.local import (
    Around,
    LocalEstimator,
    LocalResamples,
    Question,
    shares_of_rows,
    signed_root,
    slope_of_root,
)
from calibrant.lenses.class_lenses import Lens
from calibrant.typing import Array, Engine

FULL, PARTIAL, NONE = True, "partial", False
"""How much of the bias is removed."""

RELATIVE_ERROR = 0.25
"""Of a divisor, the sum of weights, up to which ratios are corrected: the expansion in it fails beyond."""

ALONE = 1e-8
"""Where the squared weights come this near to one, a single column holds all weight and says nothing about a square."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """Frequencies ``R = E[y | f]`` around each row, ``(n, q)``, and estimates of their squares.

    With weights w that sum to one over m columns and outcomes y of 0 or 1, the plain ``R = sum w y`` is biased by
    O(1/m), and its square, moreover, by the variance of R. ``Q = (R^2 - sum w^2 y) / (1 - sum w^2)`` leaves out the
    pairs of a column with itself and is a ratio of two unbiased sums. ``R + c`` and ``Q + 4 R c`` with
    ``c = m / (m - 1) sum w^2 (y - R)`` remove the bias of the ratios up to O(1/m^2). They come from an expansion in the
    relative error of the divisor, whose square is ``m / (m - 1) (sum w^2 - 1 / m)``: nothing where all weights are equal,
    however few, and large where a few columns hold them. Where the relative error exceeds a quarter there is no correction.
    Popordanoska, Sayer & Blaschko (2022), equations (3), (7) and proposition 3.4.
    """

    frequency: Array
    square: Array

    @classmethod
    def of(cls, local: Softmax, n: int, debias: bool | str) -> Self:
        """From averages around some of n rows: plain, with unbiased squares (``"partial"``), or with unbiased ratios."""
        xp = namespace(local.mean)
        plain, squares = local.mean, local.squares[:, None]
        if debias == NONE:
            return cls(plain, plain**2)
        several = 1 - squares > ALONE
        pairs = xp.where(several, 1 - squares, xp.ones_like(squares))
        square = xp.where(several, (plain**2 - local.mean_of_squares) / pairs, plain**2)
        m = n - 1
        if debias == PARTIAL or m < 2:
            return cls(plain, square)
        shift = m / (m - 1) * (local.mean_of_squares - squares * plain)
        shift = xp.where(is_spread(squares, m), shift, xp.zeros_like(shift))
        return cls(plain + shift, square + 4 * plain * shift)


def is_spread(squares: Array, m: int) -> Array:
    """Whether weights with these sums of squares are spread over their m columns, so that their sum is known well enough."""
    return m / (m - 1) * (squares - 1 / m) <= RELATIVE_ERROR**2


KEPT = 3000
"""Up to so many rows, weights are kept between resamples."""


class FrequencyEstimator(LocalEstimator):
    """The mean over rows of a function of the frequencies around them.

    Subclasses have the field ``debias``, too, and write :meth:`terms` and :meth:`slopes`.
    """

    debias: bool | Literal["partial"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.debias not in (FULL, PARTIAL, NONE):
            raise InputError(f"debias must be True, 'partial' or False; got {self.debias!r}")

    @abstractmethod
    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """What each frequency adds, elementwise; the terms of a row are added up."""

    @abstractmethod
    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """The derivatives of the terms with respect to the frequencies, for the standard error."""

    def around(
        self, question: Question, outcomes: Array, weights: np.ndarray | None, engine: Engine | None = None
    ) -> Around:
        """One regression; with a given bandwidth the weights of NumPy arrays a second time, for what each row adds to others.

        The influence of a row is how the mean answers to a little more weight of it: by its own term, and by those around it.
        """
        bandwidth = self.likeliest(question, weights)
        rows = DirichletRows.of(question.points, bandwidth.value, weights)
        local = regression(rows, outcomes, question.points.shape[1], engine)
        ratios = Ratios.of(question.asked(local), len(rows), self.debias)
        terms = namespace(local.mean).sum(self.terms(ratios, question.predicted), axis=1)
        shares = shares_of_rows(local.is_empty, weights, terms)
        influence = None
        if isinstance(terms, np.ndarray) and not isinstance(self.bandwidth, str):
            values = self._changes(question, local, shares)
            own = shares * (terms - shares @ terms)
            influence = own + influences(rows, local, values, outcomes.astype(np.int64), engine)
        return Around(question, bandwidth, local.is_empty, shares, terms, influence)

    def _changes(self, question: Question, local: Softmax, shares: np.ndarray) -> np.ndarray:
        """How the mean answers to a row around each being of each class, ``(n, classes)``."""
        frequency = question.asked(local).mean
        slopes = self.slopes(frequency, question.predicted) * shares[:, None]
        values = np.zeros(question.points.shape)
        values[:, question.first :] = slopes
        values -= (slopes * frequency).sum(axis=1, keepdims=True)
        return values

    def resamples(self, question: Question, weights: np.ndarray | None) -> LocalResamples:
        """Bandwidth and weights depend on the predictions alone; each resample is a product with them."""
        return _Frequencies.of(self, question, weights)


@dataclass(frozen=True, eq=False)
class _Frequencies(LocalResamples):
    estimator: FrequencyEstimator
    question: Question
    rows: DirichletRows
    weights: np.ndarray
    kept: list[tuple[np.ndarray, np.ndarray]] | None

    @classmethod
    def of(cls, estimator: FrequencyEstimator, question: Question, weights: np.ndarray | None) -> Self:
        rows = DirichletRows.of(question.points, estimator.likeliest(question, weights).value, weights)
        w = np.ones(len(rows)) if weights is None else weights
        return cls(estimator, question, rows, w, list(weight_panels(rows)) if len(rows) <= KEPT else None)

    def means(self, outcomes: np.ndarray) -> np.ndarray:
        """Products of the weights with what happened, panel by panel."""
        m, q = len(outcomes), self.question.predicted.shape[1]
        observed = np.moveaxis(self.question.observed(outcomes), 1, 0).reshape(-1, m * q).astype(np.float64)
        total, weight = np.zeros(m), 0.0
        for index, weights in self.kept or weight_panels(self.rows):
            squared = weights * weights
            squares = squared.sum(axis=1)
            local = Softmax(squares, weights @ observed, squares, squared @ observed)
            ratios = Ratios.of(local, len(self.rows), self.estimator.debias)
            predicted = np.tile(self.question.predicted[index], m)
            terms = self.estimator.terms(ratios, predicted).reshape(-1, m, q).sum(axis=2)
            w = np.where(squares > 0, self.weights[index], 0.0)
            total, weight = total + w @ terms, weight + w.sum()
        return total / weight


def check_power(p: float) -> None:
    """Refuse a norm that is none."""
    if not isinstance(p, int | float | np.number) or not 1 <= p < np.inf:
        raise InputError(f"p must be a number of at least 1; got {p!r}")


@dataclass(frozen=True)
class KDE(FrequencyEstimator):
    """Lp calibration error by kernel regression on the simplex.

    ``(1/n sum_j ||R_j - f_j||_p^p)^(1/p)``, where ``R_j = sum_{i != j} k(f_j; f_i) y_i / sum_{i != j} k(f_j; f_i)`` is how
    often each class occurred among predictions like ``f_j``, and k is the Dirichlet density with parameters
    ``f_i / bandwidth + 1``. Without a lens it looks at whole vectors of three or more classes (the strongest notion of
    calibration, called canonical), and at the positive class of two; ``TopLabel()`` and ``ClassWise()`` ask of events, by
    Beta kernels. Several events are averaged. ``root=False`` gives the mean of powers, before the root.

    ``bandwidth="loo"`` maximises the likelihood of each prediction given the others, but never smooths a calibrated model
    away from its own predictions by more than its noise. ``debias=True`` removes the bias of
    the ratios up to O(1/n^2) and, for p = 2, that of squares, so that the value may be negative (a negative root is that
    of the size); ``"partial"`` only that of squares; ``False`` is the plain ratio. For other p the noise of R still adds
    up, and so does what the kernel smooths away: no correction of ratios removes either. So there is no interval:
    :class:`~calibrant.ExactTest` shows the band of a calibrated model, :class:`~calibrant.Variational` gives a lower bound.
    A given bandwidth has a standard error, by the infinitesimal jackknife: the spread of the value around its own mean, not
    around the truth. It is up to half too large next to calibration. A bandwidth that is found varies as well, and a root
    near zero is not straight: no standard error then. In :class:`~calibrant.Bootstrap` repeated rows would see
    themselves. Weights count in the mean and as neighbours; they are no repetitions, because a repeated row would see its
    copy. Zeros are exact: a prediction on a face of the simplex sees others on that face alone.

    O(n^2 K) time, O(n K) memory, also for gradients of torch and JAX arrays. Popordanoska, Sayer & Blaschko (2022).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 500)
    >>> y = [rng.choice(3, p=row**2 / (row**2).sum()) for row in p]
    >>> round(KDE(p=2, bandwidth=0.05)(y, p).value, 2)  # the truth is 0.19
    0.17
    """

    p: float = 1
    bandwidth: float | Literal["loo"] = "loo"
    debias: bool | Literal["partial"] = True
    lens: Lens | None = None
    root: bool = True

    name = "KDE"
    no_interval = (
        "noise and smoothing move the value away from the true error. ExactTest(KDE(...)) shows the band of a calibrated "
        "model, Variational() gives a lower bound"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power(self.p)

    @property
    def least(self) -> float:  # type: ignore[override]
        """Zero, unless squares are corrected."""
        return -np.inf if self.p == 2 and self.debias != NONE else 0.0

    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """Powers of gaps; of squares the corrected ones."""
        if self.p == 2:
            return ratios.square - 2 * predicted * ratios.frequency + predicted**2
        return namespace(predicted).abs(ratios.frequency - predicted) ** self.p

    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """``p |R - f|^(p - 1) sign(R - f)``."""
        gap = frequency - predicted
        return self.p * np.abs(gap) ** (self.p - 1) * np.sign(gap)

    def finished(self, mean: Array) -> Array:
        """The root, with the sign of the mean."""
        return signed_root(mean, self.p) if self.root and self.p != 1 else mean

    def slope_of_finish(self, mean: float, error: float) -> float | None:
        """The derivative of the root."""
        return slope_of_root(mean, self.p, error) if self.root else 1.0


@dataclass(frozen=True)
class Sharpness(FrequencyEstimator):
    """``E ||E[y | f]||^2`` by kernel regression on the simplex; less ``||E y||^2`` it is the variance of ``E[y | f]``.

    It is 1 for predictions that know every outcome, and the sum of squared base rates for predictions that know nothing.
    With the squared calibration error, ``KDE(p=2, root=False)``, it makes up the Brier score:
    ``E ||f - y||^2 = CE^2 - E ||E[y | f]||^2 + E ||y||^2``. Settings are those of :class:`KDE`; an event counts the
    occurrence alone. O(n^2 K) time, O(n K) memory. Popordanoska, Sayer & Blaschko (2022), equation (7).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = (rng.random(2_000) < p) * 1
    >>> round(Sharpness()(y, p).value, 2)  # E p^2 = 1/3
    0.34
    """

    bandwidth: float | Literal["loo"] = "loo"
    debias: bool | Literal["partial"] = True
    lens: Lens | None = None

    name = "sharpness"

    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """Squares of frequencies."""
        return ratios.square

    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """``2 R``."""
        return 2 * frequency


GRID = (0.003, 0.008, 0.02, 0.055, 0.15, 0.4, 1.0)
"""Bandwidths that are tried. The value depends little on them, so a coarse grid will do."""


@dataclass(frozen=True)
class TangentKDE(LocalEstimator):
    """Lp calibration error by kernel regression of residuals: on average at most the truth, and far below with many classes.

    Residuals ``r = y - f`` are smoothed by the kernels of :class:`KDE`, ``G_j = sum_{i != j} w_ji r_i``: an estimate of the
    gap ``g = E[y | f] - f``, which is smoother than ``E[y | f]`` itself, and zero for calibrated models. Then ``G_j`` is
    tried on the row's own outcome, which it has not seen: the mean of ``|G|^p + p |G|^(p-1) sign(G) (r - G)``. This is the
    tangent of ``|g|^p`` at G, so it never exceeds ``|g|^p`` in expectation, and misses it only by the square of the error
    of G. For p = 1 it is ``sign(G) r``, for p = 2 ``2 G r - G^2``, where ``G^2`` is freed of its own noise, too
    (``debias=False`` leaves it in). Where nothing can be found the value is near zero, and may be negative.

    It collapses with many classes, as whole vectors then have few neighbours: with probabilities sharpened by a temperature
    of 2, 2,000 rows and 10, 30 and 100 classes it finds .21, .08 and .04 of .31, .33 and .34. Take
    :class:`~calibrant.Variational` with more than a few classes: it finds .29, .32 and .34, with a lower bound. Here there is
    no interval and no standard error: the spread of the rows shows neither the noise of G nor the choice of a bandwidth.

    ``bandwidth="cv"`` takes, of seven, the one whose G predicts residuals best; for squares without noise, which need less
    smoothing, the next narrower. Lenses, roots and zeros are as for KDE.
    O(n^2 K) time, O(n K) memory.
    A variational bound in the sense of Berta et al. (2026), with each row left out in turn.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 500)
    >>> y = [rng.choice(3, p=row**2 / (row**2).sum()) for row in p]
    >>> round(TangentKDE(p=2)(y, p).value, 2)  # the truth is 0.19
    0.2
    """

    p: float = 1
    bandwidth: float | Literal["cv"] = "cv"
    debias: bool = True
    lens: Lens | None = None
    root: bool = True

    name = "TangentKDE"
    no_interval = (
        "the value is on average at most the true error, far below it with many classes, and its spread is not known. "
        "Variational() gives an estimate with a lower bound"
    )
    rules = ("cv",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power(self.p)

    def around(
        self, question: Question, outcomes: Array, weights: np.ndarray | None, engine: Engine | None = None
    ) -> Around:
        """A regression of the residuals at each bandwidth that is tried; the best predicts them best."""
        tried = self.tried()
        if len(tried) > 1 and is_traced(question.points):
            raise InputError("give a bandwidth: none can be found for values that are being traced")
        xp = namespace(question.points)
        residuals = xp.astype(matched(question.observed(outcomes), question.points), question.points.dtype)
        residuals = residuals - question.predicted
        spread = xp.sum(residuals**2, axis=1, keepdims=True)
        rows = (DirichletRows.of(question.points, h, weights) for h in tried)
        found = [smoothed(some, residuals, spread, engine=engine) for some in rows]
        shares = shares_of_rows(found[0].is_empty, weights, spread[:, 0])
        errors = [xp.sum(shares * xp.sum((residuals - local.mean) ** 2, axis=1)) for local in found]
        best = 0 if len(found) == 1 else int(self.chosen(np.array([float(detached(error)) for error in errors])))
        local = found[best]
        terms = self.terms(local.mean, local.squares, local.mean_of_squares[:, 0], residuals)
        return Around(question, Bandwidth(tried[best]), local.is_empty, shares, terms, influence=None)

    def terms(self, gap: Array, squares: Array, noise: Array, residuals: Array) -> Array:
        """The tangents at the smoothed residuals, added up over the outcomes: ``(..., q)`` to ``(...)``."""
        xp = namespace(gap)
        if self.p == 2 and self.debias:
            several = 1 - squares > ALONE
            size = xp.sum(gap**2, axis=-1)
            unbiased = (size - noise) / xp.where(several, 1 - squares, xp.ones_like(squares))
            return 2 * xp.sum(gap * residuals, axis=-1) - xp.where(several, unbiased, size)
        size = xp.abs(gap)
        return xp.sum((1 - self.p) * size**self.p + self.p * size ** (self.p - 1) * xp.sign(gap) * residuals, axis=-1)

    def tried(self) -> tuple[float, ...]:
        """The bandwidths there are to choose from."""
        return GRID if isinstance(self.bandwidth, str) else (float(self.bandwidth),)

    def chosen(self, errors: np.ndarray) -> np.ndarray:
        """Which bandwidth is taken, from the errors ``(bandwidths, ...)`` with which they predict residuals."""
        best = np.argmin(errors, axis=0)
        return np.maximum(best - 1, 0) if self.p == 2 and self.debias else best

    def resamples(self, question: Question, weights: np.ndarray | None) -> LocalResamples:
        """Weights depend on the predictions alone; which bandwidth is best depends on the resample."""
        rows = tuple(DirichletRows.of(question.points, bandwidth, weights) for bandwidth in self.tried())
        return _Tangents(self, question, rows, np.ones(len(rows[0])) if weights is None else weights)

    def finished(self, mean: Array) -> Array:
        """The root, with the sign of the mean."""
        return signed_root(mean, self.p) if self.root and self.p != 1 else mean


@dataclass(frozen=True, eq=False)
class _Tangents(LocalResamples):
    estimator: TangentKDE
    question: Question
    rows: tuple[DirichletRows, ...]
    weights: np.ndarray

    def means(self, outcomes: np.ndarray) -> np.ndarray:
        """Of each resample, the mean at the bandwidth that is chosen for it."""
        residuals = np.moveaxis(self.question.observed(outcomes) - self.question.predicted, 1, 0)  # (n, m, q)
        tried = [self._at(rows, residuals) for rows in self.rows]
        best = self.estimator.chosen(np.array([error for _, error in tried]))
        return np.stack([mean for mean, _ in tried])[best, np.arange(len(best))]

    def _at(self, rows: DirichletRows, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the terms and the mean squared error, ``(m,)`` each."""
        n, m, q = residuals.shape
        flat, spread = residuals.reshape(n, m * q), (residuals**2).sum(axis=2)
        total, error, weight = np.zeros(m), np.zeros(m), 0.0
        for index, weights in weight_panels(rows):
            squared = weights * weights
            squares = squared.sum(axis=1)
            gap = (weights @ flat).reshape(-1, m, q)
            terms = self.estimator.terms(gap, squares[:, None], squared @ spread, residuals[index])
            w = np.where(squares > 0, self.weights[index], 0.0)
            total, error = total + w @ terms, error + w @ ((residuals[index] - gap) ** 2).sum(axis=2)
            weight += w.sum()
        return total / weight, error / weight
