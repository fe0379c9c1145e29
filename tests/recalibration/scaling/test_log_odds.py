import json
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.recalibration import BetaScaling, Intercept, Platt, Quadratic
from calibrant.recalibration.maps import Map
from calibrant.recalibration.scaling.log_odds import AffineLogOdds, BetaLogOdds, QuadraticLogOdds

ALL = [Platt(), Quadratic(), BetaScaling(), BetaScaling(monotone=False)]
FEATURES = {
    "Platt": lambda p: [np.ones_like(p), logit(p)],
    "Quadratic": lambda p: [np.ones_like(p), logit(p), logit(p) ** 2],
    "BetaScaling": lambda p: [np.ones_like(p), np.log(p), -np.log1p(-p)],
}
TRUTH = {"Platt": [0.3, 0.4], "Quadratic": [-0.2, 0.7, 0.08], "BetaScaling": [0.2, 0.5, 1.3]}

every = pytest.mark.parametrize("recalibrator", ALL, ids=repr)


def design(recalibrator, p):
    return np.stack(FEATURES[type(recalibrator).__name__](p), axis=1)


def coefficients(fitted):
    return np.array(list(vars(fitted.map).values())[: 3 if "Affine" not in repr(fitted.map) else 2])


def drawn(recalibrator, rng, n):
    p = expit(rng.normal(0, 2, n))
    chance = expit(design(recalibrator, p) @ TRUTH[type(recalibrator).__name__])
    return (rng.random(n) < chance).astype(int), p


def mean_loss(x, sign, b):
    return np.logaddexp(0, -sign * (x @ b)).mean()


def log_loss(y, p):
    return -np.log(np.where(y == 1, p, 1 - p)).mean()


@every
def test_recovers_its_own_model_within_error_bars(recalibrator, rng):
    y, p = drawn(recalibrator, rng, 20_000)
    fitted = recalibrator.fit(y, p, folds=0)
    x, truth = design(recalibrator, p), np.array(TRUTH[type(recalibrator).__name__])
    chance = expit(x @ truth)
    errors = np.sqrt(np.diag(np.linalg.inv((x.T * chance * (1 - chance)) @ x)))
    assert np.abs((coefficients(fitted) - truth) / errors).max() < 3.5
    fresh_y, fresh = drawn(recalibrator, rng, 20_000)
    assert log_loss(fresh_y, fitted(fresh)) < log_loss(fresh_y, fresh) - 0.005


@every
def test_held_out_rows_gain(recalibrator, rng):
    fitted = recalibrator.fit(*drawn(recalibrator, rng, 3_000))
    assert fitted.scores["change"][0] < 0
    assert fitted.is_converged
    assert fitted.notes == ()


@every
def test_likelihood_is_greatest(recalibrator, rng):
    """A search by another method, on the plain likelihood, ends at the same coefficients; the gradient is gone."""
    y, p = drawn(recalibrator, rng, 400)
    x, sign = design(recalibrator, p), 2 * y - 1
    loss = partial(mean_loss, x, sign)
    other = minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-9})
    found = coefficients(recalibrator.fit(y, p, folds=0))
    assert np.abs(x.T @ (expit(x @ found) - y) / 400).max() < 1e-9
    np.testing.assert_allclose(found, other.x, atol=1e-5)
    assert loss(found) <= loss(other.x) + 1e-14


def test_slopes_that_would_be_negative_are_zero(rng):
    """The constrained optimum against a bounded search."""
    p = expit(rng.normal(0, 2, 2_000))
    for a, b in [(-0.3, 0.8), (0.8, -0.3), (-0.3, -0.5)]:
        y = (rng.random(2_000) < expit(a * np.log(p) - b * np.log1p(-p))) * 1
        x, sign = design(BetaScaling(), p), 2 * y - 1
        bounds = [(None, None), (0, None), (0, None)]
        other = minimize(
            partial(mean_loss, x, sign),
            np.zeros(3),
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 0, "gtol": 1e-9},
        )
        found = coefficients(BetaScaling().fit(y, p, folds=0))
        assert found[1:].min() == 0
        np.testing.assert_allclose(found, other.x, atol=1e-4)
        assert min(coefficients(BetaScaling(monotone=False).fit(y, p, folds=0))[1:]) < -0.1


@every
def test_weights_are_repetitions(recalibrator, rng):
    y, p = drawn(recalibrator, rng, 300)
    times = rng.integers(0, 4, 300)
    weighted = coefficients(recalibrator.fit(y, p, sample_weight=times, folds=0))
    repeated = coefficients(recalibrator.fit(np.repeat(y, times), np.repeat(p, times), folds=0))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7)


@every
def test_relabelling_turns_the_map_around(recalibrator, rng):
    y, p = drawn(recalibrator, rng, 500)
    p[:3] = 0.0, 1.0, 0.0
    grid = np.array([0.0, 1e-4, 0.3, 0.9, 1.0])
    there, back = recalibrator.fit(y, p, folds=0), recalibrator.fit(1 - y, 1 - p, folds=0)
    np.testing.assert_allclose(there(grid), 1 - back(1 - grid), atol=1e-9)


@every
def test_json_keeps_every_digit(recalibrator, rng):
    fitted = recalibrator.fit(*drawn(recalibrator, rng, 200), folds=0)
    assert Map.from_dict(json.loads(json.dumps(fitted.map.to_dict()))) == fitted.map


@every
@pytest.mark.parametrize("ties", [0, 3])
def test_separable_data_give_a_finite_map_and_a_note(recalibrator, ties):
    p = np.concatenate([np.linspace(0.1, 0.4, 20), np.full(2 * ties, 0.5), np.linspace(0.6, 0.9, 20)])
    y = np.repeat([0, 1], 20 + ties)
    fitted = recalibrator.fit(y, p, folds=0)
    assert fitted.is_converged
    assert any("half a nat" in note for note in fitted.notes)
    new = fitted(p)
    assert np.all(np.diff(new) >= 0)
    assert np.isfinite(coefficients(fitted)).all()
    short = len(p) * log_loss(y, new) - 2 * ties * np.log(2)
    assert 0 < short <= 0.6


@every
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_keeps_a_chance_for_the_other(recalibrator, label, rng):
    p = rng.random(100)
    fitted = recalibrator.fit(np.full(100, label), p, folds=0)
    missing = np.abs(fitted(p) - label)
    assert np.all((missing > 1e-4) & (missing < 0.01))
    assert any("half a nat" in note for note in fitted.notes)


@every
def test_constant_predictions_become_the_frequency_and_keep_the_slope(recalibrator):
    fitted = recalibrator.fit([0, 0, 0, 1], [0.6] * 4, folds=0)
    np.testing.assert_allclose(fitted([0.6]), 0.25, rtol=1e-8)
    np.testing.assert_allclose(fitted([0.8]), expit(logit(0.8) - logit(0.6) + logit(0.25)), rtol=1e-8)


@every
def test_0_and_1_are_put_right(recalibrator, rng):
    """A forest says 0 and 1 where one in ten is otherwise: the map says so too, and no loss is infinite."""
    p = rng.integers(0, 11, 2_000) / 10
    y = (rng.random(2_000) < 0.1 + 0.8 * p) * 1
    fitted = recalibrator.fit(y, p, folds=0)
    wrong = int(((p == 0) & (y == 1) | (p == 1) & (y == 0)).sum())
    assert fitted.notes == (f"{wrong} rows had probability 0 for what happened: 0 counts as 0.05",)
    ends = fitted([0.0, 1.0])
    assert np.abs(ends - [0.1, 0.9]).max() < 0.04
    assert np.isfinite(log_loss(y, fitted(p)))
    assert log_loss(y, fitted(p)) < log_loss(y, np.clip(p, 1e-3, 1 - 1e-3)) - 0.05


def test_what_the_note_says_of_0_and_1_is_what_the_map_does(rng):
    """A parabola may be level at its end: then 1 is sent elsewhere."""
    z = rng.normal(0, 2, 5_000)
    y = (rng.random(5_000) < expit(0.5 * z - 0.08 * z**2)) * 1
    p = expit(z)
    p[:3], y[:3] = 1.0, 0
    fitted = Quadratic().fit(y, p, folds=0)
    least = fitted.map.least
    assert fitted([1.0]) == pytest.approx(fitted([1 - least]), rel=1e-3)
    assert fitted([0.0]) == pytest.approx(fitted([least]), rel=1e-3)
    assert "as they are" not in fitted.notes[0]


def test_one_number_moves_all_log_odds_until_the_sums_agree(rng):
    z = rng.normal(-2.6, 1.0, 800)
    y = (rng.random(800) < expit(0.5 + z)) * 1
    fitted = Intercept().fit(y, expit(z), folds=0)
    assert fitted(expit(z)).sum() == pytest.approx(y.sum(), rel=1e-9)
    np.testing.assert_allclose(logit(fitted(expit(z))) - z, fitted.map.intercept, rtol=1e-9)
    assert fitted.map.slope == 1.0


@pytest.mark.parametrize("y", [np.zeros(100, int), np.ones(100, int)], ids=["no event", "events only"])
def test_without_one_of_the_classes_the_intercept_is_finite(y, rng):
    fitted = Intercept().fit(y, rng.random(100), folds=0)
    assert np.isfinite(fitted.map.intercept)
    assert any("half a nat" in note for note in fitted.notes)


@every
def test_nothing_but_certainties(recalibrator):
    p = np.repeat([0.0, 1.0], 50)
    y = np.repeat([0, 1], 50)
    y[:5], y[-5:] = 1, 0
    fitted = recalibrator.fit(y, p, folds=0)
    assert np.isfinite(coefficients(fitted)).all()
    assert not np.isnan(fitted([0.0, 0.3, 1.0])).any()


def test_maps_at_0_and_1_are_limits():
    ends = [0.0, 1.0]
    assert AffineLogOdds(2.0, 0.5)(ends).tolist() == [0, 1]
    assert AffineLogOdds(2.0, -0.5)(ends).tolist() == [1, 0]
    np.testing.assert_allclose(AffineLogOdds(2.0, 0.0)(ends), expit(2))
    np.testing.assert_allclose(BetaLogOdds(2.0, 0.0, 0.7)(ends), [expit(2), 1])
    np.testing.assert_allclose(BetaLogOdds(2.0, 0.7, 0.0)(ends), [0, expit(2)])


def test_a_parabola_goes_on_as_a_line_that_does_not_fall():
    bowl = QuadraticLogOdds(0.0, 1.0, 0.5, -2.0, 2.0)
    z = np.array([-2.0, 1.0, 3.0])
    np.testing.assert_allclose(logit(bowl(expit(z))), [0, 1.5, 4 + 3], atol=1e-12)  # slope 3 at 2
    np.testing.assert_allclose(bowl([0.0, 1e-5]), 0.5)  # it would rise again to the left of -1
    assert bowl([1.0]) == 1


def test_small_tails_survive():
    found = AffineLogOdds(0.0, 2.0)(np.array([[1e-20, 1.0], [1.0, 1e-20]]))
    np.testing.assert_allclose(found[:, 0], [1e-40, 1.0], rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], [1.0, 1e-40], rtol=1e-12)


@every
def test_single_precision_and_two_columns(recalibrator, rng):
    y, p = drawn(recalibrator, rng, 500)
    found = coefficients(recalibrator.fit(y, p, folds=0))
    single = recalibrator.fit(y, p.astype(np.float32), folds=0)
    np.testing.assert_allclose(coefficients(single), found, rtol=1e-3, atol=1e-4)
    assert single(p.astype(np.float32)).dtype == np.float64
    columns = np.stack([1 - p, p], axis=1)
    np.testing.assert_allclose(coefficients(recalibrator.fit(y, columns, folds=0)), found, rtol=1e-9)
    assert recalibrator.fit(y, columns, folds=0)(columns).shape == (500, 2)


@every
def test_more_classes_are_refused_with_a_remedy(recalibrator, rng):
    name = type(recalibrator).__name__
    with pytest.raises(
        InputError, match=rf"y_pred has 3: use OneVsRest\({name}\(\)\), one map per class, or a .* VectorScaling\(\)"
    ):
        recalibrator.fit([0, 1, 2], rng.dirichlet(np.ones(3), 3), folds=0)
    with pytest.raises(InputError, match=f"{name} maps class probabilities; got Normal predictions"):
        recalibrator.fit([0.5, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
    fitted = recalibrator.fit(*drawn(recalibrator, rng, 50), folds=0)
    with pytest.raises(InputError, match="fitted on 2 classes and y_pred has 3"):
        fitted(Categorical(rng.dirichlet(np.ones(3), 3)))


def test_maps_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match=r"least must be a probability below 1/2; got 0\.7"):
        AffineLogOdds(0.0, 1.0, 0.7)
    with pytest.raises(InputError, match="AffineLogOdds must be made of finite numbers; got {'slope': nan}"):
        Map.from_dict({"map": "AffineLogOdds", "intercept": 0.0, "slope": "nan"})
