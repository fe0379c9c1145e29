import json

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.recalibration import (
    Best,
    NadarayaWatson,
    QuantileRecalibration,
    SplineScaling,
    Stack,
    Temperature,
    VarianceScaling,
    VectorScaling,
)
from calibrant.recalibration.maps import Map
from calibrant.recalibration.predictive.quantile import PITMap
from calibrant.recalibration.predictive.variance import ScaledMap
from calibrant.recalibration.stacking.stack import MixtureStack, _shares, held_out_log_chances


def drawn(rng, n=600):
    f = rng.beta(0.5, 0.5, n)
    return rng.binomial(1, expit(0.4 * logit(f) + 0.5)), f


def test_shares_have_the_largest_likelihood(rng):
    """Two members: a search in one dimension; and no share can be moved at a gain."""
    chances, w = rng.random((2, 200)), rng.dirichlet(np.ones(200))
    shares, is_converged = _shares(chances, w)
    grid = np.linspace(0, 1, 10_001)
    likelihood = np.log(grid[:, None] * chances[0] + (1 - grid[:, None]) * chances[1]) @ w
    assert is_converged
    assert shares[0] == pytest.approx(grid[np.argmax(likelihood)], abs=5e-3)
    assert np.log(shares @ chances) @ w == pytest.approx(likelihood.max(), abs=1e-6)


def test_a_member_that_is_always_better_gets_everything():
    shares, _ = _shares(np.array([np.full(50, 0.5), np.full(50, 0.8)]), np.full(50, 0.02))
    assert shares == pytest.approx([0, 1], abs=1e-5)


def test_rows_that_no_member_thought_possible_decide_nothing():
    chances = np.array([[0.0, 0.5, 0.9], [0.0, 0.5, 0.1]])
    assert _shares(chances, np.full(3, 1 / 3))[0] == pytest.approx([1, 0], abs=1e-5)
    assert _shares(np.zeros((2, 3)), np.full(3, 1 / 3))[0].tolist() == [0.5, 0.5]


def test_the_members_that_fit_get_the_shares(rng):
    y, f = drawn(rng)
    found = Stack([Temperature(), SplineScaling()]).fit(y, f)
    assert found.map.shares.sum() == pytest.approx(1)
    assert found.map.shares[0] < 0.1
    assert found.scores["change"][0] < 0
    assert found.is_converged


def test_calibrated_predictions_keep_a_share(rng):
    """Held-out rows take back part of what one recalibrator alone would change."""
    changes = []
    for _ in range(6):
        f = rng.beta(0.5, 0.5, 1000)
        y = rng.binomial(1, f)
        fits = [one.fit(y, f, folds=0)(f) for one in (SplineScaling(), Stack([SplineScaling(), Temperature()]))]
        changes.append([np.abs(g - f).mean() for g in fits])
    alone, stacked = np.mean(changes, axis=0)
    assert stacked < 0.8 * alone


def test_a_mixture_is_the_sum_of_its_parts(rng):
    y, f = drawn(rng)
    maps = [one.fit(y, f, folds=0).map for one in (Temperature(), SplineScaling())]
    mixed = MixtureStack(maps, np.array([0.5, 0.2, 0.3]), 2)
    assert mixed(f) == pytest.approx(0.5 * f + 0.2 * maps[0](f) + 0.3 * maps[1](f))


def test_chances_are_of_rows_not_fitted(rng):
    y, f = drawn(rng, 100)
    fold = np.arange(100) % 2
    chances = np.exp(held_out_log_chances([SplineScaling()], y, Categorical(f), None, fold)[0])
    other = SplineScaling().fit(y[1::2], f[1::2], folds=0)(f[::2])
    assert chances[::2] == pytest.approx(np.where(y[::2] == 1, other, 1 - other))


def test_the_best_of_two(rng):
    y, f = drawn(rng, 2000)
    assert Best([Temperature(), SplineScaling()]).fit(y, f, folds=0).map.to_dict()["map"] == "SplineMap"
    y = rng.binomial(1, expit(0.5 * logit(f)))
    best = Best([Temperature(), SplineScaling()], tries=1)
    expected = Temperature().fit(y, f, folds=0).map
    assert best.fit(y, f, folds=0).map == expected


def test_a_margin_keeps_the_first_unless_another_is_better_by_more_than_chance(rng):
    """Log probabilities of 100 rows: the second is better by .1, with a standard error of .05 or of .2."""
    noise = rng.normal(size=100)
    noise = (noise - noise.mean()) / noise.std()
    careful, w, nothing = Best([Temperature(), SplineScaling()], margin=1.0), np.ones(100), np.zeros((3, 100))
    for size, winner in ((0.5, 1), (2.0, 0)):
        logs = np.stack([np.full(100, -1.0), -0.9 + size * noise])
        assert careful._winner(logs, w, nothing[:2]) == winner
        assert careful._winner(logs, w, nothing[:2] + 1.1) == 0  # an error of .105, if either map is right
        assert Best([Temperature(), SplineScaling()])._winner(logs, w, nothing[:2]) == 1
    logs = np.stack([np.full(100, -1.0), np.full(100, -0.95), -0.9 + 2 * noise])
    assert careful._winner(logs, w, nothing) == 1  # the last is better still, but for chance
    endless = np.stack([np.full(100, -1.0), np.where(np.arange(100), -0.1, -np.inf)])
    assert careful._winner(endless, w, nothing[:2]) == 0
    assert careful._winner(endless[::-1], w, nothing[:2]) == 1
    with pytest.raises(InputError, match="margin must be a number of standard errors"):
        Best([Temperature()], margin=np.nan)


def test_the_best_for_numbers(rng):
    both = Best([VarianceScaling(), QuantileRecalibration()])
    sure = Normal(np.zeros(2_000), 0.3)
    assert type(both.fit(rng.normal(size=2_000), sure, folds=0).map) is ScaledMap
    assert type(both.fit(rng.exponential(size=2_000), sure, folds=0).map) is PITMap


def test_names_of_classes_do_not_matter(rng):
    p = rng.dirichlet(np.ones(3), 152)
    truth = 0.5 * p + [0.3, 0.2, 0.0]
    y, order = (truth.cumsum(axis=1) > rng.random((152, 1))).argmax(axis=1), np.array([2, 0, 1])
    recalibrator = Stack([Temperature(), VectorScaling(), NadarayaWatson()])
    plain = recalibrator.fit(y, p, folds=0)(p)
    renamed = recalibrator.fit(np.argsort(order)[y], p[:, order], folds=0)(p[:, order])
    assert renamed == pytest.approx(plain[:, order], abs=1e-7)


def test_fewer_rows_than_folds():
    assert Stack([Temperature()]).fit([0, 1, 1], [0.2, 0.7, 0.6], folds=0)([0.5]) == pytest.approx([0.5])


def test_one_row_cannot_be_judged():
    assert Stack([Temperature()]).fit([1], [0.2], folds=0)([0.2, 0.5]) == pytest.approx([0.2, 0.5])
    first = Best([Temperature(), SplineScaling()]).fit([1], [0.2], folds=0)
    assert first.map == Temperature().fit([1], [0.2], folds=0).map
    assert Best([Temperature(), SplineScaling()]).fit([1, 0], [0.2, 0.6], folds=2).scores is not None


def test_it_comes_back_from_json_digit_by_digit(rng):
    y, f = drawn(rng)
    found = Stack([Temperature(), SplineScaling()]).fit(y, f, folds=0).map
    again = Map.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again(f) == found(f)).all()


def test_weights_reach_the_members_and_the_shares(rng):
    y, f = drawn(rng)
    w = np.where(y == 1, 3.0, 1.0)
    heavy, plain = (Stack([SplineScaling()]).fit(y, f, sample_weight=x, folds=0) for x in (w, None))
    assert heavy(f).mean() > plain(f).mean() + 0.1


def test_what_it_cannot_take():
    for kind in (Stack, Best):
        with pytest.raises(InputError, match=r"such as \[Temperature\(\)\]"):
            kind([])
        with pytest.raises(InputError, match="folds"):
            kind([Temperature()], folds=1)
    with pytest.raises(InputError, match="Stack maps class probabilities"):
        Stack([Temperature()]).fit([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), folds=0)
    with pytest.raises(InputError, match="tries"):
        Best([Temperature()], tries=0)
    with pytest.raises(InputError, match="2 shares that sum to 1"):
        MixtureStack((SplineScaling().fit([0, 1], [0.3, 0.6], folds=0).map,), np.array([0.5, 0.6]), 2)
