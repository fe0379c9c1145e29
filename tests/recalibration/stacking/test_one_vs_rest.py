import json

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration import BetaScaling, OneVsRest, Platt, Quadratic
from calibrant.recalibration.maps import Map
from calibrant.recalibration.scaling.log_odds import AffineLogOdds
from calibrant.recalibration.stacking.stack import OneVsRestMap

every = pytest.mark.parametrize("inner", [Platt(), Quadratic(), BetaScaling()], ids=repr)


def drawn(rng, n=600, k=4):
    p = rng.dirichlet(np.ones(k), n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = p**2.5
    return y, sharp / sharp.sum(axis=1, keepdims=True)


@every
def test_held_out_rows_gain(inner, rng):
    fitted = OneVsRest(inner).fit(*drawn(rng))
    assert fitted.scores["change"][0] < 0
    assert fitted.is_converged


def test_columns_are_the_maps_of_each_class_normalised(rng):
    y, p = drawn(rng)
    new = np.stack([Platt().fit(y == c, p[:, c], folds=0)(p[:, c]) for c in range(4)], axis=1)
    found = OneVsRest(Platt()).fit(y, p, folds=0)(p)
    np.testing.assert_allclose(found, new / new.sum(axis=1, keepdims=True), rtol=1e-6)


@every
def test_classes_may_be_renamed(inner, rng):
    y, p = drawn(rng)
    order = np.array([2, 0, 3, 1])
    there = OneVsRest(inner).fit(y, p, folds=0)(p)
    back = OneVsRest(inner).fit(np.argsort(order)[y], p[:, order], folds=0)(p[:, order])
    np.testing.assert_allclose(there[:, order], back, atol=1e-9)


@every
def test_weights_are_repetitions(inner, rng):
    y, p = drawn(rng, 300)
    times = rng.integers(0, 4, 300)
    weighted = OneVsRest(inner).fit(y, p, sample_weight=times, folds=0)(p)
    repeated = OneVsRest(inner).fit(np.repeat(y, times), np.repeat(p, times, axis=0), folds=0)(p)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


@every
def test_json_keeps_every_digit(inner, rng):
    fitted = OneVsRest(inner).fit(*drawn(rng, 200), folds=0)
    assert Map.from_dict(json.loads(json.dumps(fitted.map.to_dict()))) == fitted.map


@every
def test_a_class_that_never_happens_keeps_a_chance(inner, rng):
    y, p = drawn(rng)
    y = np.where(y == 2, 1, y)
    fitted = OneVsRest(inner).fit(y, p, folds=0)
    assert fitted.notes[0].startswith("class 2: the best coefficients are infinite")
    new = fitted(p)
    assert 0 < new[:, 2].min() <= new[:, 2].max() < 0.01
    np.testing.assert_allclose(new.sum(axis=1), 1)


def test_certain_rows(rng):
    y, p = drawn(rng)
    p[:50] = np.eye(4)[y[:50]]
    fitted = OneVsRest(Platt()).fit(y, p, folds=0)
    np.testing.assert_allclose(fitted(np.eye(4)), np.eye(4), atol=0.1)
    assert fitted(np.eye(4)).min() > 0  # the next one may be otherwise


def test_rows_that_no_map_wants_stay_as_they_are():
    contrary = AffineLogOdds(0.0, -1.0), AffineLogOdds(-1e4, 0.0), AffineLogOdds(-1e4, 0.0)
    found = OneVsRestMap(3, contrary)([[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]])
    np.testing.assert_allclose(found, [[1, 0, 0], [1, 0, 0]])


def test_small_tails_are_not_lost():
    contrary = OneVsRestMap(3, (AffineLogOdds(0.0, -1.0),) * 3)
    np.testing.assert_allclose(contrary([[1e-20, 1.0, 1e-30]])[0], [0.5, 0.5e-20, 0.5], rtol=1e-9)


def test_two_classes(rng):
    y, p = drawn(rng, 400, 2)
    np.testing.assert_allclose(
        OneVsRest(Platt()).fit(y, p[:, 1], folds=0)(p[:, 1]), Platt().fit(y, p[:, 1], folds=0)(p[:, 1]), rtol=1e-6
    )


def test_a_thousand_classes(rng):
    y, p = drawn(rng, 300, 1000)
    y[0] = 0
    fitted = OneVsRest(Platt()).fit(y, p.astype(np.float32), folds=0)
    assert len(fitted.notes) == 4
    assert "more notes on other classes of the 1,000" in fitted.notes[3]
    assert np.isfinite(fitted(p)).all()


def test_bad_input(rng):
    with pytest.raises(InputError, match=r"takes a recalibrator such as Platt\(\); got <class"):
        OneVsRest(Platt)
    with pytest.raises(InputError, match="must hold 3 maps of two classes; got 1 maps"):
        OneVsRestMap(3, (AffineLogOdds(0.0, 1.0),))
    fitted = OneVsRest(Platt()).fit(*drawn(rng), folds=0)
    with pytest.raises(InputError, match="fitted on 4 classes and y_pred has 3"):
        fitted(rng.dirichlet(np.ones(3), 5))


def test_rows_may_miss_one(rng):
    """Rounded files do; the rest of a class would be more than 1."""
    p = rng.dirichlet(np.full(3, 0.5), 300)
    p = p[p.max(axis=1) < 0.999]
    y = np.array([rng.choice(3, p=row) for row in p])
    rounded = OneVsRest(Platt()).fit(y, 1.0005 * p)
    assert rounded(1.0005 * p) == pytest.approx(OneVsRest(Platt()).fit(y, p)(p), rel=1e-9, abs=1e-300)
