"""Sums of ``h_ij = k(P_i, P_j) <r_i, r_j>`` over the rows of two clusters, and over pairs of rows of one cluster."""

import numpy as np

from calibrant._array import matched, to_numpy
from calibrant._clusters import Clusters
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, KernelRows
from calibrant.estimators.kernel_errors.kernel_sums import moments_of, tile_of

MAX_ROWS, MAX_CLUSTERS = 10_000, 4_096
"""Up to so many rows and clusters all pairs are looked at: the matrix of clusters is stored."""

MAX_TOGETHER = 512
"""Rows of small clusters whose pairs are looked at together."""


def pairs_of_clusters(form: KernelForm, rows: KernelRows, clusters: Clusters) -> np.ndarray:
    """``sum of h_ij over i in c and j in d``, ``(C, C)``. O(n^2) time, O(C^2) memory."""
    order = np.argsort(clusters.codes, kind="stable")
    codes, tile = clusters.codes[order], min(tile_of(rows), 2048)
    cuts = [slice(start, min(start + tile, len(codes))) for start in range(0, len(codes), tile)]
    panels = [_some(rows, order[cut]) for cut in cuts]
    total = np.zeros((len(clusters), len(clusters)))
    for i, (a, cut) in enumerate(zip(panels, cuts, strict=True)):
        for b, other in zip(panels[i:], cuts[i:], strict=True):
            part, across, down = _reduced(_tile(form, a, b), codes[cut], codes[other])
            total[np.ix_(across, down)] += part
            if a is not b:
                total[np.ix_(down, across)] += part.T
    return total


def _some(rows: KernelRows, index: np.ndarray) -> KernelRows:
    """Rows by their numbers, in any library."""
    return rows[matched(index, rows.coords)]


def _tile(form: KernelForm, a: KernelRows, b: KernelRows) -> np.ndarray:
    """On the host."""
    return to_numpy(form(a, b)).astype(np.float64, copy=False)


def _reduced(tile: np.ndarray, across: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over the clusters of rows and columns, which are in order, and which these are."""
    first, second = (np.flatnonzero(np.diff(codes, prepend=-1)) for codes in (across, down))
    return np.add.reduceat(np.add.reduceat(tile, first, axis=0), second, axis=1), across[first], down[second]


def pairs_within_clusters(form: KernelForm, rows: KernelRows, clusters: Clusters) -> float:
    """``sum of h_ij over i != j of the same cluster``. O(n) times the size of clusters."""
    order = np.argsort(clusters.codes, kind="stable")
    parts: list[list[np.ndarray]] = [[]]
    total = 0.0
    for own in np.split(order, np.cumsum(clusters.sums())[:-1]):
        if len(own) > MAX_TOGETHER:
            total += float(moments_of(form, _some(rows, own)).total)
        elif len(own) > 1:
            if sum(map(len, parts[-1])) + len(own) > MAX_TOGETHER:
                parts.append([])
            parts[-1].append(own)
    for index in (np.concatenate(part) for part in parts if part):
        codes, some = clusters.codes[index], _some(rows, index)
        is_same = codes[:, None] == codes[None, :]
        np.fill_diagonal(is_same, val=False)
        total += float(_tile(form, some, some)[is_same].sum())
    return total
