import numpy as np
import pytest
from scipy.special import ndtri

from calibrant import Bernoulli, Categorical, MultivariateNormal, Normal
from calibrant.monitoring.history import CUTS, LEVELS, EventTally, PITTally, tally_of
from calibrant.monitoring.monitor import bets_on


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sums(y, predictions):
    tally = tally_of(bets_on(predictions, 0))
    return tally, tally.sums(y, predictions, 0)


def test_events_by_part_of_their_claim(rng):
    p = rng.random(500)
    y = (rng.random(500) < p) * 1
    tally, found = sums(y, Categorical(p))
    parts = tally.by_part(found)
    part = np.searchsorted(CUTS, p)
    for i in range(len(CUTS) + 1):
        here = part == i
        expected = [here.sum(), p[here].sum(), y[here].sum(), (p * (1 - p))[here].sum()]
        assert [x[0, i] for x in parts[:4]] == pytest.approx(expected)
        assert parts.skew[0, i] == pytest.approx((p * (1 - p) * (1 - 2 * p))[here].sum())
    assert parts.over(-1).gap[0] == pytest.approx(p.sum() - y.sum())
    assert len(found) == tally.size


def test_classes_have_sums_of_their_own_beside_the_favoured_one(rng):
    p = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    tally, found = sums(y, Categorical(p, ["a", "b", "c"]))
    assert isinstance(tally, EventTally)
    assert tally.classes == ("a", "b", "c")
    assert tally.by_part(found).over(-1).predicted[0] == pytest.approx(p.max(axis=1).sum())
    assert tally.by_part(found).over(-1).observed[0] == (p.argmax(axis=1) == y).sum()
    np.testing.assert_allclose(tally.by_class(found).predicted, p.sum(axis=0))
    np.testing.assert_allclose(tally.by_class(found).observed, np.bincount(y, minlength=3))


def test_every_label_by_itself(rng):
    p = rng.random((100, 2))
    y = (rng.random((100, 2)) < p) * 1
    tally, found = sums(y, Bernoulli(p, ["wet", "cold"]))
    assert tally.groups == ("wet", "cold")
    np.testing.assert_allclose(tally.by_part(found).over(-1).observed, y.sum(axis=0))


def test_levels_of_numbers_and_of_coordinates(rng):
    y = rng.normal(size=300)
    tally, found = sums(y, Normal(np.zeros(300), 1.0))
    assert isinstance(tally, PITTally)
    groups = tally.by_group(found)
    assert groups.scores[0] == pytest.approx(y.sum())
    assert groups.squares[0] == pytest.approx((y**2).sum())
    edges = ndtri(np.arange(1, LEVELS) / LEVELS)
    np.testing.assert_array_equal(groups.counts[0], np.bincount(np.searchsorted(edges, y), minlength=LEVELS))
    both = rng.normal(size=(50, 2))
    tally, found = sums(both, MultivariateNormal(np.zeros((50, 2)), 1.0))
    assert tally.groups == ("coordinate 0", "coordinate 1")
    np.testing.assert_allclose(tally.by_group(found).scores, both.sum(axis=0))
