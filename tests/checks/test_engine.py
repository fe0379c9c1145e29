from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.checks import check_engine


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


class Plain:
    """As ``map``, with faults."""

    def map(self, fn, *tasks):
        return map(fn, *tasks)


class Sharing(Plain):
    def share(self, value):
        return [value]

    def map(self, fn, *tasks):
        return (fn(*(x[0] if isinstance(x, list) else x for x in task)) for task in zip(*tasks, strict=True))


class Backwards(Plain):
    def map(self, fn, *tasks):
        return list(map(fn, *tasks))[::-1]


class Swallowing(Plain):
    def map(self, fn, *tasks):
        for task in zip(*tasks, strict=True):
            try:
                yield fn(*task)
            except Exception:
                yield None


class Rewording(Plain):
    def map(self, fn, *tasks):
        for task in zip(*tasks, strict=True):
            try:
                yield fn(*task)
            except Exception as error:
                raise type(error)("something went wrong") from error


class Rounding(Plain):
    def map(self, fn, *tasks):
        rounded = [[x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in column] for column in tasks]
        return map(fn, *rounded)


class Wanting(Plain):
    def map(self, fn, *tasks):
        first, *others = zip(*tasks, strict=True)
        return map(fn, *zip(first, *others, strict=True))


class Strict(Plain):
    """Refuses iterators, as Dask's executor does."""

    def map(self, fn, *tasks):
        assert all(hasattr(column, "__len__") for column in tasks)
        return map(fn, *tasks)


class Full(Plain):
    """Has room for so many tasks, and forgets the others."""

    def map(self, fn, *tasks):
        return map(fn, *(column[:20] for column in tasks))


class Twice(Plain):
    """Does a task again where it took long."""

    def map(self, fn, *tasks):
        columns = [[column[0], *column] if len(column) else column for column in tasks]
        return map(fn, *columns)


class Skipping(Plain):
    def map(self, fn, *tasks):
        for task in zip(*tasks, strict=True):
            with suppress(Exception):
                yield fn(*task)


class Returning(Plain):
    """Gives errors back as if they were results."""

    def map(self, fn, *tasks):
        for task in zip(*tasks, strict=True):
            try:
                yield fn(*task)
            except Exception as error:
                yield error


class Wrapping(Plain):
    def map(self, fn, *tasks):
        for task in zip(*tasks, strict=True):
            try:
                yield fn(*task)
            except Exception as error:
                raise RuntimeError(f"a worker said {error}") from None


class Promising(Plain):
    """Gives promises of results, as clients of clusters do."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(1)

    def map(self, fn, *tasks):
        return [self.pool.submit(fn, *task) for task in zip(*tasks, strict=True)]


class Later(Plain):
    """Gives one promise of all results, as ``map_async`` does."""

    def map(self, fn, *tasks):
        return lambda: list(map(fn, *tasks))


class OneQueue(Plain):
    """All maps share a queue, which a map that is left early leaves full."""

    def __init__(self, is_emptied):
        self.queue, self.is_emptied = [], is_emptied

    def map(self, fn, *tasks):
        if self.is_emptied:
            self.queue.clear()
        self.queue += [(fn, task) for task in zip(*tasks, strict=True)]
        return self.results()

    def results(self):
        while self.queue:
            fn, task = self.queue.pop(0)
            yield fn(*task)


class Leftover(Plain):
    """What nobody fetched comes first the next time."""

    def __init__(self):
        self.left = []

    def map(self, fn, *tasks):
        mine = [fn(*task) for task in zip(*tasks, strict=True)]
        before, self.left = self.left, [] if len(mine) != 3 else mine[1:]
        return iter(before + mine)


class Forgetful(Sharing):
    def share(self, value):
        return [np.zeros_like(value)] if value.shape == (100, 3) else [value]


def test_engines_that_keep_the_promise_pass(pool):
    for engine in (pool, Plain(), Sharing(), Strict()):
        check_engine(engine)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Backwards(), "results of tasks 0, 1, 2, 3 came as"),
        (Full(), "100 tasks gave 20 results"),
        (Twice(), r"came as \[0, 0, 1, 2, 3\]"),
        (Promising(), "came as .*Future"),
        (Later(), "map must give the results to go through"),
        (OneQueue(True), "two maps that are open at once get mixed up"),
        (OneQueue(False), "two maps that are open at once get mixed up"),
        (Leftover(), "after a map that was left early the results of tasks 5 and 6 came as"),
        (Skipping(), "error of a task is lost"),
        (Returning(), "error of a task is lost"),
        (Wrapping(), "InputError of a task came as a RuntimeError: a worker said refused"),
        (Swallowing(), "error of a task is lost"),
        (Rewording(), "words of an error are lost"),
        (Rounding(), "other digits"),
        (Forgetful(), "not given the value"),
    ],
)
def test_engines_that_break_it_fail(engine, message):
    with pytest.raises(AssertionError, match=message):
        check_engine(engine)


def test_no_tasks_are_asked_for():
    with pytest.raises(ValueError, match="not enough values"):
        check_engine(Wanting())


def test_what_is_no_engine_is_refused():
    with pytest.raises(InputError, match="engine must have the map of an executor, see engines.connect; got 4"):
        check_engine(4)
