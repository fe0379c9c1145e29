"""Engines keep the order of tasks, hand errors on, and change no digit."""

import time
from typing import Any

import numpy as np

from calibrant._pairwise import Pairwise
from calibrant._validate import InputError
from calibrant.kernels import Gaussian
from calibrant.typing import Engine

NAPS = (0.05, 0.0, 0.02, 0.0)
"""Seconds that tasks take, the first the longest."""


def check_engine(engine: Engine) -> None:
    """Results come in the order of the tasks, however long those take; errors and digits are those of ``map``.

    An engine that can ``share`` must hand the value to tasks in place of what stands for it.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     check_engine(pool)
    """
    found = list(engine.map(_after, NAPS, range(len(NAPS))))
    assert found == list(range(len(NAPS))), f"results of tasks 0, 1, 2, 3 came as {found}"
    assert list(engine.map(pow, iter([3, 1]), iter([2, 2]))) == [9, 1], "columns may be iterators"
    assert list(engine.map(pow, [], [])) == [], "no tasks must give no results"
    words = _words_of_error(engine)
    assert words is not None, "the error of a task is lost"
    assert "this value" in words, f"the words of an error are lost: {words}"
    _check_digits(engine)


def _words_of_error(engine: Engine) -> str | None:
    try:
        list(engine.map(_refuse, ["this value"]))
    except InputError as error:
        return str(error)
    return None


def _check_digits(engine: Engine) -> None:
    """Of sums over pairs of rows, and of values that are shared."""
    x = np.random.default_rng(0).normal(size=(100, 3))
    alone, there = (Pairwise(Gaussian(1.0), x, 16, place).moments() for place in (None, engine))
    same = np.array_equal(alone.row_sums, there.row_sums) and alone.sum_of_squares == there.sum_of_squares
    assert same, "sums over pairs of rows have other digits"
    share: Any = getattr(engine, "share", None)
    if share is not None:
        shared = share(x)
        found = list(engine.map(np.array_equal, [shared, shared], [x, -x]))
        assert found == [True, False], "tasks are not given the value that was shared"


def _after(seconds: float, result: Any) -> Any:
    time.sleep(seconds)
    return result


def _refuse(value: str) -> None:
    raise InputError(f"refused: {value}")
