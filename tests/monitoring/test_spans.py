import json

import numpy as np
import pytest

from calibrant.monitoring.history import Spans
from calibrant.monitoring.saved_state import SavedState


def fed(values, cuts, **settings):
    spans, start = Spans.fresh(values.shape[1], **settings), 0
    reduce = np.sum if spans.rule == "sum" else np.max
    for end in [*cuts, len(values)]:
        part = values[start:end]
        spans = spans.after(len(part), lambda rows, part=part: reduce(part[rows], axis=0))
        start = end
    return spans


@pytest.mark.parametrize("rule", ["sum", "largest"])
@pytest.mark.parametrize("cuts", [[], [1], [7, 8, 60], [*range(1, 100)]])
def test_spans_are_those_of_their_rows_however_they_come(rule, cuts):
    values = np.random.default_rng(0).integers(0, 100, (100, 2)).astype(float)
    spans = fed(values, cuts, width=3, most=6, rule=rule)
    first, last, found = spans.cut()
    assert spans.width == 24
    assert (first[0], last[-1]) == (1, 100)
    assert np.all(first[1:] == last[:-1] + 1)
    reduce = np.sum if rule == "sum" else np.max
    for a, b, value in zip(first, last, found, strict=True):
        np.testing.assert_array_equal(value, reduce(values[a - 1 : b], axis=0))


def test_memory_does_not_grow():
    spans = Spans.fresh(1, width=1, most=8)
    for _ in range(1000):
        spans = spans.after(1, lambda _: np.ones(1))
        assert len(spans.closed) < 8
    assert spans.cut().values.sum() == 1000


@pytest.mark.parametrize("n", [0, 2, 50])
def test_states_go_on_where_they_were(n):
    values = np.random.default_rng(1).random((60, 3))
    values[5, 0] = np.inf
    early = fed(values[:n], [], width=2, most=4, rule="largest")
    late = Spans.from_saved(SavedState(json.loads(json.dumps(early.to_dict())), "spans"), early, n)
    for spans in (early, late):
        spans = spans.after(60 - n, lambda rows: values[n:][rows].max(axis=0))
        np.testing.assert_array_equal(spans.cut().values, fed(values, [], width=2, most=4, rule="largest").cut().values)


def test_rows_before_the_first_are_counted():
    cut = Spans.fresh(1, width=4, most=4, start=10).after(6, lambda _: np.ones(1)).cut()
    assert cut.first.tolist() == [11, 15]
    assert cut.last.tolist() == [14, 16]
    assert len(Spans.fresh(1, width=4, most=4).cut().last) == 0
