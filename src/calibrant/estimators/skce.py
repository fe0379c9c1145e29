"""The squared kernel calibration error, of any predictive distribution."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import as_number, to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, EachDraw, Statistic
from calibrant.estimators.gpu_redraws import OF_A_GPU, GpuLabelRedraws, redraws_on_gpu
from calibrant.estimators.kernel_limits import BlockLimits, PairLimits, step_of
from calibrant.estimators.kernel_problem import KernelForm, notes_on_kernel, resolve_kernels, resolve_problem
from calibrant.estimators.kernel_redraws import LabelRedraws, TargetRedraws
from calibrant.estimators.kernel_sums import all_pairs, block_mean
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.estimators.random_features import RandomFeatureSKCE, affordable_waves
from calibrant.estimators.redraw_work import work_of_redraw
from calibrant.kernels import Exponential, Identity, Kernel, LabelMatrix
from calibrant.residuals import Route
from calibrant.results import Estimate
from calibrant.typing import Array, Engine

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
        limits: BlockLimits | PairLimits | None = None
        notes: tuple[str, ...] = ()
        if self.block is not None:
            value, means, notes = block_mean(form, rows, self.block, engine)
            if means is not None:
                limits = BlockLimits(MeanLimits.of(means), step_of(predictions))
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

    def resolved(self, predictions: Distribution) -> "SKCE":
        """With the length scales that these predictions give it.

        >>> round(SKCE().resolved(Categorical([0.25, 0.5, 0.75])).on_predictions.unit, 4)
        0.3536
        """
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        return replace(self, on_predictions=on_predictions, on_targets=on_targets)

    def affordable(self, predictions: Distribution, n_redraws: int, budget: float) -> BaseEstimator:
        """Random waves where redraws of all pairs cost too much; as many as budget and memory allow."""
        if self.block is not None or not self.unbiased or self.route not in (None, Route.FEATURES):
            return self
        on_predictions, on_targets, coords = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        work = work_of_redraw(on_predictions, predictions, coords.shape[1])
        if redraws_on_gpu(on_predictions, on_targets, predictions):
            work = len(predictions) ** 2 / OF_A_GPU
        if n_redraws * work <= budget:
            return self
        count = affordable_waves(on_predictions, on_targets, predictions, n_redraws, budget)
        return self if count is None else RandomFeatureSKCE(on_predictions, on_targets, count)

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Redraws share kernels and coordinates; redrawn class labels share the tiles of the kernel on predictions, too."""
        if self.block is not None:
            return EachDraw(self.resolved(predictions), predictions, weights)
        on_predictions, on_targets, _ = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        if isinstance(predictions, Categorical) and redraws_on_gpu(on_predictions, on_targets, predictions):
            return GpuLabelRedraws(on_predictions, predictions, weights, self.unbiased)
        if isinstance(predictions, Categorical) and isinstance(on_targets, Identity | LabelMatrix):
            return LabelRedraws(on_predictions, on_targets, predictions, weights, self.unbiased)
        return TargetRedraws(on_predictions, on_targets, predictions, weights, self.unbiased, self.route)
