"""Explicit features: smooth kernels on real targets, with any family that has a characteristic function.

``l(y, y') = sum_j w_j cos(f_j (y - y'))`` makes the residual ``delta_y - P`` a vector with the coordinates
``sqrt(w_j) (cos(f_j y) - Re phi_P(f_j))`` and ``sqrt(w_j) (sin(f_j y) - Im phi_P(f_j))``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant.distributions.base import Distribution, matched
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.mixture import Mixture
from calibrant.kernels import Kernel
from calibrant.typing import Array

TAIL = 1e-12
"""Probability that a prediction may have outside the range that the features cover."""

WAVES = 256
"""Random frequencies at which predictions of vectors are compared."""

MOST_NODES = 1024
"""More frequencies than this cost more than another route."""


@dataclass(frozen=True, eq=False)
class WaveFeatures:
    """Frequencies with the roots of their weights, ``(m,)`` each, and the waves that predictions expect, ``(n, 2m)``."""

    nodes: Array
    roots: Array
    expected: Array

    def __call__(self, targets: Array) -> Array:
        """Features ``(n, 2m)`` of ``delta_y - P``."""
        xp, phase = namespace(targets), targets[:, None] * self.nodes[None, :]
        return xp.concat([xp.cos(phase) * self.roots, xp.sin(phase) * self.roots], axis=1) - self.expected


def wave_features(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """What makes features of targets in the range of the predictions and of these targets, or ``NotImplemented``."""
    ends = extent(predictions)
    if targets.ndim != 1 or ends is None:
        return NotImplemented
    host = to_numpy(targets)
    spectrum = kernel.spectrum(float(max(ends[1], host.max()) - min(ends[0], host.min())))
    if spectrum is NotImplemented or len(spectrum[0]) > MOST_NODES:
        return NotImplemented
    nodes, roots = matched(spectrum[0], targets), matched(np.sqrt(spectrum[1]), targets)
    parts = predictions.cf(nodes)
    if parts is NotImplemented:
        return NotImplemented
    expected = namespace(targets).concat([parts[0] * roots, parts[1] * roots], axis=1)
    return WaveFeatures(nodes, roots, expected)


def residual_features(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """Features ``(n, 2m)`` of ``delta_y - P``, or ``NotImplemented``."""
    features = wave_features(kernel, targets, predictions)
    return NotImplemented if features is NotImplemented else features(targets)


def mean_embedding(kernel: Kernel, predictions: Distribution, beside: Distribution | None = None) -> Any:
    """Coordinates ``(n, 2m)`` whose Euclidean distance is ``sqrt(L(P,P) - 2 L(P,Q) + L(Q,Q))``, or ``NotImplemented``.

    Those of predictions and of others ``beside`` them belong together if each is told of the other. Of vectors, the
    distance as seen by ``WAVES`` random frequencies, always the same.
    """
    width = dimensions(predictions)
    if width:
        return _embedded(
            predictions, kernel.frequencies(np.random.default_rng(0), WAVES, width), np.full(WAVES, WAVES**-0.5)
        )
    all_ends = [extent(each) for each in (predictions, predictions if beside is None else beside)]
    ends = [end for end in all_ends if end is not None]
    if len(ends) < 2:
        return NotImplemented
    spectrum = kernel.spectrum(max(high for _, high in ends) - min(low for low, _ in ends))
    if spectrum is NotImplemented or len(spectrum[0]) > MOST_NODES:
        return NotImplemented
    return _embedded(predictions, spectrum[0], np.sqrt(spectrum[1]))


def _embedded(predictions: Distribution, frequencies: Any, roots: np.ndarray) -> Any:
    """Waves of the predictions, ``(n, 2m)``, or ``NotImplemented``."""
    parts = NotImplemented if frequencies is NotImplemented else predictions.cf(frequencies)
    if parts is NotImplemented:
        return NotImplemented
    xp = namespace(parts[0])
    scaled = xp.astype(matched(roots, parts[0]), parts[0].dtype)
    return xp.concat([parts[0] * scaled, parts[1] * scaled], axis=1)


def extent(predictions: Distribution) -> tuple[float, float] | None:
    """The range that holds all predictions but for their far tails."""
    parts = predictions.components if isinstance(predictions, Mixture) else (predictions,)
    ends = [part.quantile(np.array([TAIL, 1 - TAIL])) for part in parts]
    if any(end is NotImplemented for end in ends):
        return None
    return float(min(end.min() for end in ends)), float(max(end.max() for end in ends))
