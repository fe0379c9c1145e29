import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from calibrant import ECE, Bernoulli, ClassWise, EqualMass, EqualWidth, Normal, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import BinnedState, Edges
from calibrant.lenses import Exceeds, Within


def merged(parts, ece, rng):
    states = [BinnedState(ece).update(*part[:2], sample_weight=part[2]) for part in parts]
    total = BinnedState(ece)
    for i in rng.permutation(len(states)):
        total = total.merge(states[i])
    return total


@pytest.mark.parametrize("n_parts", [1, 2, 7, 50])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "ece", [ECE(), ECE(EqualWidth(7), norm=2), ECE(Edges((0, 0.1, 0.5, 1)), norm=np.inf)], ids=repr
)
def test_any_split_in_any_order_gives_the_same_digits(n_parts, weighted, ece, rng):
    p = rng.beta(0.3, 0.2, 20_000)
    y = (rng.random(20_000) < p).astype(int)
    w = rng.lognormal(0, 3, 20_000) if weighted else None
    whole = ece(y, p, sample_weight=w)
    order = rng.permutation(20_000)
    cuts = np.sort(rng.integers(0, 20_001, n_parts - 1))
    parts = [(y[r], p[r], None if w is None else w[r]) for r in np.split(order, cuts) if len(r)]
    result = merged(parts, ece, rng).finalize()
    assert result.value == whole.value
    assert replace(result, withheld=None) == replace(whole, withheld=None)  # squares of weights are not kept
    for name in whole.table:
        assert result.table[name].tolist() == whole.table[name].tolist()


@pytest.mark.parametrize("lens", [TopLabel(), ClassWise(), PositiveClass(2)], ids=repr)
def test_events_of_several_classes(lens, rng):
    p = rng.dirichlet(np.ones(4), 600)
    y = rng.integers(0, 4, 600)
    ece = ECE(lens=lens)
    parts = [(y[i::5], p[i::5], None) for i in range(5)]
    result = merged(parts, ece, rng).finalize()
    assert result == ece(y, p)
    assert result.table["gap"].tolist() == ece(y, p).table["gap"].tolist()


def test_labels_and_single_precision(rng):
    p = rng.random((200, 3)).astype(np.float32)
    y = (rng.random((200, 3)) < p).astype(int)
    parts = [(y[i::4], Bernoulli(p[i::4]), None) for i in range(4)]
    assert merged(parts, ECE(), rng).finalize() == ECE()(y, Bernoulli(p))


def test_states_travel_as_json(rng):
    p = rng.dirichlet(np.ones(3), 50)
    state = BinnedState(ECE(lens=ClassWise())).update(rng.integers(0, 3, 50), p, sample_weight=rng.random(50))
    there = BinnedState.from_dict(json.loads(json.dumps(state.to_dict())))
    assert there.finalize() == state.finalize()
    assert there.merge(state).n == 100


@pytest.mark.parametrize("lens", [Exceeds(0.5), Within(-1.0, 1.0)], ids=repr)
def test_events_of_forecasts_travel_too(lens, rng):
    predictions = Normal(rng.normal(size=50), np.ones(50))
    y = rng.normal(size=50)
    state = BinnedState(ECE(lens=lens)).update(y, predictions)
    assert BinnedState.from_dict(json.loads(json.dumps(state.to_dict()))).finalize() == ECE(lens=lens)(y, predictions)


def test_a_part_may_have_no_rows():
    state = BinnedState().update([1, 0], [0.9, 0.2])
    assert state.update([], []) is state
    assert state.update([1], [0.5], sample_weight=[0.0]) is state
    with pytest.raises(InputError, match="sample_weight has 2 rows and y_true has 1"):
        state.update([1], [0.5], sample_weight=[0.0, 0.0])


def test_a_part_may_lack_a_class(rng):
    p = rng.dirichlet(np.ones(3), 100)
    BinnedState(ECE(lens=TopLabel())).update(np.ones(100, dtype=int), p)  # without a word on labels that start at 1


def test_tables_that_were_aggregated_elsewhere(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    edges = (0, 0.25, 0.6, 1)
    cell = np.searchsorted(edges[1:-1], p)
    columns = {"weight": None, "predicted": p, "observed": y}
    sums = {name: np.bincount(cell, weights=values) for name, values in columns.items()}
    state = BinnedState.from_sums(edges, **sums, norm=2)
    whole = ECE(Edges(edges), norm=2)(y, p)
    assert state.finalize().value == pytest.approx(whole.value, rel=1e-12)
    assert state.finalize().n == 500
    more = state.merge(BinnedState(ECE(Edges(edges), norm=2)).update(y, p))
    assert more.finalize().value == pytest.approx(whole.value, rel=1e-12)


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        (
            {"weight": [1, 2], "predicted": [0.2, 1.5], "observed": [1, 3]},
            "observed must not exceed weight; got 3.0 of 2.0 in bin 1",
        ),
        ({"weight": [1, 2], "predicted": [1.2, 1.5], "observed": [1, 2]}, "predicted must not exceed weight"),
        ({"weight": [1, 2], "predicted": [0.9, 1.5], "observed": [1, 2]}, "means lie outside of the edges"),
        ({"weight": [1, -2], "predicted": [0.9, 1.5], "observed": [1, 2]}, "weight must not be negative; got -2.0"),
        ({"weight": [1], "predicted": [0.9, 1.5], "observed": [1, 2]}, "weight must have one number per bin, 2"),
    ],
)
def test_wrong_tables_are_refused(sums, message):
    with pytest.raises(InputError, match=message):
        BinnedState.from_sums((0, 0.5, 1), **sums)


@pytest.mark.parametrize("ece", [ECE(EqualMass(15)), ECE(label_binned=True), "ECE()"])
def test_bins_must_not_depend_on_the_data(ece):
    with pytest.raises(InputError, match="bins that do not depend on the data"):
        BinnedState(ece)


def test_what_cannot_be_merged_or_finished():
    one, other = (BinnedState(ECE(EqualWidth(b))).update([1], [0.5]) for b in (5, 6))
    with pytest.raises(InputError, match="different bins or events cannot be merged"):
        one.merge(other)
    with pytest.raises(InputError, match="has seen no rows"):
        BinnedState().finalize()
    assert BinnedState().merge(one) is one
    assert one.merge(BinnedState()) is one


def test_memory_does_not_grow_with_the_stream():
    rng, state = np.random.default_rng(0), BinnedState(ECE())
    p = rng.random(100_000)
    y = (rng.random(100_000) < p).astype(np.int8)
    state = state.update(y, p)
    tracemalloc.start()
    for _ in range(20):
        state = state.update(y, p)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000  # bytes; the data of one chunk take 900,000
    assert state.finalize().value == pytest.approx(ECE()(y, p).value, rel=1e-12)
