"""What maps do to rows they have not seen."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._tasks import elsewhere, mapping
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.cells import crps_by_cells, has_levels
from calibrant.distributions.quantiles import fan_of
from calibrant.results import Table, how_many, number
from calibrant.typing import Engine

if TYPE_CHECKING:
    from calibrant.recalibration.base import Recalibrator


FLOORED = "floored log loss"
"""The log loss in which probabilities below :func:`floor_of` count as that."""


class HeldOut(NamedTuple):
    """Row numbers, and what a map that was fitted on other rows made of their predictions."""

    rows: np.ndarray
    predictions: Distribution


def held_out(
    recalibrator: "Recalibrator",
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
    engine: Engine | None = None,
) -> tuple[HeldOut, ...]:
    """Each fold, seen through the map of all other rows; rows in folds below 0 are never held out. A fold is a task."""
    task = partial(_held_out, recalibrator, targets, predictions, weights, fold)
    return tuple(mapping(elsewhere(engine))(task, np.unique(fold[fold >= 0]).tolist()))


def _held_out(
    recalibrator: "Recalibrator",
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
    k: int,
) -> HeldOut:
    learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
    w = None if weights is None else weights[learn]
    found = recalibrator.find(targets[learn], predictions[learn], w).map
    return HeldOut(rest, found.apply(predictions[rest]))


def in_order(parts: Sequence[HeldOut]) -> Categorical:
    """Class probabilities of all folds as one batch, in the order of the rows."""
    rows = np.concatenate([part.rows for part in parts])
    classes = [part.predictions for part in parts if isinstance(part.predictions, Categorical)]
    matrix = np.concatenate([to_numpy(one.matrix) for one in classes])
    return Categorical(matrix[np.argsort(rows)], classes[0].labels)


def scores(
    targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, parts: Sequence[HeldOut]
) -> Table | None:
    """Mean losses of predictions ``before`` and ``after``, the mean ``change`` and its standard ``error``, a row a score.

    The first judges: the log loss where both have a density, else the CRPS. Where classes that happened had been given a
    probability of 0 it is the :data:`FLOORED` log loss, which :func:`impossible` puts in words; of numbers, scores that
    are finite come first. ``None`` where predictions have no score in common.
    """
    names = scores_of(predictions, targets)
    names = [name for name in names if all(name in scores_of(part.predictions, targets) for part in parts)]
    if not names:
        return None
    w = mean_weights(weights, len(targets))
    pairs = [
        finite(
            name, np.stack([LOSSES[name](predictions, targets), losses_in_order(name, targets, parts)]), w, predictions
        )
        for name in names
    ]
    if not isinstance(predictions, Categorical):
        pairs.sort(key=lambda pair: not np.isfinite(pair[1][0]).all())
    before, after = np.stack([losses for _, losses in pairs], axis=1)
    change, error = mean_change(before, after, w)
    return Table(score=[name for name, _ in pairs], before=before @ w, after=after @ w, change=change, error=error)


def mean_weights(weights: np.ndarray | None, n: int) -> np.ndarray:
    """Weights of n rows that sum to 1."""
    return np.full(n, 1 / n) if weights is None else weights / weights.sum()


def floor_of(n: int) -> float:
    """The probability that a lower one counts as in the floored log loss of n rows: what half an event in n + 1 rows has.

    >>> floor_of(499)
    0.001
    """
    return 0.5 / (n + 1)


def finite(name: str, losses: np.ndarray, w: np.ndarray, predictions: Distribution) -> tuple[str, np.ndarray]:
    """Losses ``(..., n)``, the first those before, and their name; rows without weight have none.

    Log losses of classes that are infinite before are floored. A map that is the first to call impossible what happened
    stays infinitely worse.
    """
    losses = np.where(w > 0, losses, 0.0)
    if np.isfinite(losses[0]).all() or not isinstance(predictions, Categorical):
        return name, losses
    return FLOORED, np.minimum(losses, -np.log(floor_of(int((w > 0).sum()))))


def impossible(
    targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, parts: Sequence[HeldOut]
) -> tuple[str, ...]:
    """How many rows were called impossible and happened, before and after, and how the floored log loss counts them."""
    if not isinstance(predictions, Categorical):
        return ()
    is_row = np.ones(len(targets), dtype=bool) if weights is None else weights > 0
    both = (_log_loss(predictions, targets), losses_in_order("log loss", targets, parts))
    before, after = (int((np.isinf(losses) & is_row).sum()) for losses in both)
    if not before:
        if not after:
            return ()
        return (f"{how_many(after, 'row')} that happened got probability 0 from the map: the log loss is infinite",)
    left = f", {after:,} after the map" if after else ", none after the map"
    return floored_words(before, int(is_row.sum()), left)


def floored_words(rows: int, n: int, left: str = "") -> tuple[str, ...]:
    """That so many of n rows were called impossible and happened, and how the floored log loss counts them.

    >>> print(*floored_words(3, 499))
    3 rows had probability 0 for what happened: the log loss is infinite. The floored log loss counts smaller probabilities \
than 0.001, half an event in n + 1 rows, as that
    """
    return (
        f"{how_many(rows, 'row')} had probability 0 for what happened{left}: the log loss is infinite. The floored log loss "
        f"counts smaller probabilities than {number(floor_of(n))}, half an event in n + 1 rows, as that",
    )


def nats(score: str, change: float, rows: float) -> float:
    """The logarithm of how many times as likely what happened is after a change of the score; 0 of scores that cannot tell.

    Were the predictions before right, a factor of 20 in favour of others would be seen in at most one case in 20 (Ville).

    >>> nats("log loss", -0.01, 500), nats("Brier", -0.01, 500)
    (5.0, 0.0)
    """
    return -change * rows if score in ("log loss", FLOORED) and np.isfinite(change) else 0.0


def mean_change(before: np.ndarray, after: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of what losses ``(..., n)`` change by, with weights that sum to 1, and its standard error.

    A row with the same infinite loss twice has no change. An infinite change has no error: it is given as infinite; of
    rows that are infinitely better and others that are infinitely worse, the mean is given as 0.

    >>> mean_change(np.array([1.0, 1.0]), np.array([0.0, 2.0]), np.array([0.5, 0.5]))
    (np.float64(0.0), np.float64(0.7071067811865476))
    >>> mean_change(np.array([np.inf, 1.0]), np.array([0.0, np.inf]), np.array([0.5, 0.5]))
    (np.float64(0.0), np.float64(inf))
    """
    with np.errstate(invalid="ignore"):
        change = np.where(before == after, 0.0, after - before)
        mean = change @ w
        error = np.sqrt((w**2 * (change - mean[..., None]) ** 2).sum(axis=-1))
    return np.where(np.isnan(mean), 0.0, mean)[()], np.where(np.isnan(error), np.inf, error)[()]


def losses_in_order(name: str, targets: np.ndarray, parts: Sequence[HeldOut]) -> np.ndarray:
    """Losses of all folds, in the order of the rows, ``(n,)``."""
    losses = np.empty(len(targets))
    for part in parts:
        losses[part.rows] = LOSSES[name](part.predictions, targets[part.rows])
    return losses


def scores_of(predictions: Distribution, targets: np.ndarray) -> list[str]:
    """The scores that predictions have: the log loss where there is a density; of classes the Brier score, of numbers the CRPS.

    Quantile forecasts have the pinball loss at their levels, and no other: what lies between them is not known.
    """
    if fan_of(predictions) is not None:
        return ["pinball"]
    names, first = [], predictions[:1]
    with suppress(InputError):  # no density
        first.log_prob(targets[:1])
        names.append("log loss")
    if isinstance(predictions, Categorical):
        names.append("Brier")
    elif targets.ndim == 1 and (first.crps(targets[:1]) is not NotImplemented or has_levels(first)):
        names.append("CRPS")
    return names


def _log_loss(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    return -to_numpy(predictions.log_prob(targets))


def _brier(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    assert isinstance(predictions, Categorical)
    return predictions.squared_error(targets)


def _crps(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    ranked = predictions.crps(targets)
    return to_numpy(crps_by_cells(predictions, targets) if ranked is NotImplemented else ranked)


def _pinball(predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    """The mean over the levels that were forecast."""
    fan = fan_of(predictions)
    assert fan is not None
    y = targets[:, None]
    return (((y < fan.quantiles) - fan.levels) * (fan.quantiles - y)).mean(axis=1)


LOSSES: dict[str, Callable[[Distribution, np.ndarray], np.ndarray]] = {
    "log loss": _log_loss,
    "Brier": _brier,
    "CRPS": _crps,
    "pinball": _pinball,
}
"""The loss of each row, by the name of its mean."""
