from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

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
        assert all(len(list(column)) for column in tasks[:1])
        return map(fn, *tasks)


class Forgetful(Sharing):
    def share(self, value):
        return [np.zeros_like(value)] if value.shape == (100, 3) else [value]


def test_engines_that_keep_the_promise_pass(pool):
    for engine in (pool, Plain(), Sharing()):
        check_engine(engine)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Backwards(), "came as"),
        (Swallowing(), "error of a task is lost"),
        (Rewording(), "words of an error are lost"),
        (Rounding(), "other digits"),
        (Forgetful(), "not given the value"),
    ],
)
def test_engines_that_break_it_fail(engine, message):
    with pytest.raises(AssertionError, match=message):
        check_engine(engine)


def test_iterators_and_no_tasks_are_asked_for():
    with pytest.raises(AssertionError):
        check_engine(Wanting())
