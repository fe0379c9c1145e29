import math

import pytest

from calibrant.cli import doctor as self_test


def test_every_known_value_comes_out():
    checks = self_test.known_values()
    assert [check.name for check in checks] == list(self_test.KNOWN)
    assert all(check.is_right for check in checks)


def test_a_wrong_value_and_an_error_are_told(monkeypatch):
    def broken():
        raise ImportError("no such library\nsecond line")

    known = {"off": (lambda: 0.5 + 1e-9, 0.5), "broken": (broken, 1.0), "nothing": (lambda: math.nan, 1.0)}
    monkeypatch.setattr(self_test, "KNOWN", known)
    off, failed, nothing = self_test.known_values()
    assert not off.is_right
    assert (failed.is_right, failed.problem) == (False, "ImportError: no such library")
    assert not nothing.is_right
    assert failed.to_dict()["problem"] == failed.problem
    assert self_test.Check("x", 0.5 + 1e-13, 0.5).is_right


def test_typical_work_is_timed():
    seconds = self_test.timings()
    assert len(seconds) == 2
    assert all(0 < value < 60 for value in seconds.values())


def test_the_compiled_sum_by_hand():
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    assert self_test.KNOWN["compiled sums"][1] == pytest.approx(sum(2**2 for _ in pairs))
