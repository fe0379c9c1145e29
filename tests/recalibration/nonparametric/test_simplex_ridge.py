import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import SimplexRidge, StructuredMatrix, Temperature
from calibrant.recalibration.maps import Map
from calibrant.recalibration.nonparametric.simplex_ridge import (
    KEPT,
    PENALTIES,
    SimplexMap,
    _best_ridge,
    _kernel,
    projected,
)


def labels(rng, truth):
    return (rng.random((len(truth), 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)


def drawn(rng, n, k, move=0.4):
    """Each class gives a part of its probability to the next: nothing that classes share."""
    p = rng.dirichlet(np.full(k, 0.7), n)
    truth = (1 - move) * p + move * np.roll(p, 1, axis=1)
    return labels(rng, truth), p, truth


@pytest.mark.parametrize("k", [3, 10])
def test_what_classes_do_not_share_is_found(k, rng):
    y, p, truth = drawn(rng, 4000, k)
    found = SimplexRidge().fit(y, p)
    first = found.map.first(p)
    assert np.abs(found(p) - truth).mean() < 0.6 * np.abs(first - truth).mean()
    assert found.scores["change"][0] < -3 * found.scores["error"][0]


def test_calibrated_predictions_stay_near_where_they_are(rng):
    y, p, _ = drawn(rng, 4000, 3, move=0.0)
    assert np.abs(SimplexRidge().fit(y, p, folds=0)(p) - p).mean() < 0.012


def test_what_is_left_without_a_row_is_what_a_fit_without_it_leaves(rng):
    """The closed form against as many regressions as rows, with weights; landmarks stay."""
    x, w, rest = np.sqrt(rng.dirichlet(np.ones(3), 40)), 0.5 + rng.random(40), rng.normal(size=(40, 3))
    marks = x[:12]
    each, moved, bandwidth, slopes, _ = _best_ridge(x, marks, rest, w, 0.4, np.arange(40))
    features = _kernel(x, marks, 0.4)
    gram = _kernel(marks, marks, 0.4)

    def fitted(rows, penalty):
        weighted = features[rows].T * w[rows]
        return np.linalg.solve(weighted @ features[rows] + penalty * gram, weighted @ rest[rows])

    errors = []
    for penalty in PENALTIES:
        left = [rest[i] - features[i] @ fitted(np.arange(40) != i, penalty) for i in range(40)]
        errors.append(w @ (np.array(left) ** 2).sum(axis=1))
    assert bandwidth == 0.4
    assert w @ each == pytest.approx(min(errors), rel=1e-6)
    best = PENALTIES[int(np.argmin(errors))]
    assert features @ slopes == pytest.approx(features @ fitted(np.arange(40) >= 0, best), abs=1e-6)
    left = np.array([features[i] @ fitted(np.arange(40) != i, best) for i in range(40)])
    assert moved == pytest.approx(left, abs=1e-6)


def test_the_nearest_point_of_the_simplex(rng):
    x = rng.normal(size=(5, 4))
    for row, found in zip(x, projected(x), strict=True):
        total = {"type": "eq", "fun": lambda q: q.sum() - 1}
        best = minimize(
            lambda q, row=row: ((q - row) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints=total,
            tol=1e-12,
        )
        assert found == pytest.approx(best.x, abs=1e-4)
    assert (projected(np.array([[0.2, 0.8]])) == [[0.2, 0.8]]).all()


def test_no_class_loses_more_than_half(rng):
    y, p, _ = drawn(rng, 500, 100)
    found = SimplexRidge().fit(y, p, folds=0)
    g, first = found(p), found.map.first(p)
    assert (g >= KEPT * first - 1e-12).all()
    assert g.sum(axis=1) == pytest.approx(np.ones(500), abs=1e-12)


def test_noise_is_left_alone(rng):
    """Labels of the first map's own making: the regression has nothing to find, and mostly finds nothing."""
    idle = 0
    for _ in range(10):
        p = rng.dirichlet(np.ones(3), 300)
        idle += (SimplexRidge().fit(labels(rng, p), p, folds=0).map.slopes == 0).all()
    assert idle >= 3


def test_certainty_is_large_where_something_is_wrong(rng):
    y, p, _ = drawn(rng, 4000, 3)
    wrong = SimplexRidge().fit(y, p, folds=0).map.certainty(p)
    y, p, _ = drawn(rng, 4000, 3, move=0.0)
    right = SimplexRidge().fit(y, p, folds=0).map.certainty(p)
    assert (wrong >= 0).all()
    assert (wrong <= 1).all()
    assert np.median(wrong) > 0.9
    assert np.median(right) < 0.85


def test_another_first_recalibrator(rng):
    """A temperature knows no variance of its own: that of one coefficient a class stands in."""
    y, p, truth = drawn(rng, 2000, 3)
    found = SimplexRidge(Temperature()).fit(y, p, folds=0)
    assert np.abs(found(p) - truth).mean() < 0.03
    alone = replace(found.map, covariance=0 * found.map.covariance)
    assert alone.variance(p) == pytest.approx(1 / 2000 * (1 - (found.map.first(p) ** 2).sum(axis=1)))
    assert (found.map.variance(p) > alone.variance(p)).all()
    for first, coefficients in ((StructuredMatrix(diagonal=True), 2), (StructuredMatrix(), 4)):
        alone = replace(found.map, first=first.fit(y, p, folds=0).map, covariance=0 * found.map.covariance)
        expected = coefficients / 2000 * (1 - (alone.first(p) ** 2).sum(axis=1))
        assert alone.variance(p) == pytest.approx(expected)


def test_a_ridge_must_win_by_more_than_chance(rng):
    """Of predictions that a temperature mends, some ridge looks better than none nearly always; not by two standard errors."""
    chosen = {0.0: 0, 2.0: 0}
    for _ in range(12):
        p = rng.dirichlet(np.full(4, 0.5), 300)
        y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
        for margin in chosen:
            chosen[margin] += bool(SimplexRidge(Temperature(), margin=margin).fit(y, p, folds=0).map.slopes.any())
    assert chosen[0.0] >= 4
    assert chosen[2.0] <= 1
    y, p, _ = drawn(rng, 2000, 3)
    assert SimplexRidge(Temperature(), margin=2.0).fit(y, p, folds=0).map.slopes.any()
    with pytest.raises(InputError, match="margin must be a number of standard errors, at least 0; got -1"):
        SimplexRidge(margin=-1)


def test_permuted_classes_get_the_permuted_answer(rng):
    y, p, _ = drawn(rng, 500, 4)
    order = rng.permutation(4)
    one, other = SimplexRidge().fit(y, p, folds=0), SimplexRidge().fit(np.argsort(order)[y], p[:, order], folds=0)
    assert other(p[:, order]) == pytest.approx(one(p)[:, order], abs=1e-6)


def test_the_same_seed_gives_the_same_digits(rng):
    y, p, _ = drawn(rng, 400, 3)
    one, again, other = (SimplexRidge(seed=seed).fit(y, p, folds=0)(p) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


def test_it_comes_back_from_json_digit_by_digit(rng):
    y, p, _ = drawn(rng, 400, 3)
    for first in (SimplexRidge().first, Temperature()):
        found = SimplexRidge(first).fit(y, p, folds=0).map
        again = Map.from_dict(json.loads(json.dumps(found.to_dict())))
        assert (again(p) == found(p)).all()
        assert (again.certainty(p) == found.certainty(p)).all()


def test_more_rows_than_a_chunk(rng, monkeypatch):
    y, p, _ = drawn(rng, 300, 3)
    whole = SimplexRidge().fit(y, p, folds=0)
    monkeypatch.setattr("calibrant.recalibration.nonparametric.simplex_ridge.CHUNK", 64)
    parts = SimplexRidge().fit(y, p, folds=0)
    assert parts(p) == pytest.approx(whole(p), abs=1e-6)
    assert parts.map.certainty(p) == pytest.approx(whole.map.certainty(p), abs=1e-4)


def test_what_it_cannot_take(rng):
    with pytest.raises(InputError, match="maps class probabilities"):
        SimplexRidge().fit([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
    with pytest.raises(InputError, match="landmarks"):
        SimplexRidge(landmarks=0)
    y, p, _ = drawn(rng, 50, 3)
    first = SimplexRidge().fit(y, p, folds=0).map.first
    with pytest.raises(InputError, match="as many slopes"):
        SimplexMap(first, np.zeros((2, 3)), 0.1, np.zeros((3, 3)), np.eye(2), 5.0, 3)
