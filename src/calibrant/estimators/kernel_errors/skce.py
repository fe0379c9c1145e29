"""The squared kernel calibration error of any predictive distribution, and its roots: KCE and MMCE."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant._array import as_number, namespace, to_numpy
from calibrant._clusters import Clusters
from calibrant._tasks import cuts
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.discrete.count_families import Counts
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.estimators.base import BaseEstimator, EachDraw, Statistic
from calibrant.estimators.kernel_errors.cluster_pairs import (
    MAX_CLUSTERS,
    MAX_ROWS,
    pairs_of_clusters,
    pairs_within_clusters,
)
from calibrant.estimators.kernel_errors.kernel_problem import (
    KernelForm,
    form_of,
    notes_on_kernel,
    resolve_kernels,
    resolve_problem,
    unit_weights,
)
from calibrant.estimators.kernel_errors.kernel_resamples import (
    OF_A_GPU,
    GpuLabelResamples,
    LabelResamples,
    TargetResamples,
    resamples_on_gpu,
    work_of_resample,
)
from calibrant.estimators.kernel_errors.kernel_sums import PairSpread, all_pairs, block_mean, moments_of, tile_of
from calibrant.estimators.kernel_errors.random_features import RandomFeatureSKCE, affordable_features
from calibrant.estimators.limits import squares_within
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.estimators.signs import SignedQuadratic, no_signs, pairs_between, without_limits
from calibrant.kernels import Exponential, Identity, Kernel, LabelMatrix
from calibrant.lenses.class_lenses import TopLabel
from calibrant.residuals.embedding import Route
from calibrant.results import Estimate, Interval
from calibrant.typing import Array, ArrayLike, Engine

NORMAL_FROM = 5.0
"""Spreads of chance from zero at which an error is far enough from calibration for the normal limit."""


@dataclass(frozen=True)
class PairLimits:
    """Limits of the unbiased estimate U of a squared error ``theta^2``, from both terms of its variance.

    Around a calibrated model U is a sum of squares less their mean. Its upper tail is longest where there is a single one:
    the lower limit allows for that. The upper limit is the largest ``theta^2`` for which U is not too small, whose first term is
    ``4 theta^2 lambda`` at most, ``lambda`` being the largest variance of the noise in any direction, at most the root of half
    the second term; far from calibration it is the normal one. Events that were not seen move the root by up to ``step z^2``.
    """

    value: float
    spread: PairSpread
    step: float

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level."""
        tail = (1 - level) / 2
        z, first, second = -float(ndtri(tail)), self.spread.first, self.spread.second
        longest = (float(ndtri(tail / 2)) ** 2 - 1) / np.sqrt(2)
        low = self.value - np.sqrt(z * z * first + longest**2 * second)
        largest = np.sqrt(second / 2)
        _, high = squares_within(max(self.value, 0.0), largest, second, z)
        if self.value > NORMAL_FROM * np.sqrt(second):
            high = min(high, self.value + z * np.sqrt(first + second))
        return moved(low, high, self.step * z * z, level)


@dataclass(frozen=True)
class _BlockLimits:
    """Limits of the mean over blocks, which are independent."""

    mean: MeanLimits
    step: float

    @property
    def standard_error(self) -> float:
        """Of the mean over blocks."""
        return float(np.sqrt(self.mean.squares * self.mean.n / (self.mean.n - 1)))

    def __call__(self, level: float) -> Interval:
        """The interval of a confidence level; an estimate below zero counts as zero for the upper limit."""
        low, high = self.mean(level)
        z = float(ndtri((1 + level) / 2))
        return moved(low, high - min(self.mean.mean, 0.0), self.step * z * z, level)


def moved(low: float, high: float, root: float, level: float) -> Interval:
    """Limits of a square, whose roots are moved apart."""
    least, most = np.sqrt(max(low, 0.0)) - root, np.sqrt(max(high, 0.0)) + root
    return Interval(float(max(least, 0.0) ** 2), float(most**2), level, "pairs of rows")


def step_of(predictions: Distribution) -> float:
    """What one row adds to the root at most, where outcomes may be so rare that none was seen: classes, labels and counts."""
    return 2**0.5 / len(predictions) if isinstance(predictions, Categorical | Bernoulli | Counts) else 0.0


BETWEEN = "pairs of rows of the same cluster are left out"
"""What is said of a mean over pairs where rows belong together."""

BIASED = (
    "unbiased=False adds the terms of rows with themselves, which lie above the error; unbiased=True has an interval"
)
"""Why the V-statistic has no interval."""


@dataclass(frozen=True)
class SKCE(BaseEstimator):
    """Squared kernel calibration error, for classifiers, regressors and everything else.

    ``(1 / n(n-1)) sum_{i != j} k(P_i, P_j) <r_i, r_j>`` with ``r = delta_y - P`` in the Hilbert space of a kernel on
    targets. Zero for calibrated models, and for those alone if the kernel on targets is characteristic and the kernel on
    predictions strictly positive definite in the integral sense: Gaussian, exponential and Matérn kernels are both, the energy
    kernel, which vanishes at its origin, is not a kernel to take on predictions (the result has a note).

    Unbiased, so it may be negative; ``unbiased=False`` gives the V-statistic ``(1 / n^2) sum_ij``, which is never negative
    and biased upwards; ``block=B`` the mean over consecutive blocks of B rows, in O(nB). ``confidence_interval()`` is for
    the squared error of an infinite sample: never negative, and down to zero where chance explains the estimate;
    ``unbiased=False`` has none.

    ``on_predictions`` sees the coordinates of the predictions (class probabilities, mean and standard deviation, ...);
    ``on_targets`` is the identity of classes, or a Gaussian kernel. Length scales that are not given are median
    distances (of the coordinates, and of targets drawn from the predictions), and the result says which. Weights scale
    the terms of the sum (they are no repetitions: a row repeated is no independent pair). O(n^2) time, O(n) memory;
    O(n log n) for two classes with the exponential kernel.
    Widmann, Lindsten & Zachariah (2019, 2021).

    >>> from calibrant import SKCE, Normal
    >>> from calibrant.kernels import Exponential, Gaussian
    >>> unit = SKCE(Exponential(1.0), Gaussian(1.0))
    >>> round(unit([0.0, 0.0], Normal([0.0, 0.0], 1.0)).value, 12) == round(1 - 2**0.5 + 3**-0.5, 12)
    True
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None
    unbiased: bool = True
    block: int | None = None
    route: Route | None = None

    @property
    def bias_cancels(self) -> bool:  # type: ignore[override]
        """There is none, unless terms of rows with themselves are added."""
        return self.unbiased

    def __post_init__(self) -> None:
        if not isinstance(self.on_predictions, Kernel) or not isinstance(self.on_targets, Kernel | None):
            wrong = self.on_predictions if not isinstance(self.on_predictions, Kernel) else self.on_targets
            raise InputError(f"kernels must be kernels such as Exponential() or Gaussian(); got {wrong!r}")
        if self.block is not None:
            check_count(self.block, "block", least=2)
            if not self.unbiased:
                raise InputError("block goes with unbiased=True")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The error with its standard error, kernels resolved."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same, pairs of panels of rows or some blocks being tasks of the engine; points on a line need none."""
        n = len(predictions)
        if self.unbiased and n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; unbiased=False takes one")
        on_predictions, on_targets, rows = resolve_problem(
            self.on_predictions, self.on_targets, self.route, targets, predictions, weights
        )
        form = KernelForm(on_predictions)
        error: float | None = None
        limits: _BlockLimits | PairLimits | None = None
        notes: tuple[str, ...] = ()
        if self.block is not None:
            value, means, notes = block_mean(form, rows, self.block, engine)
            if means is not None:
                limits = _BlockLimits(MeanLimits.of(means), step_of(predictions))
                error = limits.standard_error
        else:
            value, spread = all_pairs(form, rows, unbiased=self.unbiased, engine=engine)
            if spread is not None:
                limits = PairLimits(float(to_numpy(value)), spread, step_of(predictions)) if self.unbiased else None
                error = spread.standard_error
        return Estimate(
            name="SKCE",
            value=as_number(value),
            n=n,
            estimator=replace(self, on_predictions=on_predictions, on_targets=on_targets),
            standard_error=error,
            route=rows.residuals.route.value,
            notes=(*notes, *notes_on_kernel(on_predictions)),
            limits=limits,
            withheld=None if self.unbiased else BIASED,
        )

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """The mean over pairs of rows of different clusters: pairs of one cluster are alike by more than the error."""
        self._check_pairs()
        on_predictions, on_targets, rows = resolve_problem(
            self.on_predictions, self.on_targets, self.route, targets, predictions, weights
        )
        form = form_of(on_predictions, rows)
        total = float(to_numpy(moments_of(form, rows).total)) - pairs_within_clusters(form, rows, clusters)
        w = None if weights is None else unit_weights(weights, len(weights))
        settled = replace(self, on_predictions=on_predictions, on_targets=on_targets)
        notes = (BETWEEN, *notes_on_kernel(on_predictions))
        value = total / pairs_between(clusters, w)
        found = Estimate("SKCE", value, len(predictions), settled, route=rows.residuals.route.value, notes=notes)
        return without_limits(found)

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """Pairs of rows of different clusters, with the signs of both."""
        self._check_pairs()
        on_predictions, _, rows = resolve_problem(
            self.on_predictions, self.on_targets, self.route, targets, predictions, weights
        )
        matrix = pairs_of_clusters(form_of(on_predictions, rows), rows, clusters)
        return SignedQuadratic.of(matrix, clusters, None if weights is None else unit_weights(weights, len(weights)))

    def _check_pairs(self) -> None:
        if self.block is not None or not self.unbiased:
            raise no_signs(
                self, "clusters take the mean over all pairs of different clusters, SKCE(unbiased=True, block=None)"
            )

    def matrix(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> np.ndarray:
        """``h_ij = k(P_i, P_j) <r_i, r_j>`` of all pairs of rows, ``(n, n)``: what estimates and tests are made of.

        >>> h = SKCE().matrix([0, 1, 1], [0.2, 0.7, 0.4])
        >>> bool(np.isclose((h.sum() - h.trace()) / 6, SKCE()([0, 1, 1], [0.2, 0.7, 0.4]).value))
        True
        """
        targets, predictions = as_problem(y_true, y_pred, Classes(labels, pos_label))
        kernel, _, rows = resolve_problem(self.on_predictions, self.on_targets, self.route, targets, predictions)
        return entries(form_of(kernel, rows), rows, tile_of(rows))

    def resolved(self, predictions: Distribution) -> "SKCE":
        """With the length scales that these predictions give it.

        >>> round(SKCE().resolved(Categorical([0.25, 0.5, 0.75])).on_predictions.unit, 4)
        0.3536
        """
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        return replace(self, on_predictions=on_predictions, on_targets=on_targets)

    def affordable(self, predictions: Distribution, n_resamples: int, budget: float) -> BaseEstimator:
        """Random features where resamples of all pairs cost too much; as many as budget and memory allow."""
        if self.block is not None or not self.unbiased or self.route not in (None, Route.FEATURES):
            return self
        on_predictions, on_targets, coords = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        work = work_of_resample(on_predictions, predictions, coords.shape[1])
        if resamples_on_gpu(on_predictions, on_targets, predictions):
            work = len(predictions) ** 2 / OF_A_GPU
        if n_resamples * work <= budget:
            return self
        count = affordable_features(on_predictions, on_targets, predictions, n_resamples, budget)
        return self if count is None else RandomFeatureSKCE(on_predictions, on_targets, count)

    def affordable_with_signs(
        self, predictions: Distribution, n_resamples: int, budget: float, clusters: Clusters
    ) -> BaseEstimator:
        """Random features of many rows or clusters, whose pairs take too long; where the kernels have none, all pairs."""
        if len(predictions) <= MAX_ROWS and len(clusters) <= MAX_CLUSTERS:
            return self
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        count = affordable_features(on_predictions, on_targets, predictions, n_resamples, budget)
        if count is None and len(clusters) > MAX_CLUSTERS:
            raise no_signs(self, f"its kernels have no random features, which more than {MAX_CLUSTERS:,} clusters need")
        return self if count is None else RandomFeatureSKCE(on_predictions, on_targets, count)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Resamples share kernels and coordinates; resampled class labels share the tiles of the kernel on predictions, too."""
        if self.block is not None:
            return EachDraw(self.resolved(predictions), predictions, weights)
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        if isinstance(predictions, Categorical) and resamples_on_gpu(on_predictions, on_targets, predictions):
            return GpuLabelResamples(on_predictions, predictions, weights, self.unbiased)
        if isinstance(predictions, Categorical) and isinstance(on_targets, Identity | LabelMatrix):
            return LabelResamples(on_predictions, on_targets, predictions, weights, self.unbiased)
        return TargetResamples(on_predictions, on_targets, predictions, weights, self.unbiased, self.route)


def entries(form: Callable[[Any, Any], Array], rows: Any, tile: int) -> np.ndarray:
    """All values of a form, on the host, from tiles."""
    panels = [rows[cut] for cut in cuts(len(rows), tile)]
    return np.block([[to_numpy(form(a, b)).astype(np.float64, copy=False) for b in panels] for a in panels])


@dataclass(frozen=True)
class KCE(BaseEstimator):
    """Kernel calibration error: the root of the biased :class:`SKCE`, on the scale of the kernel.

    >>> from calibrant import KCE
    >>> round(KCE()([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).value, 4)
    0.1788
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None

    least = 0.0

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The root; rounding may leave a tiny negative square, which is zero."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same by an engine."""
        square = SKCE(self.on_predictions, self.on_targets, unbiased=False)
        squared = square.estimate_by(engine, targets, predictions, weights)
        resolved = squared.estimator
        assert isinstance(resolved, SKCE)
        estimator = KCE(resolved.on_predictions, resolved.on_targets)
        return Estimate("KCE", _root(squared.value), squared.n, estimator, route=squared.route)


@dataclass(frozen=True)
class MMCE(BaseEstimator):
    """Maximum mean calibration error of the confidence: the kernel error of the favoured class being right.

    ``sqrt(1/n^2 sum_ij (c_i - r_i)(c_j - r_j) exp(-|r_i - r_j| / l))`` with confidences r and hits c. It is the KCE seen
    through ``TopLabel()``, where two-class residuals count twice and distances are ``sqrt2`` longer.
    O(n log n). Kumar, Sarawagi & Jain (2018).

    >>> from calibrant.estimators import MMCE
    >>> round(MMCE()([0, 1, 1], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]).value, 4)
    0.1793
    """

    lengthscale: float = 0.4

    least = 0.0

    def __post_init__(self) -> None:
        if not self.lengthscale > 0:
            raise InputError(f"lengthscale must be positive; got {self.lengthscale!r}")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The root of half the two-class error."""
        hit, confidence = TopLabel()(targets, predictions)
        kernel = Exponential(2**0.5 * self.lengthscale)
        squared = SKCE(kernel, unbiased=False).estimate(hit, confidence, weights)
        value = _root(squared.value / 2)
        return Estimate("MMCE", value, squared.n, self, "top-label", route=squared.route)


def _root(square: Any) -> Any:
    """The root of what rounding may have left below zero; its derivative is zero there."""
    if isinstance(square, float):
        return math.sqrt(max(square, 0.0))
    xp = namespace(square)
    positive = square > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, square, xp.ones_like(square))), xp.zeros_like(square))
