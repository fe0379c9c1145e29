"""Where the miscalibration is: the kernel witness, and signed errors along the predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import check_whole
from calibrant.distributions.reading.conversion import Classes, as_weighted_problem
from calibrant.estimators.kernel_errors.ucme import UCME, Locations, SampledLocations
from calibrant.inference.monte_carlo import draw
from calibrant.kernels import Exponential, Kernel
from calibrant.lenses.class_lenses import Event, Lens, default_lens
from calibrant.results import Table
from calibrant.typing import Array, ArrayLike, Engine, Seed


@dataclass(frozen=True, eq=False)
class Signal:
    """A name, the axis ``(n,)`` along which rows are neighbours, and the error ``(n,)`` of each row's target."""

    name: str
    axis: np.ndarray
    of: Callable[[Array], np.ndarray]


def event_signals(lens: Lens, predictions: Distribution) -> tuple[Signal, ...]:
    """Whether each event happened, minus its probability, along the probability.

    >>> from calibrant import Categorical, PositiveClass
    >>> (signal,) = event_signals(PositiveClass(), Categorical([0.25, 0.5]))
    >>> signal.of(np.array([1, 0]))
    array([ 0.75, -0.5 ])
    """
    return tuple(Signal(e.name, e.probability, partial(_event_error, e)) for e in lens.events(predictions))


def _event_error(event: Event, y: Array) -> np.ndarray:
    return event.observed(y) - event.probability


def forecast_signals(predictions: Distribution) -> tuple[Signal, ...]:
    """Level and spread of real targets, from ``F(y)``, which is uniform where the model is calibrated.

    >>> from calibrant import Normal
    >>> level, spread = forecast_signals(Normal([0.0, 0.0], 1.0))
    >>> level.of(np.array([0.0, 9.0])).round(3), spread.of(np.array([0.0, 9.0])).round(3)
    (array([0. , 0.5]), array([-0.5,  0.5]))
    """
    median = predictions.quantile(np.array([0.5]))
    if median is NotImplemented or predictions.cdf(median[:, 0]) is NotImplemented:
        raise InputError(f"{type(predictions).__name__} predictions have no distribution function to see errors by")
    axis = to_numpy(median)[:, 0]
    return Signal("level", axis, partial(_level, predictions)), Signal("spread", axis, partial(_spread, predictions))


def _level(predictions: Distribution, y: Array) -> np.ndarray:
    return predictions.cdf(to_numpy(y)) - 0.5


def _spread(predictions: Distribution, y: Array) -> np.ndarray:
    return 2 * np.abs(_level(predictions, y)) - 0.5


BANDS = (
    "use ReliabilityCurve(...)(y_true, y_pred, clusters=...), or PITHistogram of forecasts, whose bands allow for them"
)
"""The remedy where bands are for independent rows."""

TAIL = 0.025
"""Outside on either side of a band."""


@dataclass(frozen=True)
class Witness(Settings):
    """The kernel witness ``w(S, t) = mean_i k(S, P_i) [l(t, y_i) - E l(t, Z_i)]`` at places ``(S, t)``.

    Positive where targets near t happened more often than predicted for predictions near S. The mean of its square is
    :class:`UCME`. Bands hold 95 % of what resampled targets show at each place. O(nJ) per resample.

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(400)
    >>> table = Witness(n_resamples=99)((rng.random(400) < 0.2 + 0.6 * y_pred) * 1, y_pred)
    >>> list(table), table.n_rows
    (['place', 'value', 'null_low', 'null_high'], 10)
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None
    locations: Locations = SampledLocations()  # noqa: RUF009  # frozen
    n_resamples: int = 199

    def __post_init__(self) -> None:
        check_count(self.n_resamples, "n_resamples", least=39)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Table:
        """The witness at each place, in the order of the places, with its band."""
        refuse_clusters(self, clusters, BANDS)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        measure = UCME(self.on_predictions, self.on_targets, self.locations).resolve(predictions)
        places, (y, batch) = self.locations.choose(measure, targets, predictions)
        if weights is not None and len(batch) != len(predictions):
            raise InputError("optimised locations take no sample_weight")
        w = np.ones(len(batch)) if weights is None else weights
        values = partial(_witness, measure, places, batch, w / w.sum())
        task = partial(_resample, values, batch)
        null = draw(task, self.n_resamples, width=len(batch) * len(places[1]), rng=rng, engine=engine)
        low, high = np.quantile(null, [TAIL, 1 - TAIL], axis=0)
        return Table(place=np.arange(len(places[1])), value=values(y), null_low=low, null_high=high)


@dataclass(frozen=True)
class LocalErrors(Settings):
    """Signed errors along the predictions: means over rows near each point, with the band of a calibrated model.

    For class probabilities the error of an event is how often it happened minus its probability, along the probability. For
    forecasts of real numbers it is that of the level (positive: targets lie higher than predicted) and of the spread
    (positive: predictions are too narrow), in shares of probability along the predicted median. O(nG) per resample.

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(400)
    >>> table = LocalErrors(n_resamples=99)((rng.random(400) < 0.2 + 0.6 * y_pred) * 1, y_pred)
    >>> bool(table["value"][0] > table["null_high"][0]), bool(table["value"][-1] < table["null_low"][-1])
    (True, True)
    """

    lens: Lens | None = None
    lengthscale: float | None = None
    n_points: int = 25
    n_resamples: int = 199

    def __post_init__(self) -> None:
        check_count(self.n_points, "n_points", least=2)
        check_count(self.n_resamples, "n_resamples", least=39)
        Exponential(self.lengthscale)

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Table:
        """One row per signal and point: where, the mean error, its band, and how many rows count there."""
        refuse_clusters(self, clusters, BANDS)
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        check_whole(predictions, self)
        signals = self._signals(predictions)
        smooth = [self._smoother(signal.axis, weights) for signal in signals]
        task = partial(_resample_local, signals, [s[1] for s in smooth], predictions)
        width = len(predictions) * self.n_points * len(signals)
        null = draw(task, self.n_resamples, width=width, rng=rng, engine=engine)
        low, high = np.quantile(null, [TAIL, 1 - TAIL], axis=0)
        return Table(
            signal=np.repeat([signal.name for signal in signals], self.n_points),
            at=np.concatenate([s[0] for s in smooth]),
            value=_local(signals, [s[1] for s in smooth], targets),
            null_low=low,
            null_high=high,
            rows=np.concatenate([1 / (s[1] ** 2).sum(axis=1) for s in smooth]),
        )

    def _signals(self, predictions: Distribution) -> tuple[Signal, ...]:
        if isinstance(predictions, Categorical | Bernoulli):
            return event_signals(self.lens or default_lens(predictions), predictions)
        return forecast_signals(predictions)

    def _smoother(self, axis: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Points at equal shares of the rows, and weights ``(points, n)`` that sum to one at each."""
        at = np.quantile(axis, (np.arange(self.n_points) + 0.5) / self.n_points)
        scale = self.lengthscale or max(np.ptp(axis) / 20, 1e-12)
        near = Exponential(float(scale))(at[:, None], axis[:, None]) * (1 if weights is None else weights)
        return at, near / near.sum(axis=1, keepdims=True)


def _witness(
    measure: UCME, places: tuple[Array, Distribution], batch: Distribution, w: np.ndarray, y: Array
) -> np.ndarray:
    return to_numpy(measure.values(places, (batch.as_targets(y), batch))) @ w


def _resample(values: partial[np.ndarray], batch: Distribution, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    return np.stack([values(y) for y in batch.sample(np.random.default_rng(seed), size)])


def _local(signals: tuple[Signal, ...], near: list[np.ndarray], targets: Array) -> np.ndarray:
    return np.concatenate([w @ signal.of(targets) for signal, w in zip(signals, near, strict=True)])


def _resample_local(
    signals: tuple[Signal, ...],
    near: list[np.ndarray],
    predictions: Distribution,
    seed: np.random.SeedSequence,
    size: int,
) -> np.ndarray:
    return np.stack([_local(signals, near, y) for y in predictions.sample(np.random.default_rng(seed), size)])
