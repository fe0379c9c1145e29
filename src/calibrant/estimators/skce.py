"""The squared kernel calibration error, of any predictive distribution."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._array import as_number, is_traced, namespace, to_numpy
from calibrant._pairwise import Moments, Pairwise
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.accelerated import FEW, accelerated_moments
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.kernel_problem import KernelForm, KernelRows, coordinates, resolve_problem
from calibrant.estimators.kernel_redraws import LabelRedraws
from calibrant.kernels import Exponential, Identity, Kernel, LabelMatrix
from calibrant.residuals import Route
from calibrant.results import Estimate
from calibrant.typing import Array


@dataclass(frozen=True)
class SKCE(BaseEstimator):
    """Squared kernel calibration error, for classifiers, regressors and everything else.

    ``(1 / n(n-1)) sum_{i != j} k(P_i, P_j) <r_i, r_j>`` with ``r = delta_y - P`` in the Hilbert space of a kernel on
    targets. Zero exactly for calibrated models if both kernels are characteristic. Unbiased, so it may be negative;
    ``unbiased=False`` gives the V-statistic ``(1 / n^2) sum_ij``, which is never negative and biased upwards; ``block=B``
    the mean over consecutive blocks of B rows, in O(nB).

    ``on_predictions`` sees the coordinates of the predictions (class probabilities, mean and standard deviation, ...);
    ``on_targets`` is the identity of classes, or a Gaussian kernel. Length scales that are not given are median
    distances, and the result says which. Weights scale the terms of the sum (they are no repetitions: a row repeated is
    no independent pair). O(n^2) time, O(n) memory; O(n log n) for two classes with the exponential kernel.
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
        n = len(predictions)
        if self.unbiased and n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; unbiased=False takes one")
        on_predictions, on_targets, rows = resolve_problem(
            self.on_predictions, self.on_targets, self.route, targets, predictions, weights
        )
        form = KernelForm(on_predictions)
        if self.block is not None:
            value, error, notes = _blocks(form, rows, self.block)
        else:
            value, error, notes = *_all_pairs(form, rows, unbiased=self.unbiased), ()
        return Estimate(
            name="SKCE",
            value=as_number(value),
            n=n,
            estimator=replace(self, on_predictions=on_predictions, on_targets=on_targets),
            standard_error=error,
            route=rows.residuals.route.value,
            notes=notes,
        )

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> Statistic:
        """Class labels leave the kernel on predictions as it is, so that redraws share its tiles."""
        on_targets = Identity() if self.on_targets is None else self.on_targets
        is_plain = isinstance(predictions, Categorical) and isinstance(on_targets, Identity | LabelMatrix)
        if not is_plain or self.block is not None or self.route not in (None, Route.FEATURES):
            return super().given(predictions, weights)
        kernel = self.on_predictions.resolve(coordinates(predictions, self.on_predictions, on_targets))
        return LabelRedraws(kernel, on_targets, predictions, weights, self.unbiased)  # type: ignore[arg-type]


def _all_pairs(form: KernelForm, rows: KernelRows, *, unbiased: bool) -> tuple[Array, float | None]:
    moments, n = _moments(form, rows), len(rows)
    if not unbiased:
        xp = namespace(moments.diagonal)
        return (moments.total + xp.sum(moments.diagonal)) / n**2, _standard_error(moments, n)
    pairs = float(n * (n - 1))
    if rows.weights is not None:
        pairs = n**2 - float(namespace(rows.weights).sum(rows.weights**2))
    if pairs <= 0:
        raise InputError("sample_weight leaves a single row: the unbiased SKCE needs two")
    return moments.total / pairs, _standard_error(moments, n)


def _blocks(form: KernelForm, rows: KernelRows, size: int) -> tuple[Array, float | None, tuple[str, ...]]:
    n = len(rows)
    if size > n:
        raise InputError(f"block must not exceed the number of rows, {n:,}; got {size:,}")
    if rows.weights is not None:
        raise InputError("block takes no sample_weight: blocks are of equal weight")
    means = _block_sums(form, rows, size) / (size * (size - 1))
    left_out = n % size
    notes = (f"the last {left_out:,} rows do not fill a block of {size:,} and are left out",) if left_out else ()
    error = None
    if means.shape[0] > 1 and not is_traced(means):
        error = float(np.std(to_numpy(means), ddof=1) / np.sqrt(means.shape[0]))
    return namespace(means).mean(means), error, notes


def _block_sums(form: KernelForm, rows: KernelRows, size: int) -> Array:
    """Each large block by the best path, small ones in tiles."""
    if size <= FEW:
        return Pairwise(form, rows, min(size, _tile(rows))).block_sums(size)
    totals = [_moments(form, rows[i * size : (i + 1) * size]).total for i in range(len(rows) // size)]
    return namespace(totals[0]).stack(totals)


def _moments(form: KernelForm, rows: KernelRows) -> Moments:
    moments = accelerated_moments(form.on_predictions, rows)
    return Pairwise(form, rows, _tile(rows)).moments() if moments is NotImplemented else moments


def _standard_error(moments: Moments, n: int) -> float | None:
    """Both Hoeffding terms of the variance of a U-statistic, each estimated without bias but never below zero.

    So next to calibration, where the first term vanishes, the error is about a third too large rather than too small.
    """
    if n < 4 or is_traced(moments.row_sums):
        return None
    sums = to_numpy(moments.row_sums).astype(np.float64)
    squares, total = float(to_numpy(moments.sum_of_squares)), sums.sum()
    row_squares = float(sums @ sums)
    one_shared = (row_squares - squares) / (n * (n - 1) * (n - 2))
    none_shared = (total**2 - 4 * row_squares + 2 * squares) / (n * (n - 1) * (n - 2) * (n - 3))
    first, second = one_shared - none_shared, squares / (n * (n - 1)) - none_shared
    variance = 4 * (n - 2) * max(first, 0.0) / (n * (n - 1)) + 2 * max(second, 0.0) / (n * (n - 1))
    return float(np.sqrt(variance))


def _tile(rows: KernelRows) -> int:
    """Rows of a tile: fewer where the inner product of one pair takes much memory."""
    spread = rows.residuals.spread
    members = getattr(spread, "members", None)
    if members is not None:
        return max(1, 2048 // int(members.shape[1]))
    covariance = getattr(spread, "covariance", None)
    return 512 if covariance is None else max(16, 256 // int(covariance.shape[1]))
