import json

import numpy as np
import pytest

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import (
    Default,
    SharedSpline,
    SimplexRidge,
    SplineScaling,
    Stack,
    StructuredMatrix,
    Temperature,
)
from calibrant.recalibration.base import losses_in_order
from calibrant.recalibration.maps import Map

ALL = [
    Default(),
    SplineScaling(),
    SharedSpline(),
    SimplexRidge(),
    SimplexRidge(StructuredMatrix()),
    Stack((Temperature(), Default())),
]


def labels(rng, truth):
    return (rng.random((len(truth), 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)


def recalibrators(k):
    return ALL if k == 2 else [one for one in ALL if one != SplineScaling()]


def is_fine(found, p):
    g = found(p)
    return np.isfinite(g).all() and (g >= 0).all() and np.abs(g.sum(axis=1) - 1).max() < 1e-9


def test_what_is_chosen():
    plain, diagonal = Temperature(), StructuredMatrix(diagonal=True)
    assert Default().chosen(10**6, 2).recalibrators == (plain, SplineScaling())
    assert [Default().chosen(n, 2).tries for n in (1 << 16, (1 << 16) + 1)] == [None, 1]  # all folds, or one half
    assert [Default().chosen(n, 4).first.tries for n in (1 << 12, (1 << 12) + 1)] == [None, 1]
    assert Default().chosen(50, 3).first.recalibrators == (plain, diagonal, StructuredMatrix(), SharedSpline())
    assert Default().chosen(10**4, 21).first.recalibrators == (plain, diagonal, SharedSpline())
    assert Default().chosen(10**5, 21).first.recalibrators == (plain, diagonal)
    assert Default().chosen(10**5, 20).first.recalibrators == (plain, diagonal, StructuredMatrix())
    assert isinstance(Default().chosen(50, 3), SimplexRidge)
    assert Default().chosen(110, 10).first.recalibrators == (plain, diagonal, StructuredMatrix(), SharedSpline())
    assert Default().chosen(109, 10).first.recalibrators == (plain, diagonal, SharedSpline())  # 110 coefficients


@pytest.mark.parametrize("n", [60, 300])
def test_a_temperature_is_enough_of_two_classes(n):
    """Splines and the terms of beta calibration, fitted to so few rows, lose more than a temperature does."""
    lost = {"default": 0.0, "splines": 0.0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, new = (0.998 * rng.dirichlet([0.2, 0.2], m) + 0.001 for m in (n, 2_000))
        sharp, too = (f**2 / (f**2).sum(axis=1, keepdims=True) for f in (p, new))
        y = labels(rng, p)

        def loss(one, y=y, sharp=sharp, too=too, new=new):
            return -(new * np.log(one.fit(y, sharp, folds=0)(too))).sum(axis=1).mean()

        single = loss(Temperature())
        lost["default"] += (loss(Default()) - single) / 20
        lost["splines"] += (loss(SplineScaling()) - single) / 20
    assert lost["default"] < 0.1 / n  # nats; a map of one number more loses half of one
    assert lost["splines"] > 0.5 / n


def test_splines_come_where_two_classes_need_them(rng):
    p = rng.beta(0.5, 0.5, 2_000)
    bent = 1 / (1 + np.exp(-np.log(p / (1 - p)) - 1.5 * np.sin(2 * np.log(p / (1 - p)))))
    assert type(Default().fit(rng.binomial(1, bent), p, folds=0).map).__name__ == "SplineMap"
    assert type(Default().fit(rng.binomial(1, p), p, folds=0).map).__name__ == "Tempering"


@pytest.mark.parametrize(("k", "n"), [(3, 300), (10, 1_000), (100, 1_500)])
def test_a_temperature_is_enough_where_it_is_the_truth(k, n):
    """Ten data sets: no more held-out loss than a temperature has, but for chance; a spline of all classes lost 8 standard errors."""
    lost, spread = 0.0, 0.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(k, 0.3), n)
        y = labels(rng, p)
        sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
        mine, single = (one.fit(y, sharp, folds=2, seed=seed).held_out for one in (Default(), Temperature()))
        change = losses_in_order("log loss", y, mine) - losses_in_order("log loss", y, single)
        lost, spread = lost + change.sum(), spread + change.var() * n
    assert lost < 2 * spread**0.5


def test_biases_of_single_classes_call_for_a_matrix(rng):
    p = rng.dirichlet(np.ones(3), 6000)
    truth = p * [1.0, 3.0, 0.3]
    truth /= truth.sum(axis=1, keepdims=True)
    found = Default().fit(labels(rng, truth), p, folds=0)
    assert type(found.map.first).__name__ == "LinearLogits"
    assert np.abs(found(p) - truth).mean() < 0.02


@pytest.mark.parametrize(("k", "n"), [(2, 500), (3, 500), (10, 500), (100, 300)])
def test_too_sure_a_model_is_put_right(k, n, rng):
    p = rng.dirichlet(np.full(k, 0.5), n)
    y = labels(rng, p)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    for one in recalibrators(k):
        found = one.fit(y, sharp, folds=2)
        assert found.scores["change"][0] < 0
        assert np.abs(found(sharp) - p).sum(axis=1).mean() < 0.7 * np.abs(sharp - p).sum(axis=1).mean()


@pytest.mark.parametrize("k", [2, 3, 10])
def test_hard_cases(k, rng):
    """Certain rows, rows alike, rows told apart without error, one class only, and very few rows."""
    p = rng.dirichlet(np.full(k, 0.5), 200)
    certain = np.eye(k)[rng.integers(k, size=200)]
    cases = {
        "certain": (labels(rng, 0.9 * certain + 0.1 / k), certain),
        "some certain": (labels(rng, p), np.where(rng.random((200, 1)) < 0.3, np.eye(k)[p.argmax(axis=1)], p)),
        "constant": (labels(rng, np.full((200, k), 1 / k)), np.tile(p[:1], (200, 1))),
        "separable": (p.argmax(axis=1), p),
        "one class": (np.zeros(200, dtype=int), p),
        "class missing": (np.where(labels(rng, p) == k - 1, 0, labels(rng, p)), p),
        "two rows": (np.array([0, 1]), p[:2]),
        "one row": (np.array([0]), p[:1]),
    }
    for name, (y, f) in cases.items():
        for one in recalibrators(k):
            if len(f) < 2 and isinstance(one, Stack):
                continue
            found = one.fit(y, f, folds=0)
            assert is_fine(found, f), (name, one)
            assert is_fine(found, np.vstack([np.eye(k), p])), (name, one)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [60, 400])
def test_the_scale_of_weights_does_not_matter(k, n, rng):
    p = rng.dirichlet(np.ones(k), n)
    y, w = labels(rng, p), rng.integers(0, 4, n)
    weighted, scaled = (Default().fit(y, p, sample_weight=c * w, folds=0) for c in (1, 1.5))
    assert weighted(p) == pytest.approx(scaled(p), abs=1e-9)


@pytest.mark.parametrize("one", ALL, ids=repr)
def test_single_precision_is_as_good(one, rng):
    p = rng.dirichlet(np.full(2, 0.5), 400)
    y = labels(rng, p**2 / (p**2).sum(axis=1, keepdims=True))
    double, single = one.fit(y, p, folds=0), one.fit(y, p.astype(np.float32), folds=0)
    assert double(p) == pytest.approx(single(p), abs=1e-3)
    assert single(p.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("one", ALL, ids=repr)
def test_the_same_digits_again_and_from_json(one, rng):
    p = rng.dirichlet(np.full(2, 0.5), 400)
    y = labels(rng, p**2 / (p**2).sum(axis=1, keepdims=True))
    found = one.fit(y, p, folds=0).map
    assert (one.fit(y, p, folds=0).map(p) == found(p)).all()
    assert (Map.from_dict(json.loads(json.dumps(found.to_dict())))(p) == found(p)).all()


@pytest.mark.parametrize("one", ALL, ids=repr)
def test_other_numbers_of_classes_are_refused(one, rng):
    p = rng.dirichlet(np.ones(2), 50)
    found = one.fit(labels(rng, p), p, folds=0)
    with pytest.raises(InputError, match="fitted on 2 classes and y_pred has 3"):
        found(np.full((1, 3), 1 / 3))


def test_what_it_cannot_take():
    with pytest.raises(InputError, match="Default maps class probabilities"):
        Default().fit([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
