"""Areas and risks against sums over pairs, orders of ties and integrals, and scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import comb, ndtri

from calibrant import ClassWise, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import AURC, AUROC, SelectiveAccuracy, risk_coverage
from calibrant.estimators.ranking import Answered
from calibrant.plots import RiskCoverageDisplay


@pytest.fixture
def ties(rng):
    """Scores of which many are equal, outcomes and weights."""
    p = rng.random(80).round(1)
    return (rng.random(80) < p) * 1, p, rng.integers(0, 4, 80).astype(float)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_area_is_the_share_of_pairs_in_order(ties, is_weighted):
    y, p, w = ties
    pairs = np.outer(w, w) if is_weighted else np.ones((80, 80))
    is_pair = (y[:, None] == 1) & (y[None] == 0)
    won = (p[:, None] > p[None]) + (p[:, None] == p[None]) / 2
    value = AUROC()(y, p, sample_weight=w if is_weighted else None).value
    assert value == pytest.approx((pairs * won)[is_pair].sum() / pairs[is_pair].sum(), rel=1e-12)


def test_area_of_scikit_learn(ties):
    metrics = pytest.importorskip("sklearn.metrics")
    y, p, w = ties
    assert AUROC()(y, p).value == pytest.approx(metrics.roc_auc_score(y, p), rel=1e-12)
    weighted = AUROC()(y, p, sample_weight=w).value
    assert weighted == pytest.approx(metrics.roc_auc_score(y, p, sample_weight=w), rel=1e-12)


def test_delong_of_few_rows():
    """Of three and two rows by hand: shares beaten (1, 1/2, 1/2) and (1/3, 1)."""
    found = AUROC().of_event(np.array([0.9, 0.5, 0.5, 0.6, 0.1] * 10), np.array([1.0, 1, 1, 0, 0] * 10), None)
    won, lost = np.array([1, 0.5, 0.5] * 10), np.array([1 / 3, 1] * 10)
    assert found.value == pytest.approx(2 / 3)
    assert found.standard_error == pytest.approx(np.sqrt(won.var(ddof=1) / 30 + lost.var(ddof=1) / 20), rel=1e-12)


def test_intervals_of_the_area_hold(rng):
    """Normal scores, also of rare events and nearly perfect ranks: 600 sets a world, at least 95 % less a binomial bound."""
    for n, rate, area in ((60, 0.5, 0.8), (400, 0.1, 0.9), (200, 0.4, 0.98)):
        held = shown = 0
        for _ in range(600):
            y = (rng.random(n) < rate) * 1.0
            interval = AUROC().of_event(rng.normal(size=n) + np.sqrt(2) * ndtri(area) * y, y, None).limits
            shown += interval is not None
            held += interval is not None and area in interval(0.95)
        assert held / shown > 0.95 - 3.1 * np.sqrt(0.05 * 0.95 / shown)


def test_intervals_end_at_one(rng):
    y = np.repeat([0, 1], 30)
    interval = AUROC()(y, y * 0.5 + 0.25).confidence_interval()
    assert interval.high == 1
    assert 0.8 < interval.low < 0.96


def test_few_rows_or_weights_have_no_interval(ties):
    y, p, w = ties
    assert not AUROC()(y, p, sample_weight=w).has_interval
    assert not AUROC()(y[:30], p[:30]).has_interval


def test_one_outcome_has_no_pairs():
    found = AUROC()([1, 1], [0.2, 0.3])
    assert np.isnan(found.value)
    assert found.notes == ("only one outcome occurs: there is no pair to rank",)


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
    display = RiskCoverageDisplay.from_predictions(y, p, sample_weight=w)
    assert dict(display.tables["areas"].rows().__next__()) == {
        "area": "AURC",
        "value": AURC()(y, p, sample_weight=w).value,
    }


def test_lenses(rng):
    p = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    confidence, is_right = p.max(axis=1), p.argmax(axis=1) == y
    assert AURC(TopLabel())(y, p).value == AURC()(is_right * 1, confidence).value
    assert AUROC(PositiveClass(2))(y, p).value == AUROC()((y == 2) * 1, p[:, 2]).value
    with pytest.raises(InputError, match="AURC tests one event"):
        risk_coverage(y, p, lens=ClassWise())


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, np.nan])
def test_shares_that_are_none(coverage):
    with pytest.raises(InputError, match="coverage must be a share of the rows, above 0 and at most 1"):
        SelectiveAccuracy(coverage)


def test_long_curves_are_thinned(rng):
    p = rng.random(5000)
    display = RiskCoverageDisplay.from_predictions((rng.random(5000) < p) * 1, p)
    curve = display.tables["curve"]
    assert curve.n_rows == 400
    assert curve["coverage"][[0, -1]] == pytest.approx([1 / 5000, 1])
