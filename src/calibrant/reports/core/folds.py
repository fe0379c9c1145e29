"""Cross-validated predictions: of several models, each of rows that it was not trained on."""

from dataclasses import dataclass, field

import numpy as np

from calibrant._clusters import Clusters, as_clusters
from calibrant._validate import InputError, as_column
from calibrant.typing import ArrayLike

MIN_ROWS = 20
"""Rows that a fold has on average at least: each model is tested on its own."""

DEPENDENT = "predictions of each fold depend on the outcomes of the others, by which its model was trained"
"""Why all rows together have no test and no interval."""


@dataclass(frozen=True, eq=False)
class Folds(Clusters):
    """The fold of each row: which of several models, trained without these rows, predicted it."""

    names: tuple[str, ...] = field(default=(), kw_only=True)


def as_folds(folds: ArrayLike, n: int) -> Folds:
    """One label per row, as folds; refused where there is one, or where they are too many to test each model on its own rows.

    >>> as_folds(["a"] * 20 + ["b"] * 20, 40).names
    ('a', 'b')
    """
    one_model = "leave it out if one model made all predictions"
    found = as_clusters(
        folds, n, "folds", remedy=one_model, missing_remedy="name the fold of each row, or drop such rows"
    )
    if n < MIN_ROWS * len(found):
        raise InputError(
            f"folds has {len(found):,} different labels in {n:,} rows, and each model is tested on its own rows, {MIN_ROWS} or "
            f"more on average: cross-validate with fewer folds, or {one_model}"
        )
    first = np.unique(found.codes, return_index=True)[1]
    return Folds(found.codes, len(found), names=tuple(as_column(folds, "folds")[first].astype(str).tolist()))
