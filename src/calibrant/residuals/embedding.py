"""Residuals ``r = delta_y - P``: elements of the Hilbert space of a kernel on targets, explicit or by four terms."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

import numpy as np

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.characteristic_functions import ShortenedLine, around, cosines_and_sines, origin_of
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.multivariate import dimensions
from calibrant.kernels import Identity, Kernel, LabelMatrix
from calibrant.kernels.base import expectation, registered
from calibrant.kernels.label_kernels import OnClasses
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
    """Frequencies ``(m,)`` or ``(m, d)``, roots of their weights, and the features that n predictions expect, ``(n, 2m)``."""

    nodes: np.ndarray
    roots: np.ndarray
    expected: Array
    line: ShortenedLine | None = None

    def of_points(self, y: Array) -> Array:
        """Features ``(k, 2m)`` of targets ``(k,)``, where they lie on the line, or ``(k, d)``."""
        y = y if self.line is None else self.line(y)
        roots = matched(self.roots, y)
        return namespace(y).concat([part * roots for part in cosines_and_sines(y, self.nodes)], axis=1)

    def __call__(self, targets: Array) -> Array:
        """Features ``(n, 2m)`` of ``delta_y - P``."""
        return self.of_points(targets) - matched(self.expected, targets)


def spectral_features(kernel: Kernel, predictions: Distribution, *targets: Array) -> Any:
    """Features that serve these predictions and all of these targets, of any shape; or ``NotImplemented``.

    Those of vectors are random ones, where the family has nothing more exact that costs as little.
    """
    if width := dimensions(predictions):
        return _random_features(kernel, predictions, width) if predictions.is_cheaper_by_features else NotImplemented
    return _features_of(kernel, predictions, (predictions,), targets)


def _random_features(kernel: Kernel, predictions: Distribution, width: int) -> Any:
    """Those of ``N_FREQUENCIES`` random frequencies, always the same."""
    frequencies = kernel.frequencies(np.random.default_rng(0), N_FREQUENCIES, width)
    if frequencies is NotImplemented:
        return NotImplemented
    return _expected(predictions, frequencies, np.full(N_FREQUENCIES, 1 / N_FREQUENCIES))


def residual_features(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """Features ``(n, 2m)`` of ``delta_y - P``, or ``NotImplemented``."""
    found = spectral_features(kernel, predictions, targets)
    return NotImplemented if found is NotImplemented else found(targets)


def mean_embedding(kernel: Kernel, predictions: Distribution, beside: Distribution | None = None) -> Any:
    """Coordinates ``(n, 2m)`` whose Euclidean distance is ``sqrt(L(P,P) - 2 L(P,Q) + L(Q,Q))``, or ``NotImplemented``.

    Those of predictions and of others ``beside`` them belong together if each is told of the other. Of vectors, the
    distance as seen by ``N_FREQUENCIES`` random frequencies, always the same.
    """
    if width := dimensions(predictions):
        found = _random_features(kernel, predictions, width)
    else:
        found = _features_of(kernel, predictions, (predictions, predictions if beside is None else beside), ())
    return NotImplemented if found is NotImplemented else found.expected


def _features_of(
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


NODES = 128
"""Points that stand for a distribution on the routes by quantiles and by draws."""

MAX_ROWS = 4096
"""Rows with that many points each that are seen from elsewhere at a time."""


class Route(Enum):
    """How expectations under the predictions are computed, best first.

    >>> Route("spectral") is Route.SPECTRAL
    True
    """

    FEATURES = "features"
    CLOSED = "closed"
    SPECTRAL = "spectral"
    QUANTILE = "quantile"
    SAMPLED = "sampled"

    def __repr__(self) -> str:
        return f"Route({self.value!r})"


@dataclass(frozen=True, eq=False)
class Residuals:
    """n residuals; ``inner`` gives their inner products with others.

    On the first and third route ``features`` holds them as vectors; otherwise ``kernel``, ``points`` (the targets) and
    ``spread`` (the predictions) give the four terms ``l(y, y') - L(P, y') - L(y, P') + L(P, P')``. On the last route the
    draws that stand for rows and for columns are independent, so the inner products are unbiased.
    """

    route: Route
    features: Array | None = None
    kernel: Kernel | None = None
    points: Distribution | None = None
    spread: Distribution | None = None
    column_spread: Distribution | None = None

    def __len__(self) -> int:
        return int(self.features.shape[0]) if self.features is not None else len(self.points)  # type: ignore[arg-type]

    def __getitem__(self, rows: slice | Array) -> Self:
        return replace(
            self,
            features=None if self.features is None else self.features[rows, :],
            points=None if self.points is None else self.points[rows],
            spread=None if self.spread is None else self.spread[rows],
            column_spread=None if self.column_spread is None else self.column_spread[rows],
        )

    def inner(self, other: "Residuals") -> Array:
        """Inner products ``(n, m)``."""
        if self.features is not None and other.features is not None:
            return self.features @ namespace(other.features).permute_dims(other.features, (1, 0))
        columns = other.spread if other.column_spread is None else other.column_spread
        pairs = [
            (self.points, other.points),
            (self.spread, other.points),
            (self.points, columns),
            (self.spread, columns),
        ]
        both, left, right, spread = (expectation(self.kernel, p, q) for p, q in pairs)  # type: ignore[arg-type]
        return both - left - right + spread

    def seen_from(self, places: Array) -> Array:
        """``l(t_j, y_i) - E l(t_j, Z_i)``, ``(J, n)``, where the four terms are known."""
        assert self.spread is not None
        points = self.spread.point(places)
        both, spread = (expectation(self.kernel, points, q) for q in (self.points, self.spread))  # type: ignore[arg-type]
        return both - spread


def residuals(kernel: Kernel, targets: Array, predictions: Distribution, route: Route | None = None) -> Residuals:
    """The residuals by the best route, or by the one asked for.

    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian
    >>> residuals(Gaussian(1.0), np.array([0.5]), Normal([0.0], 1.0)).route
    Route('closed')
    """
    kernel = on_classes(kernel, predictions)
    for name in _preferred(predictions) if route is None else (route,):
        found = _ROUTES[name](kernel, targets, predictions)
        if found is not NotImplemented:
            return found
    raise InputError(_no_route(kernel, predictions, route))


def on_classes(kernel: Kernel, predictions: Distribution) -> Kernel:
    """The kernel as one of class labels, 0, 1, ..., where predictions are of classes."""
    if not isinstance(predictions, Categorical) or isinstance(kernel, Identity | LabelMatrix):
        return kernel
    return OnClasses.of(kernel, predictions.n_classes)


def _preferred(predictions: Distribution) -> tuple[Route, ...]:
    """Routes, best first. Sums over all pairs of values cost far more than the features of each, and say the same."""
    if predictions.is_cheaper_by_features:
        return (Route.FEATURES, Route.SPECTRAL, *(r for r in Route if r not in (Route.FEATURES, Route.SPECTRAL)))
    return tuple(Route)


def seen_from(kernel: Kernel, places: Array, targets: Array, predictions: Distribution) -> Array:
    """``l(t_j, y_i) - E l(t_j, Z_i)``, ``(J, n)``: the residuals of n rows as seen from J targets t, by the best route.

    >>> from calibrant import Gamma
    >>> from calibrant.kernels import Energy
    >>> seen_from(Energy(), np.array([1.0]), np.array([2.0]), Gamma([1.0], 1.0)).round(4)  # 1 - (1 - 1 / e)
    array([[0.3679]])
    """
    if kernel.has_free_origin:
        predictions, targets, places = around(origin_of(predictions), predictions, targets, places)
    closed = _closed(kernel, targets, predictions)
    if closed is not NotImplemented:
        return closed.seen_from(places)
    found = spectral_features(kernel, predictions, places, targets) if targets.ndim == 1 else NotImplemented
    if found is not NotImplemented:
        features = found(targets)
        return found.of_points(places) @ namespace(features).permute_dims(features, (1, 0))
    for route in (_by_nodes, _sampled):
        finite = route(kernel, targets, predictions)
        if finite is not NotImplemented:
            cuts = [slice(start, start + MAX_ROWS) for start in range(0, len(finite), MAX_ROWS)]
            return namespace(targets).concat([finite[cut].seen_from(places) for cut in cuts], axis=1)
    raise InputError(_no_route(kernel, predictions, None))


def _explicit(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    if not isinstance(predictions, Categorical) or not isinstance(kernel, Identity | LabelMatrix):
        return NotImplemented
    return Residuals(Route.FEATURES, label_residuals(kernel, targets, predictions))


def label_residuals(kernel: Identity | LabelMatrix, targets: Array, predictions: Categorical) -> Array:
    """One-hot targets minus probabilities, times a root of the kernel matrix: of labels ``(..., n)``, ``(..., n, q)``."""
    if isinstance(kernel, LabelMatrix) and len(kernel.matrix) != predictions.n_classes:
        raise InputError(f"the label matrix is for {len(kernel.matrix)} classes; y_pred has {predictions.n_classes}")
    xp = namespace(predictions.probs)
    if isinstance(kernel, Identity) and predictions.n_classes == 2:  # (-e, e) has the length sqrt2 |e|
        error = xp.astype(matched(targets, predictions.probs), predictions.probs.dtype) - predictions.probability(1)
        return 2**0.5 * error[..., None]
    difference = predictions.one_hot(matched(targets, predictions.probs)) - predictions.matrix
    if isinstance(kernel, LabelMatrix):
        difference = difference @ xp.astype(matched(kernel.root, difference), difference.dtype)
    return difference


def _closed(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    points = predictions.point(targets)
    if points is NotImplemented:
        return NotImplemented
    one = predictions[:1], points[:1]  # against all rows, as some of them may have no closed form
    pairs = [(one[1], one[1]), (one[1], predictions), (predictions, one[1]), (one[0], predictions)]
    if any(expectation(kernel, p, q) is NotImplemented for p, q in pairs):
        return NotImplemented
    return Residuals(Route.CLOSED, kernel=kernel, points=points, spread=predictions)


def _spectral(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    features = residual_features(kernel, targets, predictions)
    return NotImplemented if features is NotImplemented else Residuals(Route.SPECTRAL, features)


def _quantile(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """Each prediction as an ensemble of its own quantiles."""
    nodes = quantile_nodes(predictions, targets)
    if nodes is NotImplemented:
        return NotImplemented
    features = residual_features(kernel, targets, nodes)
    if features is not NotImplemented:
        return Residuals(Route.QUANTILE, features)
    return _by_nodes(kernel, targets, predictions)


def _by_nodes(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """The four terms of such ensembles."""
    nodes = quantile_nodes(predictions, targets)
    if nodes is NotImplemented:
        return NotImplemented
    return Residuals(Route.QUANTILE, None, kernel, nodes.point(targets), nodes)


def quantile_nodes(predictions: Distribution, targets: Array) -> Any:
    """Each prediction as an ensemble of its own quantiles, in the library of the targets, or ``NotImplemented``."""
    nodes = predictions.quantile((np.arange(NODES) + 0.5) / NODES)
    return NotImplemented if nodes is NotImplemented else Ensemble(matched(to_numpy(nodes), targets))


def _sampled(kernel: Kernel, targets: Array, predictions: Distribution) -> Any:
    """Each prediction as two independent ensembles of draws, one for rows and one for columns."""
    if isinstance(predictions, Categorical):
        return NotImplemented
    rng = np.random.default_rng(0)
    rows, columns = (np.moveaxis(predictions.sample(rng, NODES), 0, 1) for _ in range(2))
    spread, other = (Ensemble(matched(drawn, targets)) for drawn in (rows, columns))
    return Residuals(Route.SAMPLED, None, kernel, spread.point(targets), spread, other)


_ROUTES: dict[Route, Callable[[Kernel, Array, Distribution], Any]] = {
    Route.FEATURES: _explicit,
    Route.CLOSED: _closed,
    Route.SPECTRAL: _spectral,
    Route.QUANTILE: _quantile,
    Route.SAMPLED: _sampled,
}


def _no_route(kernel: Kernel, predictions: Distribution, route: Route | None) -> str:
    family = type(predictions).__name__
    known = sorted({f"{k.__name__} with {p.__name__}" for k, p, _ in registered()})
    wish = "" if route is None else f" by the route {route.value!r}"
    return f"{kernel!r} has no expectation under {family} predictions{wish}; closed forms: {', '.join(known)}"
