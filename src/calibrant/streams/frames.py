"""States of data frames that come one after the other, and binned errors of tables that stay in their database."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from calibrant._validate import InputError, of_what
from calibrant.estimators.binned.binned_state import BinnedState
from calibrant.estimators.binned.binning import Edges
from calibrant.estimators.binned.ece import ECE
from calibrant.streams.states import from_dict, state
from calibrant.typing import ArrayLike

Mapper = Callable[[Iterable[Any]], Iterator[Any]]
"""From frames to frames."""


def frame_states(
    *estimators: Any,
    y_true: str = "y",
    y_pred: str | Sequence[str] = "p",
    sample_weight: str | None = None,
    like: tuple[ArrayLike, ArrayLike] | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> Mapper:
    """A function from the frames of one part of the data to one frame of one row, whose column ``state`` holds the state as JSON.

    In Spark, ``table.mapInPandas(frame_states(ECE()), "state string")``. A part without rows gives nothing. Frames are of
    pandas or Polars, or mappings of columns; several columns in ``y_pred`` are the probabilities of the classes.

    >>> from calibrant import ECE
    >>> import polars
    >>> frames = [polars.DataFrame({"y": [1, 0], "p": [0.9, 0.2]}), polars.DataFrame({"y": [1], "p": [0.7]})]
    >>> (row,) = frame_states(ECE())(frames)
    >>> round(merged(row["state"]).finalize().value, 4)
    0.2
    """
    state(*estimators, like=like)  # which checks them here rather than far away
    columns = y_true, y_pred if isinstance(y_pred, str) else list(y_pred), sample_weight
    return partial(_mapped, estimators, like, columns, {"labels": labels, "pos_label": pos_label})


def _mapped(
    estimators: tuple[Any, ...],
    like: tuple[ArrayLike, ArrayLike] | None,
    columns: tuple[str, str | list[str], str | None],
    names: Mapping[str, Any],
    frames: Iterable[Any],
) -> Iterator[Any]:
    total, kind = state(*estimators, like=like), None
    y_true, y_pred, weight = columns
    for frame in frames:
        kind = type(frame)
        weights = {} if weight is None else {"sample_weight": frame[weight]}
        total = total.update(frame[y_true], frame[y_pred], **weights, **names)
    if kind is not None and total.n:
        yield kind({"state": [json.dumps(total.to_dict())]})


def merged(texts: Iterable[str]) -> Any:
    """The state of all parts from their texts, such as a column that was collected; the order does not matter.

    >>> from calibrant import ECE
    >>> texts = [json.dumps(state(ECE()).update(y, p).to_dict()) for y, p in (([1, 0], [0.9, 0.2]), ([1], [0.7]))]
    >>> merged(texts).finalize().n
    3
    """
    states = [from_dict(_read(text)) for text in _listed(texts, "texts")]
    if not states:
        raise InputError("there are no states to merge: did every part of the data have no rows?")
    return reduce(lambda a, b: a.merge(b), states)


def bin_query(ece: ECE, table: str, *, y_true: str = "y", y_pred: str = "p", sample_weight: str | None = None) -> str:
    """The query for the number of rows, the sum of p and the sum of y in each bin, in SQL that all databases speak.

    ``y_true`` (0 or 1), ``y_pred`` and ``sample_weight`` are columns or expressions, put into the query as they are: never
    take them from strangers. Bins are those of the estimator: right-closed, 0 in the first. Rows without a value are
    left out, as SQL does.

    >>> from calibrant.estimators import Edges
    >>> print(bin_query(ECE(Edges((0, 0.5, 1))), "predictions"))
    SELECT CASE WHEN p <= 5.0000000000000000e-01 THEN 0 ELSE 1 END AS bin,
           SUM(1) AS weight, SUM(1 * p) AS predicted, SUM(1 * y) AS observed
    FROM predictions
    WHERE y IS NOT NULL AND p IS NOT NULL
    GROUP BY 1
    """
    inner = _edges(ece)[1:-1]
    cases = " ".join(f"WHEN {y_pred} <= {edge:.16e} THEN {i}" for i, edge in enumerate(inner))
    column = f"CASE {cases} ELSE {len(inner)} END" if cases else "0"
    w = "1" if sample_weight is None else sample_weight
    present = " AND ".join(f"{name} IS NOT NULL" for name in (y_true, y_pred, sample_weight) if name is not None)
    return (
        f"SELECT {column} AS bin,\n       SUM({w}) AS weight, SUM({w} * {y_pred}) AS predicted, "
        f"SUM({w} * {y_true}) AS observed\nFROM {table}\nWHERE {present}\nGROUP BY 1"
    )


def from_bins(ece: ECE, rows: Iterable[Sequence[Any]]) -> BinnedState:
    """The state from the answer to :func:`bin_query`: bin, weight, sum of p and sum of y, in any order, empty bins left out.

    Sums are as exact as the database makes them, to about 1e-12. States of several tables can be merged.

    >>> from calibrant.estimators import Edges
    >>> state = from_bins(ECE(Edges((0, 0.5, 1))), [(1, 20, 15.0, 16), (0, 10, 3.0, 4)])
    >>> round(state.finalize().value, 4)
    0.0667
    """
    edges = _edges(ece)
    sums = np.zeros((3, len(edges) - 1))
    for row in _listed(rows, "rows"):
        index, *values = _numbers(row)
        if not 0 <= int(index) < sums.shape[1]:
            raise InputError(f"bin must be a number from 0 to {sums.shape[1] - 1}; got {index!r}")
        sums[:, int(index)] += values
    weight, predicted, observed = sums
    parts = [np.where(part <= weight * (1 + 1e-9), np.minimum(part, weight), part) for part in (predicted, observed)]
    return BinnedState.from_sums(edges, weight=weight, predicted=parts[0], observed=parts[1], norm=ece.norm)


def _listed(values: Any, name: str) -> list[Any]:
    try:
        return list(values)
    except TypeError as error:
        raise InputError(f"{name} must be a list, one for each part of the data; got {of_what(values)}") from error


def _read(text: Any) -> Any:
    """A state in JSON as data."""
    if isinstance(text, str):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    raise InputError(f"texts must be states in JSON, as frame_states makes them; got {of_what(text)}")


def _numbers(row: Any) -> list[float]:
    """Bin, weight, sum of p and sum of y."""
    try:
        found = [float(value) for value in row]
    except (TypeError, ValueError, OverflowError):
        found = []
    if len(found) != 4 or not np.all(np.isfinite(found)):
        raise InputError(
            f"rows must hold bin, weight, sum of p and sum of y, as bin_query asks for; got {of_what(row)}"
        )
    return found


def _edges(ece: ECE) -> tuple[float, ...]:
    """The edges of bins that do not depend on the data."""
    bins = BinnedState(ece).ece.bins  # which checks them
    return bins.edges if isinstance(bins, Edges) else tuple(bins.bins(np.zeros(0)).edges.tolist())
