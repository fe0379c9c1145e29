"""Explicit features: smooth kernels on real targets, with any family that has a characteristic function.

``l(y, y') = sum_j w_j cos(f_j (y - y'))`` makes the residual ``delta_y - P`` a vector with the coordinates
``sqrt(w_j) (cos(f_j y) - Re phi_P(f_j))`` and ``sqrt(w_j) (sin(f_j y) - Im phi_P(f_j))``.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._array import matched, namespace, to_numpy
from calibrant.distributions.base import Distribution
from calibrant.distributions.characteristic_functions import ShortenedLine, cosines_and_sines
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.multivariate import dimensions
from calibrant.kernels import Kernel
from calibrant.typing import Array

TAILS = ((1e-12, 256), (1e-9, 512), (1e-6, 1024))
"""Probability that a prediction may have outside the range that the features cover, with the most frequencies it is worth.

What lies outside is seen as if it lay elsewhere, so that expectations are wrong by at most that much, of a kernel of size one.
Heavy tails reach far: the next best is taken. More frequencies than the last cost more than another route, unless rows are few.
"""

N_FREQUENCIES = 256
"""Random frequencies at which predictions of vectors are compared."""

MAX_NUMBERS = 1 << 21
"""Frequencies times rows that few rows may take."""


@dataclass(frozen=True, eq=False)
class SpectralFeatures:
    """Frequencies ``(m,)``, roots of their weights, and the features that n predictions expect, ``(n, 2m)``."""

    nodes: np.ndarray
    roots: np.ndarray
    expected: Array
    line: ShortenedLine | None = None

    def of_points(self, y: Array) -> Array:
        """Features ``(k, 2m)`` of targets ``(k,)``, where they lie on the line."""
        y = y if self.line is None else self.line(y)
        roots = matched(self.roots, y)
        return namespace(y).concat([part * roots for part in cosines_and_sines(y, self.nodes)], axis=1)

    def __call__(self, targets: Array) -> Array:
        """Features ``(n, 2m)`` of ``delta_y - P``."""
        return self.of_points(targets) - matched(self.expected, targets)


def spectral_features(kernel: Kernel, predictions: Distribution, *targets: Array) -> Any:
    """Features that serve these predictions and all of these targets, of any shape; or ``NotImplemented``."""
    return _spectral(kernel, predictions, (predictions,), targets)


def residual_features(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """Features ``(n, 2m)`` of ``delta_y - P``, or ``NotImplemented``."""
    if targets.ndim != 1:
        return NotImplemented
    found = spectral_features(kernel, predictions, targets)
    return NotImplemented if found is NotImplemented else found(targets)


def mean_embedding(kernel: Kernel, predictions: Distribution, beside: Distribution | None = None) -> Any:
    """Coordinates ``(n, 2m)`` whose Euclidean distance is ``sqrt(L(P,P) - 2 L(P,Q) + L(Q,Q))``, or ``NotImplemented``.

    Those of predictions and of others ``beside`` them belong together if each is told of the other. Of vectors, the
    distance as seen by ``N_FREQUENCIES`` random frequencies, always the same.
    """
    if width := dimensions(predictions):
        frequencies = kernel.frequencies(np.random.default_rng(0), N_FREQUENCIES, width)
        found = NotImplemented
        if frequencies is not NotImplemented:
            found = _expected(predictions, frequencies, np.full(N_FREQUENCIES, 1 / N_FREQUENCIES))
    else:
        found = _spectral(kernel, predictions, (predictions, predictions if beside is None else beside), ())
    return NotImplemented if found is NotImplemented else found.expected


def _spectral(
    kernel: Kernel, predictions: Distribution, batches: tuple[Distribution, ...], targets: tuple[Array, ...]
) -> Any:
    """Features of the predictions, for the range of all batches and targets."""
    if kernel.spectrum(0.0) is NotImplemented:
        return NotImplemented
    few, points = (
        MAX_NUMBERS // sum(map(len, batches)),
        np.concatenate([np.empty(0), *(to_numpy(y).ravel() for y in targets)]),
    )
    for tail, most in (*TAILS, (TAILS[-1][0], few)):
        ends = [extent(batch, tail) for batch in batches]
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            return NotImplemented
        low, high = min(low for low, _ in known), max(high for _, high in known)
        line = ShortenedLine.of(low, high, points, kernel.reach)
        spectrum = kernel.spectrum(line.span)
        if spectrum is not NotImplemented and len(spectrum[0]) <= most:
            found = _expected(predictions, *spectrum)
            return NotImplemented if found is NotImplemented else replace(found, line=line)
    return NotImplemented


def _expected(predictions: Distribution, nodes: np.ndarray, weights: np.ndarray) -> Any:
    parts = predictions.cf(nodes)
    if parts is NotImplemented:
        return NotImplemented
    roots = namespace(parts[0]).astype(matched(np.sqrt(weights), parts[0]), parts[0].dtype)
    return SpectralFeatures(
        nodes, np.sqrt(weights), namespace(parts[0]).concat([part * roots for part in parts], axis=1)
    )


def extent(predictions: Distribution, tail: float = TAILS[0][0]) -> tuple[float, float] | None:
    """The range that holds all predictions but for their far tails."""
    parts = predictions.components if isinstance(predictions, Mixture) else (predictions,)
    ends = [part.quantile(np.array([tail, 1 - tail])) for part in parts]
    if any(end is NotImplemented for end in ends):
        return None
    return float(min(end.min() for end in ends)), float(max(end.max() for end in ends))
