"""What kernel estimators share: resolved kernels, coordinates of the predictions, residuals of the targets."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import as_double, is_traced, matched, namespace
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.characteristic_functions import around, origin_of
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.kernels import Gaussian, Identity, Kernel, Radial
from calibrant.kernels.base import as_points
from calibrant.kernels.metrics import MAX_ROWS, by_value, where_they_are
from calibrant.residuals.embedding import Residuals, Route, mean_embedding, on_classes, residuals
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Rows of the matrix ``h_ij = w_i w_j k(P_i, P_j) <r_i, r_j>``: coordinates, residuals and weights."""

    coords: Array
    residuals: Residuals
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.residuals)

    def __getitem__(self, rows: slice | Array) -> Self:
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.coords[rows, :], self.residuals[rows], weights)


@dataclass(frozen=True)
class KernelForm:
    """The tile ``h(a, b)``."""

    on_predictions: Kernel

    def __call__(self, a: KernelRows, b: KernelRows) -> Array:
        """All pairs of two sets of rows, ``(n, m)``."""
        tile = self.on_predictions(a.coords, b.coords) * a.residuals.inner(b.residuals)
        if a.weights is None or b.weights is None:
            return tile
        return tile * a.weights[:, None] * b.weights[None, :]


@dataclass(frozen=True)
class SymmetricForm(KernelForm):
    """The mean of both triangles, for the route by draws, where rows and columns have draws of their own."""

    def __call__(self, a: KernelRows, b: KernelRows) -> Array:
        """All pairs of two sets of rows, ``(n, m)``."""
        return (super().__call__(a, b) + super().__call__(b, a).T) / 2


def form_of(on_predictions: Kernel, rows: KernelRows) -> KernelForm:
    """The tiles of a symmetric matrix, whatever the route."""
    return (KernelForm if rows.residuals.column_spread is None else SymmetricForm)(on_predictions)


def target_kernel(kernel: Kernel | None, predictions: Distribution) -> Kernel:
    """The kernel on targets with its numbers fixed; by default the identity of classes, else a Gaussian.

    Kernels of numbers see class labels as the numbers 0, 1, ...

    An open length scale is the median distance of targets drawn from the predictions with a fixed seed: it depends on the
    predictions alone (and neither on their order nor on where they lie), so that resampled targets share the kernel and tests
    stay exact.
    """
    if kernel is None:
        kernel = Identity() if isinstance(predictions, Categorical) else Gaussian()
    return on_classes(_with_scale(kernel, predictions), predictions)


def _with_scale(kernel: Kernel, predictions: Distribution) -> Kernel:
    """With a length scale."""
    if not kernel.is_open:
        return kernel
    if any(is_traced(x) for x in predictions.parameters):
        raise InputError("give a length scale for targets: there is no median of values that are being traced")
    chosen = _drawn_from(predictions)
    if kernel.is_stationary:
        (chosen,) = around(origin_of(chosen, far=0.0), chosen)
    return kernel.resolve(as_points(chosen.sample(np.random.default_rng(0), 1)[0]))


def _drawn_from(predictions: Distribution) -> Distribution:
    """At most some thousand predictions, in the order of their values: which is which does not depend on their place."""
    parameters = predictions.parameters
    here = [where_they_are(x) for x in parameters]
    xp = namespace(*here)
    rows = by_value(xp.concat([as_double(xp.reshape(x, (len(predictions), -1))) for x in here], axis=1))
    return predictions[matched(rows, parameters[0])]


def coordinates(
    predictions: Distribution, on_predictions: Kernel, on_targets: Kernel, beside: Distribution | None = None
) -> Array:
    """Points for the kernel on predictions: what its metric embeds, the family's own, or the mean embedding.

    That is by the kernel on targets, or where it is not smooth by a Gaussian one of its length scale. Points of two
    batches that are compared must each be told of the other, ``beside``.
    """
    embed: Any = getattr(getattr(on_predictions, "metric", None), "embed", None)
    if embed is not None:
        return embed(predictions)
    if isinstance(predictions, Categorical):  # which cannot be moved
        if predictions.n_classes == 2 and on_predictions.is_euclidean:
            return 2**0.5 * predictions.probability(1)[:, None]  # the same distances as of (1 - p, p), in one dimension
        return predictions.coords
    batches = (predictions,) if beside is None else (predictions, beside)
    if on_predictions.is_stationary:
        origin = origin_of(*batches)
        batches = tuple(around(origin, batch)[0] for batch in batches)
    coords = batches[0].coords
    if coords is NotImplemented:
        origin = origin_of(*batches, far=0.0)  # the same features wherever predictions lie
        moved = [around(origin, batch)[0] for batch in batches]
        coords = mean_embedding(on_targets, *moved)
        if coords is NotImplemented and isinstance(on_targets, Radial) and on_targets.metric.is_absolute:
            coords = mean_embedding(Gaussian(on_targets.unit), *moved)  # which tells all predictions apart, too
    if coords is NotImplemented:
        raise InputError(
            f"{type(predictions).__name__} predictions have no coordinates for {on_predictions!r}, and {on_targets!r} "
            "gives them none: use a Gaussian kernel on targets, or a metric that embeds the family"
        )
    return coords


def resolve_kernels(
    on_predictions: Kernel, on_targets: Kernel | None, predictions: Distribution
) -> tuple[Kernel, Kernel, Array]:
    """Both kernels with their numbers fixed, and the coordinates of the predictions.

    Open length scales come from the same rows wherever predictions lie that can be moved.
    """
    on_targets = target_kernel(on_targets, predictions)
    coords = coordinates(predictions, on_predictions, on_targets)
    is_thinned = on_predictions.is_open and coords.shape[0] > MAX_ROWS and not is_traced(coords)
    if is_thinned and predictions.position is not NotImplemented:
        here = where_they_are(coords)
        return on_predictions.resolve(here[by_value(here)]), on_targets, coords
    return on_predictions.resolve(coords), on_targets, coords


def notes_on_kernel(on_predictions: Kernel) -> tuple[str, ...]:
    """What is to be said of a kernel on predictions that does not see every error."""
    if not on_predictions.vanishes_at_origin:
        return ()
    return (
        f"{on_predictions!r} is zero where the coordinates of a prediction are zero: errors there are not seen; "
        "Exponential() and Gaussian() see all",
    )


def unit_weights(weights: np.ndarray | None, n: int) -> np.ndarray:
    """Weights scaled to mean 1; ones where there are none."""
    return np.ones(n) if weights is None else weights * (n / weights.sum())


def weight_of_pairs(squares: float, n: int) -> float:
    """``sum_{i != j} w_i w_j`` of n weights of mean 1, from the sum of their squares; refused where one outweighs all others."""
    pairs = n**2 - squares
    if pairs <= 0:
        raise InputError("sample_weight leaves a single row: the unbiased SKCE needs two")
    return float(pairs)


def resolve_problem(
    on_predictions: Kernel,
    on_targets: Kernel | None,
    route: Route | None,
    targets: Array,
    predictions: Distribution,
    weights: np.ndarray | None = None,
) -> tuple[Kernel, Kernel, KernelRows]:
    """Both kernels with their numbers fixed, and the rows to sum over; weights are scaled to mean 1."""
    on_predictions, on_targets, coords = resolve_kernels(on_predictions, on_targets, predictions)
    w = None if weights is None else matched(unit_weights(weights, len(weights)), coords)
    if on_targets.has_free_origin:
        predictions, targets = around(origin_of(predictions), predictions, targets)
    return on_predictions, on_targets, KernelRows(coords, residuals(on_targets, targets, predictions, route), w)
