"""The kernel error by random features: a statistic that is affordable at any number of rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.characteristic_functions import around, origin_of
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.base import BaseEstimator, Statistic
from calibrant.estimators.kernel_errors.kernel_problem import resolve_kernels, unit_weights, weight_of_pairs
from calibrant.estimators.signs import pairs_between, without_limits
from calibrant.kernels import Exponential, Identity, Kernel, LabelMatrix
from calibrant.residuals.embedding import extent
from calibrant.results import Estimate
from calibrant.typing import Array

TARGET_FREQUENCIES = 64
"""Random frequencies on targets, where a kernel has no exact ones."""


class _Features(Protocol):
    """Vectors whose inner products are the kernel on targets."""

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """One vector a target, ``(n, width)``."""
        ...

    def of_resamples(self, targets: np.ndarray) -> np.ndarray:
        """Those of many resamples ``(m, n, ...)``, ``(n, m, width)``."""
        ...

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Squared lengths of ``features - expected``, ``(n,)``."""
        ...

    def weighted_squares(
        self, targets: np.ndarray, expected: np.ndarray, made: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Their weighted sums over rows, of many resamples whose features are made already, ``(m,)``."""
        ...


@dataclass(frozen=True, eq=False)
class TargetFeatures:
    """``features(y) - E features(Z)`` of every row, for targets y ``(n, ...)``."""

    of_targets: _Features
    expected: np.ndarray

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.expected.shape[1]

    def squares(self, targets: np.ndarray) -> np.ndarray:
        """Squared lengths of the residuals, ``(n,)``."""
        return self.of_targets.residual_squares(targets, self.expected)


@dataclass(frozen=True, eq=False)
class _OneHot:
    """Rows of a root of the matrix of similarities; ``lengths`` of all residuals that a row may have, ``(n, k)``."""

    root: np.ndarray
    lengths: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Looked up, in single precision."""
        return self.root.astype(np.float32)[targets]

    def of_resamples(self, targets: np.ndarray) -> np.ndarray:
        """All at once; classes are known to be in range, and not to ask for it is six times as fast."""
        return np.take(self.root.astype(np.float32), np.ascontiguousarray(targets.T), axis=0, mode="clip")

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Looked up as well."""
        return np.take_along_axis(self.lengths, targets[:, None], axis=1)[:, 0]

    def weighted_squares(
        self, targets: np.ndarray, expected: np.ndarray, made: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Looked up, too."""
        return weights @ np.take_along_axis(self.lengths, targets.T, axis=1)


TURN = 2 * np.pi


def without_turns(phase: np.ndarray) -> np.ndarray:
    """Angles from zero to one turn in single precision, rounding aside; a division takes a fortieth of the time of a remainder.

    >>> without_turns(np.array([1.0, -1.0, 7.0]))
    array([1.       , 5.2831855, 0.7168147], dtype=float32)
    """
    turns = np.floor(phase / TURN)
    turns *= TURN
    return (phase - turns).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _FourierFeatures:
    """Cosines and sines of the targets, as seen from an origin, a number or a vector."""

    frequencies: np.ndarray
    roots: np.ndarray
    origin: Any = None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Twice as many features as frequencies, in single precision."""
        return self.of_resamples(targets[None])[:, 0]

    def of_resamples(self, targets: np.ndarray) -> np.ndarray:
        """By a compiled loop."""
        from calibrant._compiled.fourier import cosines_and_sines

        return cosines_and_sines(
            targets if self.origin is None else targets - self.origin, self.frequencies, self.roots
        )

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Of the features themselves."""
        difference = self(targets) - expected
        return np.einsum("nq,nq->n", difference, difference)

    def weighted_squares(
        self, targets: np.ndarray, expected: np.ndarray, made: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Squares of cosines and sines add up to those of the roots."""
        inner = np.matmul(made, expected.astype(np.float32)[:, :, None])[..., 0]
        return weights @ (self.roots @ self.roots + (expected**2).sum(axis=1)) - 2 * (weights @ inner)


def target_features(kernel: Kernel, predictions: Distribution, rng: np.random.Generator) -> Any:
    """Features of the kernel on targets, exact where it has them, random otherwise; or ``NotImplemented``.

    >>> from calibrant import Categorical
    >>> features = target_features(Identity(), Categorical([0.25, 0.5]), np.random.default_rng(0))
    >>> features.expected
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> features.squares(np.array([1, 0]))
    array([1.125, 0.5  ])
    """
    if isinstance(predictions, Categorical):
        if not isinstance(kernel, Identity | LabelMatrix):
            return NotImplemented
        root = np.eye(predictions.n_classes) if isinstance(kernel, Identity) else kernel.root
        expected = to_numpy(predictions.matrix).astype(np.float64) @ root
        lengths = (root**2).sum(axis=1) - 2 * expected @ root.T + (expected**2).sum(axis=1)[:, None]
        return TargetFeatures(_OneHot(root, lengths), expected)
    features = _exact_features(kernel, predictions)
    if features is NotImplemented:
        one = predictions[:1].sample(rng, 1)[0]
        frequencies = kernel.frequencies(rng, TARGET_FREQUENCIES, one.reshape(1, -1).shape[1])
        if frequencies is NotImplemented:
            return NotImplemented
        frequencies = frequencies[:, 0] if one.ndim == 1 else frequencies
        features = _FourierFeatures(frequencies, np.full(TARGET_FREQUENCIES, TARGET_FREQUENCIES**-0.5))
    origin = origin_of(predictions)
    (moved,) = around(origin, predictions)
    parts = moved.cf(features.frequencies)
    if parts is NotImplemented:
        return NotImplemented
    expected = np.concatenate([to_numpy(part).astype(np.float64) * features.roots for part in parts], axis=1)
    return TargetFeatures(replace(features, origin=None if moved is predictions else origin), expected)


def _exact_features(kernel: Kernel, predictions: Distribution) -> Any:
    """Where the kernel has a spectrum: exact for targets in the range that the predictions leave likely."""
    ends = extent(predictions)
    spectrum = NotImplemented if ends is None else kernel.spectrum(ends[1] - ends[0])
    if spectrum is NotImplemented or len(spectrum[0]) > TARGET_FREQUENCIES:
        return NotImplemented
    return _FourierFeatures(spectrum[0], np.sqrt(spectrum[1]))


SMALL = 1e-10
"""Squares of features, of all, that single precision does not see."""


def _without_small(features: TargetFeatures) -> TargetFeatures:
    """Without frequencies lost in rounding: a quarter of those of a Gaussian kernel, which are exact in double precision."""
    fourier = features.of_targets
    if not isinstance(fourier, _FourierFeatures):
        return features
    kept = fourier.roots**2 > SMALL * (fourier.roots @ fourier.roots)
    fewer = replace(fourier, frequencies=fourier.frequencies[kept], roots=fourier.roots[kept])
    return TargetFeatures(fewer, features.expected[:, np.tile(kept, 2)])


MAX_FEATURES = 1024
MIN_FEATURES = 16
MAKING = 50
"""Multiplications that it takes to make one feature of one resampled target, roughly."""

BATCH = 8_000_000
"""Numbers that the features of resamples made together may take: memory below 32 MiB is used again without being cleared."""

CACHED = 1_000_000
"""The same where rows are fewer than features, and little else is read."""

MAX_NUMBERS = 100_000_000
"""Numbers that the features of all rows may take."""


@dataclass(frozen=True)
class RandomFeatureSKCE(BaseEstimator):
    """The unbiased :class:`SKCE` with the kernel on predictions replaced by ``n_features`` random features.

    ``k(x, y) = E cos(f (x - y))`` over random frequencies f, so that the double sum over rows becomes the square of one sum:
    O(n D) instead of O(n^2). In an exact test this costs power, never validity. Rahimi & Recht (2007).

    >>> from calibrant import SKCE
    >>> from calibrant.kernels import Exponential
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.dirichlet([1, 1, 1], 500)
    >>> y_true = np.zeros(500, dtype=int)
    >>> exact, random = SKCE(Exponential(0.5))(y_true, y_pred), RandomFeatureSKCE(Exponential(0.5), n_features=4000)(y_true, y_pred)
    >>> bool(abs(random.value / exact.value - 1) < 0.05)
    True
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None
    n_features: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.n_features, "n_features")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The statistic of the observed targets."""
        n = len(predictions)
        if n < 2:
            raise InputError("the unbiased SKCE needs at least two rows; got 1")
        statistic = self.given(predictions, weights)
        w = statistic.weights
        sums, diagonal = statistic.sums(to_numpy(targets))
        value = float(((sums**2).sum() - diagonal) / weight_of_pairs(w @ w, n))
        return self.settled(statistic.on_predictions, statistic.on_targets).of_value(value, n)

    def of_clusters(
        self, targets: Array, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Estimate:
        """The statistic of pairs of rows of different clusters."""
        signed = self.with_signs(to_numpy(targets), predictions, weights, clusters)
        value = float(signed(np.ones((1, len(clusters))))[0])
        settled = self.settled(*resolve_kernels(self.on_predictions, self.on_targets, predictions)[:2])
        return without_limits(settled.of_value(value, len(predictions)))

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """Sums of features times residuals, which get the signs of their clusters."""
        return _SignedFeatures(self.given(predictions, weights), to_numpy(targets), clusters)

    def settled(self, on_predictions: Kernel, on_targets: Kernel) -> "RandomFeatureSKCE":
        """The estimator with its kernels resolved."""
        return replace(self, on_predictions=on_predictions, on_targets=on_targets)

    def of_value(self, value: float, n: int) -> Estimate:
        """The estimate of a resolved estimator from n rows."""
        return Estimate("SKCE", value, n, self, route="random features")

    def given(self, predictions: Distribution, weights: np.ndarray | None) -> "_RandomFeatureSums":
        """Features of the predictions are made once."""
        on_predictions, on_targets, coords = resolve_kernels(self.on_predictions, self.on_targets, predictions)
        points = to_numpy(coords).astype(np.float64)
        rng = np.random.default_rng(self.seed)
        frequencies = on_predictions.frequencies(rng, self.n_features, points.shape[1])
        if frequencies is NotImplemented:
            raise InputError(f"{on_predictions!r} has no random features: Exponential, Gaussian and Matern have")
        features = target_features(on_targets, predictions, rng)
        if features is NotImplemented:
            raise InputError(f"{on_targets!r} has no features under {type(predictions).__name__} predictions")
        w = unit_weights(weights, len(predictions))
        return _RandomFeatureSums(on_predictions, on_targets, points, frequencies, _without_small(features), w)


def affordable_features(
    on_predictions: Kernel, on_targets: Kernel, predictions: Distribution, n_resamples: int, budget: float
) -> int | None:
    """How many random features stay within so many multiplications and the memory; ``None`` where kernels have none."""
    rng = np.random.default_rng(0)
    features = target_features(on_targets, predictions[:2], rng)
    if on_predictions.frequencies(rng, 1, 1) is NotImplemented or features is NotImplemented:
        return None
    return features_within(len(predictions), features.width, n_resamples, budget)


def features_within(n: int, width: int, n_resamples: int, budget: float) -> int:
    """How many random features of n rows, with so many features per target, stay within so many multiplications and the memory.

    >>> features_within(10_000, 10, 999, 2e11), features_within(10**7, 10, 999, 2e11)
    (976, 16)
    """
    per_row = budget / (n * width * n_resamples) - MAKING
    return max(MIN_FEATURES, int(min(per_row / 2, MAX_NUMBERS / (2 * n), MAX_FEATURES)))


def work_of_features(n: int, width: int, n_features: int) -> float:
    """Multiplications that one resample of n targets, of so many features each, costs: the inverse of the above.

    >>> work_of_features(10_000, 10, 975)
    200000000.0
    """
    return n * width * (MAKING + 2.0 * n_features)


@dataclass(frozen=True, eq=False)
class _RandomFeatureSums:
    """``(|sum_i w_i phi(P_i) r_i|^2 - sum_i w_i^2 |r_i|^2) / (n^2 - sum_i w_i^2)`` for stacks of resampled targets."""

    on_predictions: Kernel
    on_targets: Kernel
    points: np.ndarray
    frequencies: np.ndarray
    features: TargetFeatures
    weights: np.ndarray

    def sums(self, targets: np.ndarray) -> tuple[np.ndarray, float]:
        """``sum_i w_i phi(P_i) r_i``, ``(2 D, q)``, and ``sum_i w_i^2 |r_i|^2``, in double precision."""
        total = np.zeros((2 * len(self.frequencies), self.features.width))
        size = max(1, BATCH // (4 * len(total)))
        for start in range(0, len(targets), size):
            rows = slice(start, start + size)
            phase = self.frequencies @ self.points[rows].T
            residuals = self.features.of_targets(targets[rows]) - self.features.expected[rows]
            residuals *= self.weights[rows, None]
            total += np.concatenate([np.cos(phase), np.sin(phase)]) @ residuals
        return total * len(self.frequencies) ** -0.5, float(self.weights**2 @ self.features.squares(targets))

    @cached_property
    def _fixed(self) -> tuple[np.ndarray, np.ndarray]:
        """Weighted features ``(2 D, n)`` in single precision, and their sums with the expected features.

        Rounding is far below what random features leave out.
        """
        phase = without_turns(self.frequencies @ self.points.T)
        phi = np.concatenate([np.cos(phase), np.sin(phase)]) * np.float32(len(self.frequencies) ** -0.5)
        phi *= self.weights.astype(np.float32)
        return phi, phi @ self.features.expected.astype(np.float32)

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Inner products of the weighted features of different rows, ``(n, n)``."""
        phi, _ = self._fixed
        pairs = phi.T @ phi
        np.fill_diagonal(pairs, 0.0)
        return pairs

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """The statistic of each resample, ``(m,)``; of fewer rows than features from their pairs."""
        n, is_few = len(self.points), len(self.points) < 2 * len(self.frequencies)
        size = max(
            1, (CACHED if is_few else BATCH) // (n * self.features.width)
        )  # resamples that read the features once
        values = self._by_pairs if is_few else self._by_sums
        found = [values(targets[start : start + size]) for start in range(0, len(targets), size)]
        return np.concatenate(found) / weight_of_pairs((self.weights**2).sum(), n)

    def _by_pairs(self, targets: np.ndarray) -> np.ndarray:
        """``sum_{i != j} w_i w_j <phi(P_i), phi(P_j)> <r_i, r_j>``."""
        expected = self.features.expected.astype(np.float32)
        residuals = self.features.of_targets.of_resamples(targets) - expected[:, None, :]  # (n, m, q)
        product = (self._pairs @ residuals.reshape(len(expected), -1)).reshape(residuals.shape)
        product *= residuals
        return product.sum(axis=(0, 2), dtype=np.float64)

    def _by_sums(self, targets: np.ndarray) -> np.ndarray:
        """The square of the sum less its diagonal."""
        phi, expected = self._fixed
        features = self.features.of_targets.of_resamples(targets)  # (n, m, q)
        sums = (phi @ features.reshape(len(features), -1)).reshape(-1, *features.shape[1:])
        sums -= expected[:, None, :]
        diagonal = self.features.of_targets.weighted_squares(targets, self.features.expected, features, self.weights**2)
        return np.square(sums, out=sums).sum(axis=(0, 2), dtype=np.float64) - diagonal

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_fixed", "_pairs")}


CLUSTER_NUMBERS = 20_000_000
"""Numbers that sums over clusters may take at a time."""


@dataclass(frozen=True, eq=False)
class _SignedFeatures:
    """``(|sum_c s_c S_c|^2 - sum_c |S_c|^2) / pairs`` with ``S_c = sum over i in c of w_i phi(P_i) r_i``."""

    rows: _RandomFeatureSums
    targets: np.ndarray
    clusters: Clusters

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        """The value under each set of signs, ``(m,)``; some features after the others."""
        order = np.argsort(self.clusters.codes, kind="stable")
        starts = np.cumsum(self.clusters.sums()) - self.clusters.sums()
        rows, total = self.rows, np.zeros(len(signs))
        residuals = rows.features.of_targets(self.targets) - rows.features.expected
        residuals = ((residuals * rows.weights[:, None])[order]).astype(np.float32)
        points, some = rows.points[order], signs.astype(np.float32)
        step = max(1, CLUSTER_NUMBERS // (len(order) * 2 * residuals.shape[1]))
        for i in range(0, len(rows.frequencies), step):
            phase = points @ rows.frequencies[i : i + step].T
            features = np.concatenate([np.cos(phase), np.sin(phase)], axis=1).astype(np.float32)
            each = (features[:, :, None] * residuals[:, None, :]).reshape(len(order), -1)
            sums = np.add.reduceat(each, starts, axis=0)
            total += np.square(some @ sums, dtype=np.float64).sum(axis=1) - float(
                np.square(sums, dtype=np.float64).sum()
            )
        return total / len(rows.frequencies) / pairs_between(self.clusters, rows.weights)
