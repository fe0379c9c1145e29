import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.recalibration import Best, SimplexRidge, Temperature
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.margin import check_margin, expected_spread, gain_beyond, spread_of_log_loss
from calibrant.recalibration.scaling.temperature import Tempering


class Sharper(Recalibrator):
    """A temperature of a half, whatever happened."""

    def find(self, targets, predictions, weights):
        return Found(Tempering("Categorical", 0.5, predictions.n_classes))


class Unchanged(Recalibrator):
    def find(self, targets, predictions, weights):
        return Found(Tempering("Categorical", 1.0, predictions.n_classes))


def test_the_spread_of_outcomes_between_both(rng):
    """Against draws."""
    f, g = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(3), 2)
    change = rng.normal(size=(2, 3))
    found = expected_spread(change, f, g)
    for i in range(2):
        seen = change[i, rng.choice(3, size=200_000, p=(f[i] + g[i]) / 2)]
        assert found[i] == pytest.approx(seen.var(), rel=0.02)
    assert spread_of_log_loss(f, g) == pytest.approx(expected_spread(np.log(f) - np.log(g), f, g))


def test_impossible_outcomes_have_a_finite_spread():
    f, g = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    never, first = spread_of_log_loss(f, g)
    assert never == 0
    assert 1e4 < first < np.inf


def test_a_gain_is_what_exceeds_its_error():
    before, after, share = np.ones(4), np.array([0.5, 0.7, 0.5, 0.7]), np.full(4, 0.25)
    assert gain_beyond(2.0, before, after, share) == pytest.approx(0.4)  # with an error of .05
    assert gain_beyond(9.0, before, after, share) == 0
    assert gain_beyond(2.0, before, after, share, np.full(4, 0.2)) == 0  # sqrt(.2 / 4) is .22
    assert gain_beyond(1.0, before, after, share, np.full(4, 0.2)) == pytest.approx(0.4)
    assert gain_beyond(0.0, after, before, share) == 0
    assert gain_beyond(2.0, np.array([np.inf, 1, 1, 1]), after, share) == np.inf
    assert gain_beyond(2.0, before, np.array([np.inf, 0, 0, 0]), share) == 0


def test_sure_rows_that_all_come_true_are_no_proof(rng):
    """Each of 100 rows of .97 gains a little from being surer, with hardly any spread; of 2,000 rows some would go wrong."""
    sure = 0.97 + 0.005 * rng.random(100)
    y = np.ones(100, dtype=int)
    assert Best([Unchanged(), Sharper()]).fit(y, sure, folds=0).map.temperature == 0.5
    assert Best([Unchanged(), Sharper()], margin=2.0).fit(y, sure, folds=0).map.temperature == 1.0
    many = np.tile(sure, 20)
    assert Best([Unchanged(), Sharper()], margin=2.0).fit(np.ones(2_000), many, folds=0).map.temperature == 0.5


def test_a_ridge_on_sure_rows_that_all_come_true_is_no_gain(rng):
    p = 0.06 * rng.random((60, 3)) / 2
    p[:, 0] = 1 - p[:, 1] - p[:, 2]
    y = np.zeros(60, dtype=int)
    assert SimplexRidge(Unchanged()).fit(y, p, folds=0).map.slopes.any()
    assert not SimplexRidge(Unchanged(), margin=2.0).fit(y, p, folds=0).map.slopes.any()
    y, p = np.zeros(6_000, dtype=int), np.tile(p, (100, 1))
    assert SimplexRidge(Unchanged(), margin=2.0).fit(y, p, folds=0).map.slopes.any()


def test_rows_without_weight_and_single_rows_change_nothing():
    both = [Temperature(), Sharper()]
    assert Best(both, margin=2.0).fit([1], [0.9], folds=0).map.temperature != 0.5
    assert Best(both, margin=2.0).fit([1, 0], [0.9, 0.2], sample_weight=[1, 0], folds=0).map.temperature != 0.5


def test_what_is_no_margin():
    with pytest.raises(InputError, match="margin must be a number of standard errors, at least 0; got -0.1"):
        check_margin(-0.1)
