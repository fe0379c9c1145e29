"""Sums of ``h_ij = k(P_i, P_j) <r_i, r_j>`` over the rows of two clusters, and over pairs of rows of one cluster."""

import numpy as np

from calibrant._array import to_numpy
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
    panels = [rows[order[cut]] for cut in cuts]  # type: ignore[arg-type]
    total = np.zeros((len(clusters), len(clusters)))
    for i, (a, cut) in enumerate(zip(panels, cuts, strict=True)):
        for b, other in zip(panels[i:], cuts[i:], strict=True):
            part, across, down = _reduced(_tile(form, a, b), codes[cut], codes[other])
            total[np.ix_(across, down)] += part
            if a is not b:
                total[np.ix_(down, across)] += part.T
    return total


def _tile(form: KernelForm, a: KernelRows, b: KernelRows) -> np.ndarray:
    """On the host; the mean of both triangles where rows and columns have draws of their own."""
    found = to_numpy(form(a, b)).astype(np.float64, copy=False)
    if a.residuals.column_spread is None:
        return found
    return (found + to_numpy(form(b, a)).astype(np.float64, copy=False).T) / 2


def _reduced(tile: np.ndarray, across: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over the clusters of rows and columns, which are in order, and which these are."""
    first, second = (np.flatnonzero(np.diff(codes, prepend=-1)) for codes in (across, down))
    return np.add.reduceat(np.add.reduceat(tile, first, axis=0), second, axis=1), across[first], down[second]


def pairs_within_clusters(form: KernelForm, rows: KernelRows, clusters: Clusters) -> float:
    """``sum of h_ij over i != j of the same cluster``. O(n) times the size of clusters."""
    order = np.argsort(clusters.codes, kind="stable")
    sizes = clusters.sums()
    total, start, few = 0.0, 0, []  # type: ignore[var-annotated]
    for code, size in enumerate(sizes.tolist()):
        if size > MAX_TOGETHER // 2:
            total += float(moments_of(form, rows[order[start : start + size]]).total)  # type: ignore[arg-type]
        elif size > 1:
            few.append((code, slice(start, start + size)))
        start += size
    while few:
        some, count = [], 0
        while few and count + (few[-1][1].stop - few[-1][1].start) <= MAX_TOGETHER:
            some.append(few.pop()[1])
            count += some[-1].stop - some[-1].start
        index = np.concatenate([order[cut] for cut in some])
        codes, part = clusters.codes[index], rows[index]  # type: ignore[arg-type]
        tile = _tile(form, part, part)
        is_same = codes[:, None] == codes[None, :]
        np.fill_diagonal(is_same, val=False)
        total += float(tile[is_same].sum())
    return total
