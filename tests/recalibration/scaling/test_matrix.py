import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.recalibration import (
    BetaScaling,
    DirichletScaling,
    MatrixScaling,
    Platt,
    StructuredMatrix,
    Temperature,
    VectorScaling,
)
from calibrant.recalibration.maps import Map
from calibrant.recalibration.scaling.matrix import LinearLogits

ALL = [VectorScaling(), MatrixScaling(), DirichletScaling(), StructuredMatrix(), StructuredMatrix(diagonal=True)]

every = pytest.mark.parametrize("recalibrator", ALL, ids=repr)


def labels(p, rng):
    return (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)


def drawn(rng, n=600, k=4):
    """Predictions that are too sharp, of classes that are not alike."""
    z = rng.normal(size=(n, k)) * 3
    slopes, intercepts = np.linspace(0.4, 0.8, k), np.linspace(-0.5, 0.5, k)
    return labels(softmax(z * slopes + intercepts, axis=1), rng), softmax(z, axis=1)


def log_loss(y, p):
    return -np.log(p[np.arange(len(y)), y]).mean()


def centred(log_p):
    return log_p - log_p.mean(axis=1, keepdims=True)


def objective(recalibrator, y, p, linear):
    """The plain objective as a function of weights and intercepts, written out, and its start."""
    n, k = p.shape
    x = np.log(p)
    if isinstance(recalibrator, VectorScaling | MatrixScaling):
        x = centred(x)
    if isinstance(recalibrator, StructuredMatrix):
        x = log_softmax(x / linear.temperature, axis=1)
    is_diagonal = linear.weights.ndim == 1

    def value(flat):
        weights = np.diag(flat[:k]) if is_diagonal else flat[: k * k].reshape(k, k)
        b = flat[-k:]
        loss = -log_softmax(x @ weights.T + b, axis=1)[np.arange(n), y].mean()
        change = weights - np.eye(k)
        diagonal = (np.diag(change) ** 2).sum()
        off = (change**2).sum() - diagonal
        if isinstance(recalibrator, StructuredMatrix):
            loss += k / n * (diagonal + (b**2).sum()) + k * (k - 1) / n * off
        elif not isinstance(recalibrator, VectorScaling):
            loss += recalibrator.penalty / n * (k * (k - 1) * off + k * (b**2).sum() + diagonal)
        return loss

    return value, np.concatenate([linear.weights.ravel(), linear.intercepts])


@every
def test_held_out_rows_gain(recalibrator, rng):
    y, p = drawn(rng, 2_000)
    fitted = recalibrator.fit(y, p)
    assert fitted.scores["change"][0] < -0.05
    assert fitted.is_converged
    assert fitted.notes == ()


def information(x, weights, b, is_diagonal):
    """Fisher information of all free parameters, by the covariance of scores."""
    p = softmax(x @ weights.T + b, axis=1)
    n, k = p.shape
    columns = np.column_stack([x, np.ones(n)])
    total = 0
    for c in range(k):  # the score if class c happens, times its chance
        errors = np.eye(k)[c] - p
        if is_diagonal:
            score = np.concatenate([errors * x, errors], axis=1)
        else:
            score = (errors[:, :, None] * columns[:, None, :]).reshape(n, -1)
        total = total + (score.T * p[:, c]) @ score
    return total


def test_vector_scaling_recovers_slopes_and_intercepts(rng):
    z = centred(rng.normal(size=(20_000, 3)) * 3)
    slopes, b = np.array([0.4, 0.8, 1.2]), np.array([0.5, -0.3, -0.2])
    y, p = labels(softmax(z * slopes + b, axis=1), rng), softmax(z, axis=1)
    found = VectorScaling().fit(y, p, folds=0).map
    errors = np.sqrt(np.diag(np.linalg.pinv(information(z, np.diag(slopes), b, is_diagonal=True))))
    gaps = np.concatenate([found.weights - slopes, centred(found.intercepts[None])[0] - b])
    assert np.abs(gaps / errors).max() < 3.5


@pytest.mark.parametrize("recalibrator", [DirichletScaling(penalty=1e-3), MatrixScaling(penalty=1e-3)], ids=repr)
def test_matrices_recover_their_own_model(recalibrator, rng):
    n, k = 20_000, 3
    true = np.array([[0.6, 0.2, 0.0], [-0.1, 0.5, 0.0], [0.0, 0.0, 0.9]])
    b = np.array([0.5, -0.3, -0.2])
    p = rng.dirichlet(np.ones(k), n)
    x = np.log(p) if isinstance(recalibrator, DirichletScaling) else centred(np.log(p))
    y = labels(softmax(x @ true.T + b, axis=1), rng)
    found = recalibrator.fit(y, p, folds=0).map
    spread = np.linalg.pinv(information(x, true, b, is_diagonal=False), rcond=1e-9)
    # only what the likelihood can tell: a column of the matrix up to a constant, and rows without their mean
    gap = np.column_stack([found.weights - true, found.intercepts - b])
    if isinstance(recalibrator, MatrixScaling):
        gap[:, :k] = centred(gap[:, :k])
    gap = gap - gap.mean(axis=0)
    errors = np.sqrt(np.diag(spread)).reshape(k, k + 1)
    assert np.abs(gap / errors).max() < 3.7


def test_structured_scaling_comes_close_to_its_own_model(rng):
    y, p = drawn(rng, 20_000)
    fresh_rng = np.random.default_rng(1)
    fresh_z = fresh_rng.normal(size=(20_000, 4)) * 3
    true = softmax(fresh_z * np.linspace(0.4, 0.8, 4) + np.linspace(-0.5, 0.5, 4), axis=1)
    fresh_y, fresh = labels(true, fresh_rng), softmax(fresh_z, axis=1)
    temperature = log_loss(fresh_y, Temperature().fit(y, p, folds=0)(fresh))
    for recalibrator in (StructuredMatrix(), StructuredMatrix(diagonal=True)):
        found = log_loss(fresh_y, recalibrator.fit(y, p, folds=0)(fresh))
        assert log_loss(fresh_y, true) - 0.002 < found < temperature - 0.03


@every
@pytest.mark.parametrize("k", [2, 4])
def test_gradient_vanishes_and_another_search_finds_nothing_better(recalibrator, k, rng):
    y, p = drawn(rng, 300, k)
    fitted = recalibrator.fit(y, p, folds=0)
    value, at = objective(recalibrator, y, p, fitted.map)
    assert np.abs(approx_fprime(at, value, 1e-7)).max() < 2e-6
    other = minimize(value, np.zeros(len(at)), method="BFGS", options={"gtol": 1e-7})
    assert value(at) <= other.fun + 1e-12
    if not isinstance(recalibrator, VectorScaling):  # strictly convex: one optimum
        np.testing.assert_allclose(at, other.x, atol=2e-3)


def test_two_classes_are_platt_or_beta(rng):
    y, p = drawn(rng, 500, 2)
    grid = np.linspace(0.01, 0.99, 9)
    platt = Platt().fit(y, p[:, 1], folds=0)(grid)
    np.testing.assert_allclose(VectorScaling().fit(y, p[:, 1], folds=0)(grid), platt, rtol=1e-7)
    np.testing.assert_allclose(MatrixScaling(penalty=0.0).fit(y, p, folds=0).map(grid), platt, rtol=1e-7)
    beta = BetaScaling(monotone=False).fit(y, p[:, 1], folds=0)(grid)
    np.testing.assert_allclose(DirichletScaling(penalty=0.0).fit(y, p, folds=0).map(grid), beta, rtol=1e-7)


@every
def test_classes_may_be_renamed(recalibrator, rng):
    y, p = drawn(rng)
    order = np.array([2, 0, 3, 1])
    there = recalibrator.fit(y, p, folds=0)(p)
    back = recalibrator.fit(np.argsort(order)[y], p[:, order], folds=0)(p[:, order])
    np.testing.assert_allclose(there[:, order], back, atol=1e-8)


@every
def test_of_weights_only_the_ratio_matters(recalibrator, rng):
    y, p = drawn(rng, 300)
    w = rng.integers(0, 4, 300)
    one, other = (recalibrator.fit(y, p, sample_weight=c * w, folds=0)(p) for c in (1.0, 1.5))
    np.testing.assert_allclose(one, other, atol=1e-8)


@every
def test_json_keeps_every_digit(recalibrator, rng):
    y, p = drawn(rng, 200)
    found = recalibrator.fit(y, p, folds=0).map
    back = Map.from_dict(json.loads(json.dumps(found.to_dict())))
    assert type(back) is LinearLogits
    np.testing.assert_array_equal(back.weights, found.weights)
    np.testing.assert_array_equal(back.intercepts, found.intercepts)
    assert (back.temperature, back.is_centred) == (found.temperature, found.is_centred)
    np.testing.assert_array_equal(back(p), found(p))


@every
def test_separable_data_give_a_finite_map(recalibrator, rng):
    p = rng.dirichlet(np.ones(3), 60)
    y = p.argmax(axis=1)
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    assert bool(fitted.notes) == isinstance(recalibrator, VectorScaling | StructuredMatrix)  # others are penalised
    new = fitted(p)
    assert (new.argmax(axis=1) == y).all()
    assert 60 * log_loss(y, np.maximum(new, 1e-300)) < (5 if fitted.notes else 20)
    assert np.isfinite(fitted.map.weights).all()


@every
def test_constant_predictions_become_frequencies(recalibrator):
    y = np.repeat([0, 1, 2], [100, 300, 600])
    p = np.tile([0.5, 0.3, 0.2], (1000, 1))
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    np.testing.assert_allclose(fitted(p[:1])[0], [0.1, 0.3, 0.6], atol=1e-8 if recalibrator == ALL[0] else 0.01)


def test_constant_predictions_keep_the_slopes_of_vector_scaling():
    y = np.repeat([0, 1, 2], [100, 300, 600])
    found = VectorScaling().fit(y, np.tile([0.5, 0.3, 0.2], (1000, 1)), folds=0).map
    np.testing.assert_array_equal(found.weights, 1)


@every
def test_a_class_that_never_happens_keeps_a_chance(recalibrator, rng):
    y, p = drawn(rng)
    y = np.where(y == 2, 1, y)
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    new = fitted(p)
    assert new[:, 2].min() > 0
    assert 1e-5 < new[:, 2].mean() < 0.03


@every
def test_certain_rows(recalibrator, rng):
    y, p = drawn(rng, 500)
    p[:100] = np.eye(4)[np.where(np.arange(100) < 90, y[:100], (y[:100] + 1) % 4)]
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    ends = fitted(np.eye(4))
    assert np.isfinite(ends).all()
    assert (ends.argmax(axis=1) == np.arange(4)).all()
    assert log_loss(y, fitted(p)) < 2


@every
def test_nothing_but_certainties(recalibrator, rng):
    y = rng.integers(4, size=200)
    p = np.eye(4)[np.where(rng.random(200) < 0.8, y, (y + 1) % 4)]
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    assert np.diag(fitted(np.eye(4))).min() > 0.6
    assert np.diag(fitted(np.eye(4))).max() < 0.95


@every
def test_predictions_that_are_sure_and_wrong(recalibrator, rng):
    """There the likelihood has no curvature at the identity."""
    z = rng.normal(0, 12, (60, 3))
    y = labels(softmax(-z, axis=1), rng)
    fitted = recalibrator.fit(y, softmax(z, axis=1), folds=0)
    assert fitted.is_converged
    assert log_loss(y, fitted(softmax(z, axis=1))) < np.log(3) + 0.1


@every
@pytest.mark.parametrize("kind", ["plain", "a class that never happens", "separable"])
def test_a_known_map_moves_only_the_start(recalibrator, kind, rng):
    """Where the optimum is at infinity, and where the search stops depends on its start, not even a digit."""
    y, p = drawn(rng)
    rows = np.arange(450)
    if kind == "a class that never happens":
        y = np.where((y == 2) & (np.arange(600) < 599), 1, y)
        y[599] = 2
    if kind == "separable":
        y = p.argmax(axis=1)
        y[599] = (y[599] + 1) % 4
    known = recalibrator.find(y, Categorical(p), None).map
    near, far = (recalibrator.find_near(map_, y[rows], Categorical(p[rows]), None) for map_ in (known, None))
    assert near.notes == far.notes
    np.testing.assert_allclose(near.map(p), far.map(p), atol=0 if far.notes else 1e-8)


def test_large_problems_take_products_in_single_precision(rng, monkeypatch):
    y, p = drawn(rng, 2_000)
    for recalibrator in ALL:
        double = recalibrator.find(y, Categorical(p), None)
        with monkeypatch.context() as patch:
            patch.setattr("calibrant.recalibration.scaling.softmax_regression.MIN_NUMBERS", 0)
            single = recalibrator.find(y, Categorical(p), None)
        assert single.is_converged
        np.testing.assert_allclose(single.map(p), double.map(p), atol=1e-8)


def test_zero_stays_the_smallest():
    linear = LinearLogits(3, np.full(3, 0.7), np.zeros(3))
    found = linear([[0.0, 1e-8, 1 - 1e-8], [0.0, 1e-20, 1.0]])
    assert 0 < found[0, 0] < found[0, 1]
    assert found[1, 0] == found[1, 1]
    np.testing.assert_allclose(found[0, 0], (1e-12) ** 0.7, rtol=1e-4)


@every
def test_single_precision_and_one_column(recalibrator, rng):
    y, p = drawn(rng)
    found = recalibrator.fit(y, p, folds=0)(p)
    single = p.astype(np.float32)
    np.testing.assert_allclose(recalibrator.fit(y, single, folds=0)(single), found, atol=1e-4)
    y, p = drawn(rng, 300, 2)
    fitted = recalibrator.fit(y, p[:, 1], folds=0)
    assert fitted(p[:, 1]).shape == (300,)
    np.testing.assert_allclose(fitted(p[:, 1]), recalibrator.fit(y, p, folds=0)(p)[:, 1], atol=1e-9)


@pytest.mark.parametrize("recalibrator", [VectorScaling(), StructuredMatrix(diagonal=True)], ids=repr)
def test_a_thousand_classes(recalibrator, rng):
    y, p = drawn(rng, 500, 1000)
    y[0] = 0
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    assert log_loss(y, fitted(p)) < log_loss(y, p)


@pytest.mark.parametrize("recalibrator", ALL[1:4], ids=repr)
def test_matrices_of_a_hundred_classes_from_few_rows(recalibrator, rng):
    y, p = drawn(rng, 300, 100)
    y[:3] = 0
    fitted = recalibrator.fit(y, p, folds=3)
    assert fitted.is_converged
    assert not fitted.is_worse


def test_a_strong_penalty_leaves_the_identity(rng):
    y, p = drawn(rng)
    strong = MatrixScaling(penalty=1e9).fit(y, p, folds=0).map
    np.testing.assert_allclose(strong.weights - np.diag(np.diag(strong.weights)), 0, atol=1e-6)
    np.testing.assert_allclose(strong.intercepts, 0, atol=1e-6)
    np.testing.assert_allclose(np.diag(strong.weights), 1, atol=1e-4)


def test_bad_input(rng):
    y, p = drawn(rng, 50)
    for kind in (MatrixScaling, DirichletScaling):
        for penalty in (-1.0, np.nan, np.inf, "1", True):
            with pytest.raises(InputError, match="penalty must be a number of at least 0; got"):
                kind(penalty=penalty)
    for recalibrator in ALL:
        name = type(recalibrator).__name__
        with pytest.raises(InputError, match=f"{name} maps class probabilities; got Normal predictions"):
            recalibrator.fit([0.5, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
        with pytest.raises(InputError, match="fitted on 4 classes and y_pred has 3"):
            recalibrator.fit(y, p, folds=0)(Categorical(rng.dirichlet(np.ones(3), 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"weights": [1.0, 1.0, 1.0]},
            r"weights of 2 classes must be \(2,\) or \(2, 2\), intercepts \(2,\); got \(3,\)",
        ),
        ({"intercepts": [0.0, "nan"]}, "must be finite"),
        ({"temperature": 0.0}, "the temperature positive"),
        ({"weights": [[1.0, 0.0], [0.0]]}, "LinearLogits cannot be used"),
    ],
)
def test_files_that_make_no_map(change, message):
    data = LinearLogits(2, np.ones(2), np.zeros(2)).to_dict() | change
    with pytest.raises(InputError, match=message):
        Map.from_dict(data)


def test_mixed_with_the_uniform_distribution_against_a_search_of_its_own(rng):
    """The objective of the paper with the step of its program, minimised by another method."""
    n, k = 150, 4
    p = rng.dirichlet(np.full(k, 0.5), n)
    y = np.array([rng.choice(k, p=row) for row in p**2 / (p**2).sum(axis=1, keepdims=True)])
    found = StructuredMatrix(mixed=True).fit(y, p, folds=0).map
    tempered = softmax(np.log(p) / found.temperature, axis=1)
    x = np.log((n * tempered + 1 / k) / (n + 1))
    sizes = np.where(np.eye(k, dtype=bool), k / n, k * (k - 1) / n)

    def loss(v):
        d, b = v[: k * k].reshape(k, k), v[k * k :]
        logs = log_softmax(x + x @ d.T + b, axis=1)
        return -logs[np.arange(n), y].mean() + (sizes * d**2).sum() + k / n * (b**2).sum()

    best = minimize(loss, np.zeros(k * k + k), method="BFGS", options={"gtol": 1e-8}).x
    d, b = best[: k * k].reshape(k, k), best[k * k :]
    assert found(p) == pytest.approx(softmax(x + x @ d.T + b, axis=1), abs=1e-5)
    assert found.uniform == 1 / (n + 1)
    assert StructuredMatrix().fit(y, p, folds=0).map.uniform == 0
    with pytest.raises(InputError, match="uniform must be a share of at least 0 and below 1; got 1"):
        replace(found, uniform=1)
