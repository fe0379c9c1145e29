"""Optimal transport between few points: which part of the weight of each goes where at the least cost.

Rows are served one after the other, each along shortest paths in costs that are reduced by prices, as in the assignment problem
of Jonker & Volgenant (1987), where paths may take back what went elsewhere. What is left at the end is optimal: no reduced cost
is negative, and weight moves where it is zero.
"""

import numpy as np

from calibrant._compiled.compiling import compiled

ROUNDING = 1e-14
"""Weights below this are none; all weights sum to one."""


@compiled
def transports(cost: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Plans ``(n, m, K, L)`` and prices ``(n, m, K)``, ``(n, m, L)`` for costs ``(n, m, K, L)`` and weights ``(n, K)``, ``(m, L)``.

    O(K L) for each path, of which there are hardly ever more than K + L.
    """
    n, m, k, size = cost.shape
    plan = np.zeros((n, m, k, size))
    of_rows, of_columns = np.zeros((n, m, k)), np.zeros((n, m, size))
    for i in range(n):
        for j in range(m):
            wanted = demand[j].copy()
            for column in range(size):
                of_columns[i, j, column] = cost[i, j, :, column].min()
            for row in range(k):
                serve(row, supply[i, row], cost[i, j], wanted, plan[i, j], of_rows[i, j], of_columns[i, j])
    return plan, of_rows, of_columns


@compiled
def serve(
    row: int, left: float, cost: np.ndarray, wanted: np.ndarray, plan: np.ndarray, u: np.ndarray, v: np.ndarray
) -> None:
    """Send the weight of a row where it is wanted, along shortest paths."""
    k, size = cost.shape
    from_row, from_column = np.empty(size, np.int64), np.empty(k, np.int64)
    while left > ROUNDING:
        sink = shortest_path(row, cost, wanted, plan, u, v, from_row, from_column)
        if sink < 0:  # nothing is wanted but for rounding
            return
        amount, column = min(left, wanted[sink]), sink
        while from_row[column] != row:
            giver = from_row[column]
            column = from_column[giver]
            amount = min(amount, plan[giver, column])
        column, giver = sink, from_row[sink]
        plan[giver, column] += amount
        while giver != row:
            column = from_column[giver]
            plan[giver, column] -= amount
            if plan[giver, column] < ROUNDING:
                plan[giver, column] = 0.0
            giver = from_row[column]
            plan[giver, column] += amount
        left -= amount
        wanted[sink] -= amount


@compiled
def shortest_path(
    row: int,
    cost: np.ndarray,
    wanted: np.ndarray,
    plan: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    from_row: np.ndarray,
    from_column: np.ndarray,
) -> int:
    """The nearest column that wants something, or -1; the path to it is in ``from_row`` and ``from_column``; prices follow."""
    k, size = cost.shape
    distance, is_done = np.full(size, np.inf), np.zeros(size, np.bool_)
    reached = np.full(k, np.inf)
    reached[row] = 0.0
    found = -1
    relax(row, 0.0, cost, u, v, is_done, distance, from_row)
    for _ in range(size):
        nearest, least = -1, np.inf
        for column in range(size):
            if not is_done[column] and distance[column] < least:
                nearest, least = column, distance[column]
        if nearest < 0:
            break
        is_done[nearest] = True
        if wanted[nearest] > ROUNDING:
            found = nearest
            break
        for giver in range(k):
            if plan[giver, nearest] > 0 and reached[giver] == np.inf:
                reached[giver], from_column[giver] = least, nearest
                relax(giver, least, cost, u, v, is_done, distance, from_row)
    if found < 0:
        return found
    for giver in range(k):
        if reached[giver] < distance[found]:
            u[giver] += distance[found] - reached[giver]
    for column in range(size):
        if is_done[column]:
            v[column] -= distance[found] - distance[column]
    return found


@compiled
def relax(
    row: int,
    start: float,
    cost: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    is_done: np.ndarray,
    distance: np.ndarray,
    from_row: np.ndarray,
) -> None:
    """Shorten the distances of columns by way of a row."""
    for column in range(len(distance)):
        if not is_done[column]:
            there = start + max(cost[row, column] - u[row] - v[column], 0.0)
            if there < distance[column]:
                distance[column], from_row[column] = there, row
