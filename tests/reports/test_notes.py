import numpy as np

from calibrant.reports.notes import duplicated, listed, precision, weight_notes


def test_equal_weights_need_no_word():
    assert weight_notes(None) == weight_notes(np.full(5, 2.0)) == []


def test_few_doubles_need_no_word(rng):
    assert duplicated(rng.random((100, 3)), "predictions") == []
    assert duplicated(np.zeros((1, 2)), "predictions") == []
    twice = np.repeat(rng.random((50, 3)), 2, axis=0)
    assert duplicated(twice, "rows") == ["50.0 % of the rows repeat an earlier one: there are 50 different ones."]


def test_precision():
    assert precision(np.zeros(3)) == []
    assert "half precision" in precision(np.zeros(3, dtype=np.float16))[0]


def test_lists_end():
    assert listed([]) == ""
    assert listed(range(11)).endswith("9 …")
