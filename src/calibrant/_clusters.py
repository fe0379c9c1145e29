"""Rows that belong together: the cluster of each row, checked and counted at the boundary."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_array, check_same_length
from calibrant.results.text import how_many
from calibrant.typing import ArrayLike

TESTS = "use AggregatedTest()(y_true, y_pred, clusters=...), ExactTest or WildBootstrapTest, which draw signs of whole clusters"
"""The remedy of tests that are for independent rows."""

PICTURES = "use plots.reliability(y_true, y_pred, clusters=...), or plots.pit_histogram of numbers, whose bands allow for clusters"
"""The remedy of pictures whose bands and marks are for independent rows."""

REMEDY = "give it a column that says which rows belong together, or leave it out if rows are independent"


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each row, ``codes`` from 0 on, ``(n,)``; ``len`` is their number.

    >>> clusters = as_clusters(["b", "a", "b"], 3)
    >>> clusters.codes, len(clusters), clusters.sums(np.array([1.0, 2.0, 3.0]))
    (array([1, 0, 1]), 2, array([2., 4.]))
    """

    codes: np.ndarray
    count: int

    @classmethod
    def of_codes(cls, codes: np.ndarray) -> Self:
        """From any whole numbers."""
        names, which = np.unique(codes, return_inverse=True)
        return cls(which.reshape(-1), len(names))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: np.ndarray | slice) -> Self:
        return self.of_codes(self.codes[rows])

    @property
    def are_single_rows(self) -> bool:
        """Whether every row is a cluster of its own: then rows are independent."""
        return self.count == len(self.codes)

    @property
    def effective(self) -> int:
        """How many clusters of equal size count as much, ``(sum m)^2 / sum m^2``, at least 2."""
        sizes = self.sums().astype(np.float64)
        return max(2, int(sizes.sum() ** 2 / (sizes @ sizes) + 1e-9))

    def sums(self, values: np.ndarray | None = None) -> np.ndarray:
        """The sum over the rows of each cluster, ``(C,)``, of values ``(n,)``; without any, how many rows it has."""
        return np.bincount(self.codes, weights=values, minlength=self.count)


MISSING = "give such rows labels of their own if they belong to no other row, or drop them"


def as_clusters(
    clusters: ArrayLike,
    n: int,
    name: str = "clusters",
    beside: str = "y_true",
    remedy: str = REMEDY,
    missing_remedy: str = MISSING,
) -> Clusters:
    """One label per row, of any kind, as clusters; missing labels and a single cluster are refused.

    ``name`` is what the caller's argument is called, ``beside`` the one that is as long.

    >>> len(as_clusters([3, 3, 7], 3))
    2
    """
    labels = _labels(clusters, name)
    if labels.ndim != 1:
        raise InputError(f"{name} must be one label per row; got shape {labels.shape}: {remedy}")
    check_same_length(len(labels), n, name, beside)
    missing = _missing(labels)
    if missing.any():
        raise InputError(
            f"{name} has {how_many(int(missing.sum()), 'missing label')}, first in row {int(missing.argmax())}: {missing_remedy}"
        )
    codes, count = _encoded(labels)
    if count == 1:
        raise InputError(
            f"{name} has the label {labels.tolist()[0]!r} in all {n:,} rows, and chance needs several: {remedy}"
        )
    return Clusters(codes, count)


def refuse_clusters(asker: object, clusters: ArrayLike | None, remedy: str = TESTS) -> None:
    """Refuse clusters where independent rows are needed.

    >>> try:
    ...     refuse_clusters(object(), [0, 0, 1], "use WildBootstrapTest")
    ... except InputError as error:
    ...     print(error)
    object takes no clusters, as it is for independent rows: use WildBootstrapTest
    """
    if clusters is not None:
        name = getattr(asker, "__name__", type(asker).__name__)
        raise InputError(f"{name} takes no clusters, as it is for independent rows: {remedy}")


def _labels(clusters: Any, name: str) -> np.ndarray:
    """As an array, which may hold objects."""
    if isinstance(clusters, list | tuple):
        try:
            found = np.asarray(clusters)
        except ValueError as error:
            raise InputError(f"{name} must be one label per row; got rows of different lengths: {REMEDY}") from error
        is_mixed = found.dtype.kind in "US" and not all(isinstance(x, str | bytes) for x in clusters)
        return np.array([*clusters, None], dtype=object)[:-1] if is_mixed else found
    return to_numpy(as_array(clusters, name))


def _missing(labels: np.ndarray) -> np.ndarray:
    """Which labels are none: None, NaN, NaT, or what pandas has for them."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype == object:
        return np.array([_is_missing(x) for x in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def _is_missing(x: Any) -> bool:
    try:
        return x is None or bool(x != x)  # NaN and NaT differ from themselves
    except TypeError:  # of pandas.NA one cannot tell
        return True


def _encoded(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers from 0 on, and how many there are; objects in the order of their first rows."""
    if labels.dtype != object:
        names, codes = np.unique(labels, return_inverse=True)
        return codes.reshape(-1), len(names)
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(x, len(seen)) for x in labels], dtype=np.intp)
    return codes, len(seen)
