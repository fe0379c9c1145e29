import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, ClassWise, ExactTest, TopLabel
from calibrant.estimators import TailScan
from calibrant.estimators.binned.tail_scan import MIN_VARIANCE, tails


def by_definition(y, f, w, thresholds):
    """The largest score over upper and lower tails, one threshold at a time."""
    w = np.ones(len(f)) if w is None else w
    unit, found = (w**2).sum() / np.count_nonzero(w), []
    for t in thresholds:
        for inside in (f <= t, f > t):
            gap, variance = (w * (f - y))[inside].sum(), (w**2 * f * (1 - f))[inside].sum()
            found.append(abs(gap) / np.sqrt(variance + unit))
    return max(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_from_the_definition(weighted, rng):
    f = rng.beta(0.3, 3, 500).round(2)  # ties
    f = np.clip(f, 0.001, 0.999)
    y, w = (rng.random(500) < f) * 1, rng.random(500) if weighted else None
    scan = TailScan()(y, f, sample_weight=w)
    thresholds = np.unique(scan.table["threshold"])
    assert scan.value == pytest.approx(by_definition(y, f, w, thresholds), rel=1e-12)


def test_tails_halve_the_variance(rng):
    """From both ends: a half, a quarter, an eighth and so on, as nearly as rows allow."""
    f = rng.random(20_000)
    scan = TailScan()((rng.random(20_000) < f) * 1, f)
    for is_upper in (True, False):
        shares = []
        for t in np.unique(scan.table["threshold"]):
            inside = f > t if is_upper else f <= t
            shares.append((f * (1 - f))[inside].sum() / (f * (1 - f)).sum())
        for k in range(1, 10):
            assert min(abs(np.array(shares) - 0.5**k)) < 1e-4


def test_equal_scores_stay_together():
    edges = tails(np.full(100, 0.3), np.full(100, 0.21), 1.0).edges
    assert edges.tolist() == [0.0, 1.0]


def test_the_table_shows_every_tail_once(rng):
    f = rng.random(100)
    y = (rng.random(100) < f) * 1
    table = TailScan()(y, f).table
    assert len(set(zip(table["side"].tolist(), table["threshold"].tolist(), strict=True))) == len(table["side"])
    for side, t, weight, predicted, observed in zip(*(table[k] for k in list(table)[:5]), strict=True):
        inside = f > t if side == "above" else f <= t
        assert (weight, observed) == (inside.sum(), y[inside].sum())
        assert predicted == pytest.approx(f[inside].sum(), rel=1e-12)


def test_several_events_count_by_the_largest(rng):
    p = rng.dirichlet([0.3, 1, 2], 200)
    y = Categorical(p).sample(rng, 1)[0]
    each = [TailScan()((y == k) * 1, p[:, k]).value for k in range(3)]
    scan = TailScan(ClassWise())(y, p)
    assert scan.value == pytest.approx(max(each), rel=1e-12)
    labels = TailScan()((y[:, None] == np.arange(3)) * 1, Bernoulli(p))
    assert labels.value == pytest.approx(max(each), rel=1e-12)
    for table in (scan.table, labels.table):
        largest = [np.abs(table["score"][table["event"] == name]).max() for name in dict.fromkeys(table["event"])]
        assert largest == pytest.approx(each, rel=1e-12)


def test_impossible_events_are_infinite():
    f = np.r_[np.linspace(0.05, 0.95, 50), np.zeros(20), np.ones(20)]
    y = np.r_[np.arange(50) % 2, np.zeros(20, int), np.ones(20, int)]
    assert np.isfinite(TailScan()(y, f).value)
    for row in (55, 75):
        wrong = y.copy()
        wrong[row] = 1 - wrong[row]
        assert TailScan()(wrong, f).value == np.inf
        assert ExactTest(TailScan(), 99)(wrong, f).pvalue == 0.01


@pytest.mark.parametrize(
    ("y", "f", "value"), [([1], [0.5], 0.5 / 1.25**0.5), ([0, 1], [0.0, 1.0], 0.0), ([0], [0.0], 0.0)]
)
def test_few_and_certain_rows(y, f, value):
    assert TailScan()(y, f).value == pytest.approx(value)


def test_rows_without_weight_do_not_count(rng):
    f = rng.random(60)
    y, w = (rng.random(60) < f) * 1, np.r_[np.full(40, 3.0), np.zeros(20)]
    assert TailScan()(y, f, sample_weight=w).value == pytest.approx(TailScan()(y[:40], f[:40]).value, rel=1e-12)


def test_a_wrong_top_is_seen_where_errors_over_all_rows_are_blind():
    """Of 10,000 rows with 2 % events the 14 highest claims are wrong."""
    from calibrant import ECE, EqualMass
    from calibrant.lab import RareTop

    y, predictions = RareTop(1.0).draw(10_000, np.random.default_rng(0))
    assert ExactTest(TailScan(), 199)(y, predictions).pvalue <= 0.05
    assert ExactTest(ECE(EqualMass(15)), 199)(y, predictions).pvalue > 0.2


def test_lenses(rng):
    p = rng.dirichlet(np.ones(3), 50)
    assert TailScan(TopLabel())(rng.integers(0, 3, 50), p).lens == "top-label"


@pytest.mark.parametrize("n", [40, 63, 64, 127, 200])
def test_no_tail_has_less_variance_than_is_worth_a_look(n):
    """Rows that count alike: thresholds are where a half, a quarter and so on are reached, down to that and no further."""
    scores = (np.arange(n) + 1) / (n + 2)
    steps = max(k for k in range(20) if k == 0 or n * 0.25 / 2**k >= MIN_VARIANCE)
    goals = [n * 0.25 / 2**k for k in range(1, steps + 1)]
    lower = {next(t for t in scores if 0.25 * (scores <= t).sum() >= goal) for goal in goals}
    upper = {max(t for t in scores if 0.25 * (scores > t).sum() >= goal) for goal in goals}
    assert tails(scores, np.full(n, 0.25), 1.0).edges[1:-1].tolist() == sorted(lower | upper)
