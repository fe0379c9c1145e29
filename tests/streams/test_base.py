"""Conformance of every state, so that a new one inherits its tests by joining the list."""

import json
import pickle

import numpy as np
import pytest

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    Bernoulli,
    Brier,
    Categorical,
    ClassWise,
    DebiasedECE,
    EqualWidth,
    LogLoss,
    Normal,
    Pinball,
    TopLabel,
    state,
)
from calibrant._validate import InputError
from calibrant.estimators import UCME, CalibrationRatio, Edges, GivenLocations, MeanWidth, RandomFeatureSKCE, ZMean
from calibrant.kernels import Exponential, Gaussian
from calibrant.streams import State, from_dict
from calibrant.streams.base import check_events, family_of

PLACES = GivenLocations([0, 1, 2], [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])

CLASSES = [
    ECE(lens=ClassWise()),
    DebiasedECE(EqualWidth(6), lens=TopLabel()),
    DebiasedECE(Edges((0, 0.2, 0.5, 1)), norm=1, lens=ClassWise(), singletons="keep"),
    Brier(),
    LogLoss(),
    CalibrationRatio(TopLabel()),
    CalibrationRatio(ClassWise()),
    RandomFeatureSKCE(Exponential(0.4), n_features=40),
    UCME(Gaussian(0.4), locations=PLACES),
    SKCE(Exponential(0.4), block=7),
]

NUMBERS = [
    CRPS(),
    LogLoss(),
    Pinball(),
    MeanWidth(),
    ZMean(),
    SKCE(Exponential(1.0), Gaussian(1.0), block=11),
    UCME(Gaussian(1.0), Gaussian(1.0), GivenLocations([0.0, 2.0], Normal([0.0, 1.0], [1.0, 2.0]))),
]

CASES = [*((e, "classes") for e in CLASSES), *((e, "numbers") for e in NUMBERS)]
TAKES_NO_WEIGHTS = (SKCE,)


def problem(kind, rng, n=200, dtype=np.float64):
    if kind == "classes":
        p = (rng.dirichlet(np.ones(3), n) + 1e-3).astype(dtype)
        p /= p.sum(axis=1, keepdims=True)
        return rng.integers(0, 3, n), Categorical(p)
    return rng.normal(0.3, 1.5, n).astype(dtype), Normal(
        rng.normal(size=n).astype(dtype), rng.uniform(0.5, 2, n).astype(dtype)
    )


def parts_of(estimator, y, p, w, rng, n_parts):
    """States of random parts; blocks need consecutive rows with their numbers, others take any rows."""
    n = len(y)
    cuts = np.sort(rng.integers(0, n + 1, n_parts - 1))
    order = np.arange(n) if isinstance(estimator, SKCE) else rng.permutation(n)
    states = []
    for rows in np.split(order, cuts):
        options = {"start": int(rows[0])} if isinstance(estimator, SKCE) and len(rows) else {}
        weights = None if w is None else w[rows]
        states.append(state(estimator).update(y[rows], p[rows] if len(rows) else [], sample_weight=weights, **options))
    return states


def tree(states, rng):
    """All merged, in a random order and grouping."""
    while len(states) > 1:
        i, j = rng.choice(len(states), 2, replace=False)
        merged = states[i].merge(states[j])
        states = [s for k, s in enumerate(states) if k not in (i, j)] + [merged]
    return states[0]


def assert_same(result, whole):
    assert result.n == whole.n
    assert (result.name, result.lens, result.notes) == (whole.name, whole.lens, whole.notes)
    assert result.value == pytest.approx(whole.value, rel=1e-12, abs=1e-14)
    assert (result.standard_error is None) == (whole.standard_error is None)
    if whole.standard_error is not None:
        assert result.standard_error == pytest.approx(whole.standard_error, rel=1e-11)
    if whole.interval is not None:
        assert (result.interval.low, result.interval.high) == pytest.approx((whole.interval.low, whole.interval.high))
    if whole.table is not None and whole.name != "Pinball":  # whose state keeps no sums of single levels
        for column in whole.table:
            expected = whole.table[column]
            same = expected.tolist() if expected.dtype.kind == "U" else pytest.approx(expected, rel=1e-11)
            assert result.table[column].tolist() == same


@pytest.mark.parametrize(("estimator", "kind"), CASES, ids=lambda x: repr(x)[:60])
class TestState:
    @pytest.mark.parametrize("n_parts", [1, 2, 9, 60])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_any_split_in_any_order_and_grouping(self, estimator, kind, n_parts, weighted, rng):
        if weighted and isinstance(estimator, TAKES_NO_WEIGHTS):
            pytest.skip("blocks take no weights")
        y, p = problem(kind, rng)
        w = rng.lognormal(0, 2, len(y)) * (rng.random(len(y)) < 0.9) if weighted else None
        whole = estimator(y, p, sample_weight=w)
        assert_same(tree(parts_of(estimator, y, p, w, rng, n_parts), rng).finalize(), whole)

    def test_single_precision(self, estimator, kind, rng):
        y, p = problem(kind, rng, dtype=np.float32)
        result = tree(parts_of(estimator, y, p, None, rng, 5), rng).finalize()
        assert result.value == pytest.approx(estimator(y, p).value, rel=1e-4, abs=1e-8)

    def test_merging_is_exact(self, estimator, kind, rng):
        """Whatever the tree, the digits are the same."""
        y, p = problem(kind, rng)
        states = parts_of(estimator, y, p, None, rng, 12)
        values = {tree(states, rng).finalize().value for _ in range(5)}
        assert len(values) == 1 or (isinstance(estimator, SKCE) and np.ptp(list(values)) < 1e-15)

    def test_states_travel_as_json(self, estimator, kind, rng):
        y, p = problem(kind, rng)
        states = parts_of(estimator, y, p, None, rng, 4)
        there = [from_dict(json.loads(json.dumps(s.to_dict()))) for s in states]
        assert_same(tree(there, rng).finalize(), estimator(y, p))
        mixed = tree([states[0], *there[1:]], rng)
        assert_same(mixed.finalize(), estimator(y, p))
        assert_same(pickle.loads(pickle.dumps(mixed)).finalize(), estimator(y, p))

    def test_nothing_is_no_change(self, estimator, kind, rng):
        y, p = problem(kind, rng, 30)
        empty = state(estimator)
        assert isinstance(empty, State)
        full = empty.update(y, p)
        assert empty.update([], []) is empty
        assert full.update(y[:0], []) is full
        assert empty.merge(full).n == full.merge(empty).n == 30
        if not isinstance(estimator, TAKES_NO_WEIGHTS):
            assert full.update(y, p, sample_weight=np.zeros(30)).n == 30
        with pytest.raises(InputError, match="the state has seen no rows: update it first"):
            empty.finalize()

    def test_one_row(self, estimator, kind, rng):
        y, p = problem(kind, rng, 1)
        try:
            whole = estimator(y, p)
        except InputError:
            with pytest.raises(InputError):
                state(estimator).update(y, p).finalize()
        else:
            if not np.isfinite(whole.value):
                return
            assert_same(state(estimator).update(y, p).finalize(), whole)

    def test_memory_does_not_grow(self, estimator, kind, rng):
        y, p = problem(kind, rng, 50)
        total = state(estimator)
        sizes = []
        for _ in range(40):
            total = total.update(y, p)
            sizes.append(len(json.dumps(total.to_dict())))
        assert max(sizes[20:]) < 1.5 * max(sizes[:20])
        assert total.n == 2000

    def test_bad_input_is_refused_as_ever(self, estimator, kind, rng):
        y, p = problem(kind, rng, 5)
        with pytest.raises(InputError, match="y_true has 4 rows and y_pred has 5"):
            state(estimator).update(y[:4], p)
        if not isinstance(estimator, TAKES_NO_WEIGHTS):
            with pytest.raises(InputError, match="sample_weight must not be negative"):
                state(estimator).update(y, p, sample_weight=[1, 1, -1, 1, 1])


def test_what_cannot_be_merged():
    one, other = state(Brier()).update([1], [0.5]), state(LogLoss()).update([1], [0.5])
    with pytest.raises(InputError, match=r"different estimators cannot be merged: Brier\(\) and LogLoss\(\)"):
        one.merge(other)
    with pytest.raises(InputError, match="different estimators cannot be merged"):
        one.merge(state(ECE()))
    with pytest.raises(InputError, match=r"different predictions cannot be merged: Categorical\('0', '1'\) and Categ"):
        one.update([2], [[0.2, 0.3, 0.5]])


def test_families():
    assert family_of(Bernoulli([[0.1, 0.2]], ("a", "b"))) == "Bernoulli('a', 'b')"
    assert family_of(Normal([0.0], [1.0])) == "Normal"


def test_sums_of_other_events_are_not_merged():
    with pytest.raises(InputError, match=r"states of different events cannot be merged: \['a'\] and \['b'\]"):
        check_events({"a": 1}, {"b": 1})
    check_events({"a": 1}, {"a": 2})
