"""Risks against orders of ties and integrals."""

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import comb

from calibrant import ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import AURC, SelectiveAccuracy, risk_coverage
from calibrant.estimators.ranking import Answered


@pytest.fixture
def ties(rng):
    """Scores of which many are equal, outcomes and weights."""
    p = rng.random(80).round(1)
    return (rng.random(80) < p) * 1, p, rng.integers(0, 4, 80).astype(float)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_area_under_the_risk_is_its_integral(ties, is_weighted):
    y, p, w = ties
    w = w if is_weighted else None
    curve = Answered.of(p, y.astype(float), w)
    integral, error = quad(curve.risk, 1e-12, 1, points=curve.coverage[1:-1].tolist(), limit=200)
    assert AURC()(y, p, sample_weight=w).value == pytest.approx(integral, abs=error + 1e-9)


def test_ranks_tend_to_the_area(rng):
    """The mean of the risks of the first 1, ..., n rows; the difference is less than a logarithm over n."""
    p = rng.random(20_000)
    y = (rng.random(20_000) < p) * 1
    order = np.argsort(-p)
    ranks = np.mean(np.cumsum(1 - y[order]) / np.arange(1, 20_001))
    assert AURC()(y, p).value == pytest.approx(ranks, abs=np.log(20_000) / 20_000)


def test_ties_come_in_every_order():
    """All orders of four rows of one score: the mean number of wrong ones among the first k."""
    p, y = np.array([0.9, 0.5, 0.5, 0.5, 0.5, 0.1]), np.array([1, 1, 0, 0, 1, 0])
    for k in range(1, 7):
        orders = [[0, *order, 5] for order in permutations(range(1, 5))]
        accuracy = np.mean([y[order[:k]].mean() for order in orders])
        assert SelectiveAccuracy(k / 6)(y, p).value == pytest.approx(accuracy, rel=1e-12)


def test_a_share_within_ties_is_the_mean_of_draws_without_replacement():
    """Three of five rows of one score, of which two are right: hypergeometric."""
    p, y = np.full(5, 0.7), np.array([1, 1, 0, 0, 0])
    mean = sum(k / 3 * comb(2, k) * comb(3, 3 - k) / comb(5, 3) for k in range(3))
    assert SelectiveAccuracy(0.6)(y, p).value == pytest.approx(mean, rel=1e-12)


def test_curve_and_areas_agree(ties):
    y, p, w = ties
    table = risk_coverage(y, p, sample_weight=w)
    assert table["coverage"][-1] == pytest.approx(1)
    for row in table.rows():
        answered = (p >= row["threshold"]) & (w > 0)
        assert row["coverage"] == pytest.approx(w[answered].sum() / w.sum(), rel=1e-12)
        assert row["risk"] == pytest.approx(np.average(1 - y[answered], weights=w[answered]), abs=1e-12)
        assert row["claimed"] == pytest.approx(np.average(1 - p[answered], weights=w[answered]), rel=1e-12)
        accuracy = SelectiveAccuracy(min(row["coverage"], 1.0))(y, p, sample_weight=w).value
        assert accuracy == pytest.approx(1 - row["risk"], abs=1e-9)


def test_lenses(rng):
    p = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    confidence, is_right = p.max(axis=1), p.argmax(axis=1) == y
    assert AURC(TopLabel())(y, p).value == AURC()(is_right * 1, confidence).value
    with pytest.raises(InputError, match="AURC tests one event"):
        risk_coverage(y, p, lens=ClassWise())


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, np.nan])
def test_shares_that_are_none(coverage):
    with pytest.raises(InputError, match="coverage must be a share of the rows, above 0 and at most 1"):
        SelectiveAccuracy(coverage)
