"""Engines keep the order of tasks, lose none, hand errors on, and change no digit."""

import time
from typing import Any

import numpy as np

from calibrant._pairwise import Pairwise
from calibrant._tasks import mapping
from calibrant._validate import InputError
from calibrant.kernels import Gaussian
from calibrant.typing import Engine

NAPS = (0.05, 0.0, 0.02, 0.0)
"""Seconds that tasks take, the first the longest."""

N_TASKS = 100
"""Tasks that are more than a machine has cores."""


def check_engine(engine: Engine) -> None:
    """Every task has one result, in the order of the tasks, however long those take; errors and digits are those of ``map``.

    A map whose results are not all wanted must not disturb the next, as tests stop once they know enough. Columns of tasks
    are sequences, such as lists. An engine that can ``share`` must hand the value to tasks in place of what stands for it.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     check_engine(pool)
    """
    _check_order(engine)
    _check_maps_apart(engine)
    _check_errors(engine)
    _check_digits(engine)


def _results(engine: Engine, *call: Any) -> list[Any]:
    """All results, also of what gives none that can be gone through."""
    found = mapping(engine)(*call)
    assert hasattr(found, "__iter__"), f"map must give the results to go through, when they are there; got a {found!r}"
    return list(found)


def _check_order(engine: Engine) -> None:
    found = _results(engine, _after, NAPS, range(len(NAPS)))
    assert found == list(range(len(NAPS))), f"results of tasks 0, 1, 2, 3 came as {found}"
    many = _results(engine, pow, range(N_TASKS), [1] * N_TASKS)
    assert len(many) == N_TASKS, f"{N_TASKS} tasks gave {len(many)} results"
    assert many == list(range(N_TASKS)), f"results of tasks 0 to {N_TASKS - 1} came as {many}"
    assert _results(engine, pow, [], []) == [], "no tasks must give no results"


def _check_maps_apart(engine: Engine) -> None:
    """Of two that are open at once, and after one that was left early."""
    first, second = (iter(mapping(engine)(pow, [base, base], [1, 2])) for base in (2, 3))
    both = [next(results, None) for results in (second, first, second, first)]
    assert both == [3, 2, 9, 4], "results of two maps that are open at once get mixed up"
    next(iter(mapping(engine)(pow, [2, 3, 4], [2, 2, 2])))
    found = _results(engine, pow, [5, 6], [1, 1])
    assert found == [5, 6], f"after a map that was left early the results of tasks 5 and 6 came as {found}"


def _check_errors(engine: Engine) -> None:
    error = None
    try:
        _results(engine, _refuse, [False, True, False], ["one", "this value", "another"])
    except Exception as caught:  # of whatever kind
        error = caught
    assert error is not None, "the error of a task is lost"
    assert isinstance(error, InputError), f"the InputError of a task came as a {type(error).__name__}: {error}"
    assert "this value" in str(error), f"the words of an error are lost: {error}"


def _check_digits(engine: Engine) -> None:
    """Of sums over pairs of rows, and of values that are shared."""
    x = np.random.default_rng(0).normal(size=(100, 3))
    alone, there = (Pairwise(Gaussian(1.0), x, 16, place).moments() for place in (None, engine))
    same = np.array_equal(alone.row_sums, there.row_sums) and alone.sum_of_squares == there.sum_of_squares
    assert same, "sums over pairs of rows have other digits"
    share: Any = getattr(engine, "share", None)
    if share is not None:
        shared = share(x)
        found = _results(engine, np.array_equal, [shared, shared], [x, -x])
        assert found == [True, False], "tasks are not given the value that was shared"


def _after(seconds: float, result: Any) -> Any:
    time.sleep(seconds)
    return result


def _refuse(is_wrong: bool, value: str) -> None:
    if is_wrong:
        raise InputError(f"refused: {value}")
