"""The test of the calibration mean embedding."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import chdtrc, fdtrc

from calibrant._array import matched, to_numpy
from calibrant._clusters import refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count, check_one_of
from calibrant.distributions.base import Distribution
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.kernel_errors.ucme import UCME, Locations, SampledLocations
from calibrant.inference.monte_carlo import draw, upper_rank
from calibrant.kernels import Exponential, Kernel
from calibrant.results import TestResult, how_many
from calibrant.typing import Array, ArrayLike, Engine, Seed

SINGULAR = 1e-11
"""Eigenvalues up to this share of the largest are rounding."""

NOTHING = "all residuals are zero: there is nothing to test"


@dataclass(frozen=True)
class CMETest(Settings):
    """Test of calibration by the mean embedding at J locations, in linear time.

    ``Q = n Zbar' S^-1 Zbar`` with the n values ``Z_i`` of :class:`~calibrant.estimators.UCME` at the locations and their
    covariance S.

    ``reference="exact"`` ranks Q among those of ``n_resamples`` resamples of the targets, with locations chosen by the same rule:
    the level holds at every n. ``reference="chi2"`` is the test as published, ``Q ~ chi2(J)``, and ``reference="F"`` Hotelling's
    ``(n-J) / (J (n-1)) Q ~ F(J, n-J)``. These two hold for large n only. At 5 %, calibrated normal forecasts were rejected in
    79, 35, 14 and 11 % of data sets of 16, 64, 256 and 1,024 rows by chi-square, in 12, 22, 13 and 11 % by F, and in 5, 5, 3 and
    5 % by resamples, at ten locations that are rows of the data (``python benchmarks/levels.py cme 300``).

    Locations close to each other make S nearly singular. ``ridge`` is added to its diagonal, in units of the mean square of
    the values; there is none by default. Without one, S must be regular for "F" and "chi2", which needs n > J. O(n J^2) for
    each resample. Widmann, Lindsten & Zachariah (2021).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> CMETest(n_resamples=99)(y_true, y_pred).pvalue > 0.05
    True
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None
    locations: Locations = SampledLocations(5)  # noqa: RUF009  # frozen
    reference: Literal["exact", "F", "chi2"] = "exact"
    ridge: float = 0.0
    n_resamples: int = 999

    def __post_init__(self) -> None:
        UCME(self.on_predictions, self.on_targets, self.locations)  # checks its settings
        check_one_of(self.reference, ("exact", "F", "chi2"), "reference")
        check_count(self.n_resamples, "n_resamples")
        if not (isinstance(self.ridge, int | float) and 0 <= self.ridge < np.inf):
            raise InputError(f"ridge must be a number of at least 0; got {self.ridge!r}")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Q and its tail."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        estimate = UCME(self.on_predictions, self.on_targets, self.locations).estimate(targets, predictions, weights)
        measure = estimate.estimator
        assert isinstance(measure, UCME)
        embedding = Embedding(measure, predictions, weights, self.ridge)
        values = embedding.values(targets)
        q, n = embedding.quadratic(values), len(predictions)
        result = TestResult(q, 1.0, n, self, estimate)
        if not np.any(values):
            return replace(result, notes=(NOTHING,))
        if self.reference != "exact":
            return replace(result, pvalue=self._tail(q, values))
        null = draw(partial(_resampled, embedding, targets[:1]), self.n_resamples, width=n, rng=rng, engine=engine)
        j, rows = values.shape
        few = f"{how_many(rows, 'row', 'rows')} cannot contradict as many locations: hardly any power; use fewer locations"
        notes = (few,) if rows <= j and not self.ridge else ()
        return replace(result, pvalue=upper_rank(q, null), null_distribution=null, notes=notes)

    def _tail(self, q: float, values: np.ndarray) -> float:
        """By the law for large n; refused where S has no inverse."""
        j, n = values.shape
        if n <= j:
            raise InputError(
                f"reference={self.reference!r} at {j:,} locations needs more than {j:,} rows to evaluate them on; got {n:,}: "
                "use fewer locations, or reference='exact'"
            )
        eigenvalues = np.linalg.eigvalsh(np.atleast_2d(np.cov(values)))
        if not self.ridge and eigenvalues[0] <= SINGULAR * float(np.mean(values**2)):
            raise InputError(
                f"the covariance at the {j:,} locations is singular, so reference={self.reference!r} has no statistic: use "
                "reference='exact', locations further apart, or a ridge such as ridge=0.001"
            )
        return float(chdtrc(j, q) if self.reference == "chi2" else fdtrc(j, n - j, (n - j) / (j * (n - 1)) * q))


@dataclass(frozen=True, eq=False)
class Embedding:
    """Q as a function of the targets."""

    measure: UCME
    predictions: Distribution
    weights: np.ndarray | None
    ridge: float

    def values(self, targets: Array) -> np.ndarray:
        """At the locations that these targets lead to, ``(J, n)``."""
        problems = self.measure.locations.choose(self.measure, targets, self.predictions)
        values = to_numpy(self.measure.values(*problems)).astype(np.float64)
        return values if self.weights is None else values * (self.weights / self.weights.mean())

    def quadratic(self, values: np.ndarray) -> float:
        """``n Zbar' S^-1 Zbar``; infinite where the values do not vary along their mean."""
        j, n = values.shape
        mean, size = values.mean(axis=1), float(np.mean(values**2))
        if size == 0:
            return 0.0
        if self.ridge:
            covariance = np.atleast_2d(np.cov(values)) if n > 1 else np.zeros((j, j))
            return float(n * mean @ np.linalg.solve(covariance + self.ridge * size * np.eye(j), mean))
        # The mean always lies in the range of the second moment M, also where S has no inverse: with the share
        # s = Zbar' M^+ Zbar, Q = (n - 1) s / (1 - s).
        found, axes = np.linalg.eigh(values @ values.T / n)
        kept = found > SINGULAR * found[-1]
        share = float(np.sum((axes.T @ mean)[kept] ** 2 / found[kept]))
        return (n - 1) * share / (1 - share) if share < 1 - SINGULAR else np.inf


def _resampled(embedding: Embedding, like: Array, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """Q of so many sets of resampled targets, in the array library of those observed."""
    targets = embedding.predictions.sample(np.random.default_rng(seed), size)
    return np.array([embedding.quadratic(embedding.values(matched(y, like))) for y in targets])
