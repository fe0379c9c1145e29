"""Residuals as vectors, as a function of the targets alone: what depends on the predictions is made once."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.origin import around, origin_of
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.spectral import extent

WAVES = 64
"""Random frequencies on targets, where a kernel has no exact ones."""


class Features(Protocol):
    """Vectors whose inner products are the kernel on targets."""

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """One vector a target, ``(n, width)``."""
        ...

    def of_redraws(self, targets: np.ndarray) -> np.ndarray:
        """Those of many redraws ``(m, n, ...)``, ``(n, m, width)``."""
        ...

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Squared lengths of ``features - expected``, ``(n,)``."""
        ...


@dataclass(frozen=True, eq=False)
class TargetFeatures:
    """``features(y) - E features(Z)`` of every row, for targets y ``(n, ...)``."""

    of_targets: Features
    expected: np.ndarray

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.expected.shape[1]

    def squares(self, targets: np.ndarray) -> np.ndarray:
        """Squared lengths of the residuals, ``(n,)``."""
        return self.of_targets.residual_squares(targets, self.expected)


@dataclass(frozen=True, eq=False)
class OneHot:
    """Rows of a root of the matrix of similarities; ``lengths`` of all residuals that a row may have, ``(n, k)``."""

    root: np.ndarray
    lengths: np.ndarray

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Looked up, in single precision."""
        return self.root.astype(np.float32)[targets]

    def of_redraws(self, targets: np.ndarray) -> np.ndarray:
        """All at once; classes are known to be in range, and not to ask for it is six times as fast."""
        return np.take(self.root.astype(np.float32), np.ascontiguousarray(targets.T), axis=0, mode="clip")

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Looked up as well."""
        return np.take_along_axis(self.lengths, targets[:, None], axis=1)[:, 0]


@dataclass(frozen=True, eq=False)
class Waves:
    """Cosines and sines of the targets, as seen from an origin, a number or a vector."""

    frequencies: np.ndarray
    roots: np.ndarray
    origin: Any = None

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        """Twice as many features as frequencies, in single precision."""
        if self.origin is not None:
            targets = targets - self.origin
        phase = targets[:, None] * self.frequencies if targets.ndim == 1 else targets @ self.frequencies.T
        phase = np.remainder(phase, 2 * np.pi).astype(np.float32)
        roots = self.roots.astype(np.float32)
        return np.concatenate([np.cos(phase) * roots, np.sin(phase) * roots], axis=1)

    def of_redraws(self, targets: np.ndarray) -> np.ndarray:
        """One redraw after the other."""
        return np.stack([self(y) for y in targets], axis=1)

    def residual_squares(self, targets: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Of the features themselves."""
        difference = self(targets) - expected
        return np.einsum("nq,nq->n", difference, difference)


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
        return TargetFeatures(OneHot(root, lengths), expected)
    waves = _exact_waves(kernel, predictions)
    if waves is NotImplemented:
        one = predictions[:1].sample(rng, 1)[0]
        frequencies = kernel.frequencies(rng, WAVES, one.reshape(1, -1).shape[1])
        if frequencies is NotImplemented:
            return NotImplemented
        frequencies = frequencies[:, 0] if one.ndim == 1 else frequencies
        waves = Waves(frequencies, np.full(WAVES, WAVES**-0.5))
    origin = origin_of(predictions)
    (moved,) = around(origin, predictions)
    parts = moved.cf(waves.frequencies)
    if parts is NotImplemented:
        return NotImplemented
    expected = np.concatenate([to_numpy(part).astype(np.float64) * waves.roots for part in parts], axis=1)
    return TargetFeatures(replace(waves, origin=None if moved is predictions else origin), expected)


def _exact_waves(kernel: Kernel, predictions: Distribution) -> Any:
    """Where the kernel has a spectrum: exact for targets in the range that the predictions leave likely."""
    ends = extent(predictions)
    spectrum = NotImplemented if ends is None else kernel.spectrum(ends[1] - ends[0])
    if spectrum is NotImplemented or len(spectrum[0]) > WAVES:
        return NotImplemented
    return Waves(spectrum[0], np.sqrt(spectrum[1]))
