"""Distribution-free bounds on the p-value of the kernel calibration error."""

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from calibrant._clusters import refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.kernels.base import Product, Radial, Scaled, Sum
from calibrant.results import TestResult
from calibrant.typing import ArrayLike, Engine, Seed


@dataclass(frozen=True)
class BoundTest(Settings):
    """Test of calibration that assumes nothing but bounded kernels, and therefore rejects little.

    ``exp(-1/2 max(0, sqrt(n V / b) - 1)^2)`` for the biased estimator V; ``exp(-1/2 m floor(B/2) (U/b)^2)`` for m blocks of B
    rows (one block of all rows, unless the estimator says otherwise) and U > 0, else 1. ``|h| <= b``: unless given,
    ``bound`` is twice the largest value of the kernel on predictions times that of the kernel on targets. The level holds
    at every n. Cost as of the estimator. Widmann, Lindsten & Zachariah (2019).

    >>> import numpy as np
    >>> y_pred = np.linspace(0.05, 0.95, 200)
    >>> BoundTest(SKCE(unbiased=False))((y_pred < 0.5) * 1, y_pred).pvalue < 0.05
    True
    """

    estimator: SKCE = SKCE()  # noqa: RUF009  # frozen
    bound: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, SKCE):
            raise InputError(f"estimator must be an SKCE; got {self.estimator!r}")
        if self.bound is not None and not (isinstance(self.bound, int | float) and 0 < self.bound < math.inf):
            raise InputError(f"bound must be a positive number, or None to derive it; got {self.bound!r}")

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
        """The bound at the estimate."""
        refuse_clusters(self, clusters)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        if weights is not None:
            raise InputError("BoundTest takes no sample_weight: weighted terms have no common bound")
        estimate = self.estimator.estimate(targets, predictions, None)
        resolved, n, value = estimate.estimator, len(predictions), float(estimate)
        assert isinstance(resolved, SKCE)
        assert resolved.on_targets is not None
        b = self.bound or 2 * peak(resolved.on_predictions) * peak(resolved.on_targets)
        if b == 0:
            note = f"{resolved.on_targets!r} makes no difference between classes: it sees no error at all"
            return TestResult(value, 1.0, n, self, estimate, notes=(*estimate.notes, note))
        block = resolved.block or n
        if resolved.unbiased:
            exponent = (n // block) * (block // 2) * (max(value, 0) / b) ** 2
        else:
            exponent = max(0, math.sqrt(max(value, 0) * n / b) - 1) ** 2
        notes = (*estimate.notes, f"a bound on the p-value, with terms of at most {b:.4g}")
        return TestResult(value, math.exp(-exponent / 2), n, self, estimate, notes=notes)


@singledispatch
def peak(kernel: Kernel) -> float:
    """The largest value of a bounded kernel.

    >>> from calibrant.kernels import Exponential, Gaussian
    >>> peak(3.0 * Exponential(1.0) + Gaussian(1.0))
    4.0
    """
    raise InputError(f"{kernel!r} has no known bound: give one as BoundTest(bound=...)")


@peak.register
def _(kernel: Radial) -> float:
    return float(kernel.profile(np.zeros(1))[0])


@peak.register
def _(kernel: Identity) -> float:  # noqa: ARG001
    return 1.0


@peak.register
def _(kernel: LabelMatrix) -> float:
    """Half of the largest squared distance of two classes, which is what residuals are bounded by."""
    matrix = np.asarray(kernel.matrix)
    size = np.diag(matrix)
    return float(np.max(size[:, None] + size[None, :] - 2 * matrix) / 2)


@peak.register
def _(kernel: Sum) -> float:
    return sum(map(peak, kernel.kernels))


@peak.register
def _(kernel: Product) -> float:
    return math.prod(map(peak, kernel.kernels))


@peak.register
def _(kernel: Scaled) -> float:
    return kernel.factor * peak(kernel.kernel)
