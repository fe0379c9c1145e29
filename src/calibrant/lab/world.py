"""What every world provides: data sets of any size, whether the model is calibrated, and what estimators should find."""

from abc import ABC, abstractmethod
from functools import cache
from typing import TypeGuard

import numpy as np
from scipy.special import kl_div, roots_legendre
from scipy.stats.qmc import Sobol

from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.binned.binning import lp_norm
from calibrant.estimators.binned.canonical import CanonicalECE
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.distances import ConvexDistance, Lp
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels
from calibrant.estimators.kernel_errors.skce import KCE, MMCE, SKCE
from calibrant.estimators.kernel_errors.ucme import UCME
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss, Score
from calibrant.estimators.simplex.kde import KDE, TangentKDE
from calibrant.estimators.smooth.cumulative import KolmogorovSmirnov, Kuiper
from calibrant.estimators.smooth.smooth_ece import DensityECE, SmoothECE
from calibrant.estimators.variational import Variational
from calibrant.kernels import Gaussian, Identity
from calibrant.kernels.base import expectation
from calibrant.lenses.class_lenses import PositiveClass

POINTS = 17
"""Binary logarithm of the points that replace quadrature over three features and more."""

NODES = 1024
"""Points of the quadrature behind :meth:`World.truth`: it gives four to six digits with one feature, three with two."""


ERRORS = (
    SKCE, KCE, MMCE, UCME, ECE, DebiasedECE, CanonicalECE, KDE, TangentKDE, DensityECE, SmoothECE, KolmogorovSmirnov, Kuiper,
    Variational,
)  # fmt: skip
"""Errors, which are zero where the model is calibrated."""


class World(ABC):
    """Predictions, and the law of targets given them, as functions of uniform features.

    Subclasses are frozen dataclasses that write :meth:`given`; drawing data and integrating over all data share it.
    """

    @property
    def name(self) -> str:
        """What tables call this world."""
        return repr(self)

    @property
    def features(self) -> int:
        """How many uniform numbers decide a row."""
        return 1

    @property
    @abstractmethod
    def is_calibrated(self) -> bool:
        """Whether targets are drawn from the predictions."""

    @abstractmethod
    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Predictions and truth at features u, ``(n, features)``."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, Distribution]:
        """Targets and predictions of n independent rows."""
        predictions, truth = self.given(rng.random((n, self.features)))
        return truth.sample(rng, 1)[0], predictions

    def truth(self, estimator: object) -> float | None:
        """What the estimator would find in endless data; ``None`` where that is not known.

        Known are the errors of calibrated worlds, which are zero. Others, by quadrature over one or two features:
        the SKCE with given length scales and, for classifiers, scores and the error that binned, smoothed, cumulative and
        variational errors of two classes stand for. Errors of whole prediction vectors are known for any number of features,
        to four digits or so.
        """
        if self.is_calibrated and isinstance(estimator, ERRORS):
            return 0.0
        if self.features > 2 and not looks_at_vectors(estimator):
            return None
        nodes, weights = _quadrature(self.features)
        return _mean_over(estimator, *self.given(nodes), weights)


@cache
def _quadrature(features: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes ``(m, features)`` and weights ``(m,)`` of the Gauss-Legendre rule on the unit cube; of many features Sobol's."""
    if features > 2:
        nodes = Sobol(features, rng=0).random_base2(POINTS)
        return nodes, np.full(len(nodes), 1 / len(nodes))
    x, w = roots_legendre(round(NODES ** (1 / features)))
    grid = np.stack(np.meshgrid(*[(1 + x) / 2] * features), axis=-1).reshape(-1, features)
    return grid, np.prod(np.meshgrid(*[w / 2] * features), axis=0).ravel()


def _mean_over(estimator: object, p: Distribution, q: Distribution, w: np.ndarray) -> float | None:
    """The population value of the estimator where predictions p with truth q have probabilities w."""
    if isinstance(estimator, SKCE):
        return _skce(estimator, p, q, w)
    if not isinstance(p, Categorical) or not isinstance(q, Categorical):
        return None
    if looks_at_vectors(estimator):
        return _vector_error(estimator, p, q, w)
    if isinstance(estimator, Score):
        losses = [estimator.losses(np.full(len(p), c), p) * q.probability(c) for c in range(p.n_classes)]
        return float(w @ np.sum(losses, axis=0))
    if p.n_classes != 2:
        return None
    if (norm := norm_of_gap(estimator)) is not None:
        return float(lp_norm(q.probability(1) - p.probability(1), w, norm)) ** power_of_gap(estimator)
    if isinstance(estimator, SmoothECE | KolmogorovSmirnov | Kuiper) and isinstance(
        estimator.lens, PositiveClass | None
    ):
        return _of_outcomes(estimator, p, q, w)
    return None


def looks_at_vectors(estimator: object) -> TypeGuard[CanonicalECE | KDE | TangentKDE | Variational]:
    """Whether it is an error of whole prediction vectors (of the positive class, where there are two)."""
    return isinstance(estimator, CanonicalECE) or (
        isinstance(estimator, KDE | TangentKDE | Variational) and estimator.lens is None
    )


def _vector_error(
    estimator: CanonicalECE | KDE | TangentKDE | Variational, p: Categorical, q: Categorical, w: np.ndarray
) -> float:
    """The mean distance of the truth from what was predicted: ``(E ||Q - P||_p^p)^(1/p)``, or that of a variational error."""
    before, after = np.asarray(p.matrix), np.asarray(q.matrix)
    if isinstance(estimator, Variational):
        return float(w @ _distances(estimator, before, after))
    gap = after - before
    if isinstance(estimator, CanonicalECE):
        return _sum_norm(gap, w, estimator.norm)
    error = _sum_norm(gap[:, 1:] if p.n_classes == 2 else gap, w, estimator.p)
    return error if estimator.root else error**estimator.p


def _distances(estimator: Variational, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The distance of each row, ``(m,)``, that is left where the best map is known; of two classes that of the event."""
    loss = estimator.loss
    if isinstance(loss, LogLoss):
        return np.asarray(kl_div(q, p).sum(axis=1))
    if p.shape[1] == 2 and isinstance(loss, Brier | Lp):
        p, q = p[:, 1:], q[:, 1:]
    return loss.between(q, p) if isinstance(loss, ConvexDistance) else ((q - p) ** 2).sum(axis=1)


def _sum_norm(gap: np.ndarray, w: np.ndarray, power: float) -> float:
    """``(E sum_c |gap_c|^p)^(1/p)`` of gaps ``(m, classes)``."""
    classes = gap.shape[1]
    mean = float(lp_norm(gap.ravel(), np.repeat(w, classes), power))
    return mean if np.isinf(power) else mean * classes ** (1 / power)


def norm_of_gap(estimator: object) -> float | None:
    """The norm of the gap of the positive class of two that it estimates, or whose power; ``None`` for all else."""
    if not isinstance(getattr(estimator, "lens", None), PositiveClass | None):
        return None
    if isinstance(estimator, ECE | DebiasedECE | DensityECE):
        return estimator.norm
    if isinstance(estimator, Variational) and isinstance(estimator.loss, Lp | Brier):
        return 1 if isinstance(estimator.loss, Lp) else 2
    return None


def power_of_gap(estimator: object) -> float:
    """The power of that norm which it estimates."""
    return 2 if isinstance(estimator, Variational) and isinstance(estimator.loss, Brier) else 1


def _of_outcomes(
    estimator: SmoothECE | KolmogorovSmirnov | Kuiper, p: Categorical, q: Categorical, w: np.ndarray
) -> float:
    """Of both outcomes of each prediction, weighted by how likely they are."""
    event = np.asarray(q.probability(1))
    rows = np.repeat(np.arange(len(p)), 2)
    weights = (w[:, None] * np.stack([1 - event, event], axis=1)).ravel()
    return float(estimator.estimate(np.tile([0, 1], len(p)), p[rows], weights))


def _skce(estimator: SKCE, p: Distribution, q: Distribution, w: np.ndarray) -> float | None:
    """``E k(P, P') <Q - P, Q' - P'>``."""
    asked = estimator.on_targets or (Identity() if isinstance(p, Categorical) else Gaussian())
    if estimator.on_predictions.is_open or asked.is_open:
        return None  # length scales would depend on the data
    on_predictions, on_targets, coords = resolve_kernels(estimator.on_predictions, asked, p)
    terms = [expectation(on_targets, a, b) for a, b in ((q, q), (p, p), (q, p))]
    if any(term is NotImplemented for term in terms):
        return None
    inner = terms[0] + terms[1] - terms[2] - terms[2].T
    return float(w @ (on_predictions(coords, coords) * inner) @ w)


def check_positive(value: float, name: str) -> None:
    """Refuse a setting that is not a positive finite number."""
    if not 0 < value < np.inf:
        raise InputError(f"{name} must be a positive number; got {value!r}")
