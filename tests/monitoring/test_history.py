import json

import numpy as np
import pytest

from calibrant import Categorical, Monitor, Normal, Poisson
from calibrant.monitoring.history import MIN_WINDOWS, POINTS, WINDOWS


def stream(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p) * 1, p


def test_windows_and_evidence_are_those_of_the_rows():
    y, p = stream(250)
    monitor = Monitor(window=100).update(y, p)
    _, last, values = monitor.history.windows
    assert last.tolist() == [100, 200, 250]
    parts = monitor.history.tally.by_part(values).over(-1)
    np.testing.assert_allclose(parts.predicted[:, 0], [p[:100].sum(), p[100:200].sum(), p[200:].sum()])
    assert monitor.history.n == monitor.n == 250
    assert monitor.history.evidence.values.max() == pytest.approx(monitor.peak)
    one_by_one, highest = Monitor(), []
    for i in range(40):
        one_by_one = one_by_one.update(y[i : i + 1], p[i : i + 1])
        highest.append(one_by_one.log_evalue)
    np.testing.assert_allclose(monitor.history.evidence.values[:40, 0], highest)


@pytest.mark.parametrize("cuts", [[1], [99, 101, 2500], [*range(100, 3000, 100)]])
def test_how_rows_come_together_changes_nothing(cuts):
    y, p = stream()
    whole, parts = Monitor(window=7).update(y, p), Monitor(window=7)
    for start, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        parts = parts.update(y[start:end], p[start:end])
    assert len(whole.history.windows.last) < WINDOWS
    assert len(whole.history.evidence.last) < POINTS
    for one, other in zip(whole.history.windows, parts.history.windows, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(whole.history.evidence.values, parts.history.evidence.values, atol=1e-9)


def test_nor_does_it_for_counts_whose_levels_are_drawn():
    rng = np.random.default_rng(1)
    y, rate = rng.poisson(2.0, 90), np.full(90, 2.0)
    whole, parts = Monitor(window=20).update(y, Poisson(rate)), Monitor(window=20)
    for start, end in ((0, 7), (7, 50), (50, 90)):
        parts = parts.update(y[start:end], Poisson(rate[start:end]))
    np.testing.assert_allclose(whole.history.windows.values, parts.history.windows.values, atol=1e-9)


def test_a_state_goes_on_where_it_was_left():
    y, p = stream()
    early = Monitor(window=20).update(y[:1234], p[:1234])
    text = early.to_json()
    late = Monitor.from_dict(json.loads(text))
    for one, other in zip(
        early.update(y[1234:], p[1234:]).history.windows, late.update(y[1234:], p[1234:]).history.windows, strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert late.window == 20
    assert json.loads(late.to_json()) == json.loads(text)
    longer = early.update(*stream(200_000))
    assert len(longer.to_json()) < 2 * len(text) + 50_000


def test_a_state_without_history_begins_one():
    y, p = stream()
    data = Monitor().update(y[:1000], p[:1000]).to_dict()
    old = {name: value for name, value in data.items() if name not in ("window", "history")}
    monitor = Monitor.from_dict(json.loads(json.dumps(old, default=str)))
    assert monitor.history is None
    monitor = monitor.update(y[1000:1500], p[1000:1500])
    assert monitor.history.windows.first.tolist() == [1001]
    assert monitor.history.n == monitor.n == 1500
    assert monitor.restart().history is None


def test_many_classes_have_fewer_windows():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(300), 400)
    monitor = Monitor(window=5).update(rng.integers(0, 300, 400), Categorical(p))
    assert MIN_WINDOWS // 2 <= len(monitor.history.windows.last) <= MIN_WINDOWS
    few = Monitor(window=5).update(rng.normal(size=400), Normal(np.zeros(400), 1.0))
    assert len(few.history.windows.last) > 40
