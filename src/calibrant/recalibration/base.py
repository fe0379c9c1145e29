"""What recalibrators share: settings that fit a map, and the fit with what it did to rows it had not seen."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._files import read_json, write_whole
from calibrant._spellings import Settings
from calibrant._tasks import elsewhere, mapping
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.quadrature import crps_by_cells, has_levels
from calibrant.distributions.reading.conversion import Classes, as_clustered_problem
from calibrant.recalibration.maps import Map, NamedClasses
from calibrant.results import Table, how_many, number
from calibrant.results.result import SCHEMA, Result
from calibrant.results.text import brief
from calibrant.typing import ArrayLike, Engine


def effective_rows(weights: np.ndarray | None, n: int) -> float:
    """The number of rows of equal weight that tell as much: ``(sum w)^2 / sum w^2``. Kish (1965).

    >>> round(effective_rows(np.array([1.0, 3.0]), 2), 6), effective_rows(np.array([5.0, 5.0, 0.0]), 3)
    (1.6, 2.0)
    """
    return float(in_rows(weights, n).sum())


def in_rows(weights: np.ndarray | None, n: int) -> np.ndarray:
    """For how many of the effective rows each of n rows stands.

    >>> in_rows(np.array([2.0, 6.0]), 2), in_rows(np.array([0.5, 1.5]), 2)
    (array([0.4, 1.2]), array([0.4, 1.2]))
    """
    if weights is None:
        return np.ones(n)
    w = weights / weights.max()  # rows that count alike stand for one row each, to the last digit
    found: np.ndarray = w * (w.sum() / (w @ w))
    return found


def shares(weights: np.ndarray | None, n: int) -> tuple[np.ndarray, float]:
    """Weights that sum to 1, and for how many rows they stand.

    >>> share, rows = shares(np.array([1.0, 3.0]), 2)
    >>> share, round(rows, 6)
    (array([0.25, 0.75]), 1.6)
    """
    w = in_rows(weights, n)
    return w / w.sum(), float(w.sum())


def folds_of_rows(n: int, n_folds: int, seed: int = 0, clusters: Clusters | None = None) -> np.ndarray:
    """The fold of each of n rows, from 0 on, as equal in size as can be, at random; rows of a cluster share theirs.

    What happened has no say. Were classes dealt evenly, a class that happened more often than predicted would have done so
    in every fold alike, and what is learned from some folds would seem to be confirmed by the others: the mean of
    calibration errors of calibrated predictions would be above 0.

    >>> folds_of_rows(6, 3).tolist()
    [0, 2, 2, 1, 0, 1]
    """
    check_count(n_folds, "folds", least=2)
    if n < n_folds:
        raise InputError(f"folds must not exceed the number of rows; got {n_folds} folds of {n} rows")
    if clusters is not None:
        return _folds_of_clusters(clusters, n_folds, seed)
    return np.random.default_rng(seed).permutation(n) % n_folds


def _folds_of_clusters(clusters: Clusters, n_folds: int, seed: int) -> np.ndarray:
    """Whole clusters, the largest first, equal ones at random, each to the fold that has the fewest rows."""
    if len(clusters) < n_folds:
        raise InputError(
            f"folds must not exceed the number of clusters; got {n_folds} folds of {len(clusters)} clusters"
        )
    sizes = clusters.sums()
    shuffled = np.random.default_rng(seed).permutation(len(clusters))
    filled, fold = np.zeros(n_folds), np.empty(len(clusters), dtype=np.intp)
    for cluster in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold[cluster] = np.argmin(filled)
        filled[fold[cluster]] += sizes[cluster]
    return fold[clusters.codes]


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
    known: Map | None = None,
) -> tuple[HeldOut, ...]:
    """Each fold, seen through the map of all other rows; rows in folds below 0 are never held out. A fold is a task.

    Searches may start from a ``known`` map of all rows; where they end does not depend on it.
    """
    task = partial(_held_out, recalibrator, targets, predictions, weights, fold, known)
    return tuple(mapping(elsewhere(engine))(task, np.unique(fold[fold >= 0]).tolist()))


def _held_out(
    recalibrator: "Recalibrator",
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    fold: np.ndarray,
    known: Map | None,
    k: int,
) -> HeldOut:
    learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
    w = None if weights is None else weights[learn]
    found = recalibrator.find_near(known, targets[learn], predictions[learn], w).map
    return HeldOut(rest, found.apply(predictions[rest]))


def in_order(parts: Sequence[HeldOut]) -> Categorical:
    """Class probabilities of all folds as one batch, in the order of the rows."""
    rows = np.concatenate([part.rows for part in parts])
    classes = [part.predictions for part in parts if isinstance(part.predictions, Categorical)]
    matrix = np.concatenate([to_numpy(one.matrix) for one in classes])
    return classes[0].alike(matrix[np.argsort(rows)])


def scores(
    targets: np.ndarray,
    predictions: Distribution,
    weights: np.ndarray | None,
    parts: Sequence[HeldOut],
    clusters: Clusters | None = None,
) -> Table | None:
    """Mean losses of predictions ``before`` and ``after``, the mean ``change`` and its standard ``error``, a row per score.

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
    change, error = mean_change(before, after, w, clusters)
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


def mean_change(
    before: np.ndarray, after: np.ndarray, w: np.ndarray, clusters: Clusters | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of what losses ``(..., n)`` change by, with weights that sum to 1, and its standard error.

    With clusters it is that of sums over them, C of which count as C - 1.

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
        off = w * (change - mean[..., None])
        if clusters is None:
            error = np.sqrt((off**2).sum(axis=-1))
        else:
            sums = np.apply_along_axis(clusters.sums, -1, off)
            error = np.sqrt((sums**2).sum(axis=-1) * len(clusters) / (len(clusters) - 1))
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


class Found(NamedTuple):
    """A map, whether the search for it ended where it should, and what a reader must know."""

    map: Map
    is_converged: bool = True
    notes: tuple[str, ...] = ()


class Recalibrator(Settings, ABC):
    """A frozen value with the settings of a recalibrator; :meth:`fit` makes the map.

    Subclasses are frozen dataclasses that write :meth:`find`.
    """

    @abstractmethod
    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The map for a checked problem, targets on the host."""

    def find_near(
        self,
        known: Map | None,
        targets: np.ndarray,
        predictions: Distribution,
        weights: np.ndarray | None,
    ) -> Found:
        """The same map; a search may start from one that is known of rows alike, such as all of which these are a part."""
        return self.find(targets, predictions, weights)

    def fit(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        folds: int = 5,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> "Recalibration":
        """The map from all rows, and what maps from the other folds did to the rows of each; ``folds=0`` leaves that out.

        ``clusters`` has one label per row: rows with the same label may depend on each other, and are held out together. A fold is
        a task of the engine.
        """
        targets, predictions, weights, together = as_clustered_problem(
            y_true, y_pred, sample_weight, clusters, Classes(labels, pos_label)
        )
        together = None if together is None or together.are_single_rows else together
        y = to_numpy(targets)
        found = self.find(y, predictions, weights)
        tried: tuple[HeldOut, ...] = ()
        if folds != 0:
            fold = folds_of_rows(len(y), folds, seed, together)
            tried = held_out(self, y, predictions, weights, fold, engine, found.map)
        table = scores(y, predictions, weights, tried, together) if tried else None
        zeros = impossible(y, predictions, weights, tried) if tried else ()
        return Recalibration(
            self,
            found.map,
            len(predictions),
            table,
            found.is_converged,
            (*zeros, *_notes(found, table)),
            predictions.class_names if isinstance(predictions, Categorical) and predictions.labels else None,
            tried,
        )


class Searching(Recalibrator):
    """A recalibrator whose search may start from a known map: it writes :meth:`find_near`."""

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The map for a checked problem, from the start that suits most."""
        return self.find_near(None, targets, predictions, weights)

    @abstractmethod
    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """The same from the start that is known, if one is."""


@dataclass(frozen=True, repr=False)
class Recalibration(Result):
    """A fitted map, which is a function from predictions to predictions, with what speaks for and against it.

    ``scores`` has a row per score: its mean over held-out rows ``before`` and ``after``, the ``change``, and the standard
    ``error`` of the change. Smaller is better. ``labels`` are the names of the classes, where they had some; predictions
    of other names are refused, and the same names may come in another order. ``held_out`` has the predictions behind the
    scores, fold by fold.
    """

    recalibrator: Recalibrator
    map: Map
    n: int
    scores: Table | None = field(default=None, compare=False)
    is_converged: bool = True
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    held_out: tuple[HeldOut, ...] = field(default=(), compare=False)

    def __call__(self, y_pred: ArrayLike) -> Any:
        """Predictions put right."""
        return (self.map if self.labels is None else NamedClasses(self.labels, self.map))(y_pred)

    @property
    def is_worse(self) -> bool:
        """Whether held-out rows have a larger loss than before, the log loss where there is one."""
        return self.scores is not None and bool(self.scores["change"][0] > 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "kind": "recalibration",
            "recalibrator": repr(self.recalibrator),
            "n": self.n,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "is_converged": self.is_converged,
            "notes": list(self.notes),
            "labels": self.labels,
            "map": self.map.to_dict(),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the map as JSON; :func:`load_map` reads it."""
        write_whole(path, self.to_json() + "\n")

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("recalibration", brief(self.recalibrator))]
        for row in [] if self.scores is None else self.scores.rows():
            text = f"{number(row['before'])} -> {number(row['after'])} held out"
            change = f" ({row['change']:+.2g} ± {row['error']:.1g})" if np.isfinite(row["error"]) else ""
            lines.append((row["score"], f"{text}{change}"))
        return [*lines, *(("note", note) for note in self.notes), ("n", f"{self.n:,}")]


def load_map(path: str | PathLike[str]) -> Map:
    """The map in a file that :meth:`Recalibration.save` wrote. It holds numbers and names, and runs no code.

    >>> import tempfile
    >>> from calibrant.recalibration import Temperature
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Temperature().fit([0, 1, 1, 0] * 10, [0.3, 0.6, 0.2, 0.9] * 10).save(f"{folder}/map.json")
    ...     load_map(f"{folder}/map.json").temperature > 1
    True
    """
    try:
        data = read_json(path)
    except InputError as error:
        raise InputError(f"{path} is no recalibration map: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != "recalibration":
        raise InputError(f"{path} is no recalibration map: it was not written by Recalibration.save")
    if data.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{path} has the format {data['schema']!r}; this version of calibrant reads {SCHEMA!r}")
    try:
        found = Map.from_dict(data.get("map"))
        return found if data.get("labels") is None else NamedClasses(data["labels"], found)
    except InputError:
        raise
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(f"{path} is no recalibration map: {error}") from error


def _notes(found: Found, scores: Table | None) -> tuple[str, ...]:
    notes = found.notes if found.is_converged else (*found.notes, "the fit did not converge")
    if scores is not None and scores["change"][0] > 0:
        notes = (*notes, f"held-out {scores['score'][0]} got worse: do not use this map")
    return notes
