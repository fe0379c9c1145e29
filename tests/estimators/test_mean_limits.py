import numpy as np
import pytest
from scipy.special import chdtri, ndtri
from scipy.stats import binom, pearson3

from calibrant import CRPS, Brier, LogLoss, LogNormal, Normal, Poisson, StudentT
from calibrant._clusters import Clusters
from calibrant.estimators import IntervalScore, ZVariance
from calibrant.estimators.mean_limits import MeanLimits, skewed_quantile


def exact_limits(events):
    """Garwood's limits of the mean of a Poisson count."""
    low = chdtri(2 * events, 0.975) / 2 if events else 0.0
    return low, chdtri(2 * events + 2, 0.025) / 2


@pytest.mark.parametrize("events", [0, 1, 2, 5, 30])
def test_counts_of_rare_events_have_the_exact_interval(events):
    n = 10**6
    found = MeanLimits.of(np.repeat([1.0, 0.0], [events, n - events]), lowest=0.0, highest=1.0, least=0.0)(0.95)
    assert n * np.array(tuple(found)) == pytest.approx(exact_limits(events), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("skewness", [-2.5, -0.3, 1e-5, 0.01, 1.0, 4.0])
@pytest.mark.parametrize("chance", [0.005, 0.025, 0.5, 0.975])
def test_quantiles_are_scipys(skewness, chance):
    assert skewed_quantile(skewness, chance) == pytest.approx(pearson3.ppf(chance, skewness), rel=1e-6, abs=2e-5)


def test_many_values_have_the_normal_interval(rng):
    values = rng.normal(3.0, 2.0, 100_000)
    low, high = MeanLimits.of(values)(0.9)
    half = ndtri(0.95) * values.std() / len(values) ** 0.5
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02 * half)


def test_mirrored_values_have_mirrored_limits(rng):
    x = rng.exponential(1.0, 80)
    low, high = MeanLimits.of(x)(0.95)
    assert tuple(MeanLimits.of(-x)(0.95)) == pytest.approx((-high, -low), rel=1e-12)


def test_weights_are_importance_and_rows_without_weight_do_not_count(rng):
    x, w = rng.exponential(1.0, 60), rng.random(60)
    scaled, padded = MeanLimits.of(x, 7 * w)(0.95), MeanLimits.of(np.r_[x, x[:9]], np.r_[w, np.zeros(9)])(0.95)
    assert tuple(scaled) == pytest.approx(tuple(MeanLimits.of(x, w)(0.95)), rel=1e-12)
    assert tuple(padded) == pytest.approx(tuple(scaled), rel=1e-12)


@pytest.mark.parametrize(("rate", "n"), [(0.001, 100), (0.005, 2000), (0.5, 50)])
@pytest.mark.parametrize("score", [Brier(), LogLoss()], ids=repr)
def test_scores_of_rare_events_are_covered(rate, n, score, rng):
    """Normal intervals covered 22 %, 92 % and 93 % of 2,000 Brier scores."""
    a, b = 2 * rate, 2 * (1 - rate)
    many = rng.beta(a, b, 400_000).clip(1e-9, 1 - 1e-9)
    losses = many * (1 - many) if isinstance(score, Brier) else -many * np.log(many) - (1 - many) * np.log1p(-many)
    covered = 0
    for _ in range(200):
        p = rng.beta(a, b, n).clip(1e-9, 1 - 1e-9)
        covered += losses.mean() in score((rng.random(n) < p).astype(int), p).confidence_interval()
    assert covered >= binom.ppf(0.001, 200, 0.95)


def test_the_ranked_probability_score_is_covered(rng):
    """Normal intervals covered 92.8 % at n = 100; 400 sets cannot show that, so 50 rows it is: 91 %."""
    truth = np.pi**-0.5
    covered = 0
    for _ in range(400):
        spread = np.exp(0.7 * rng.standard_normal(50))
        found = CRPS()(spread * rng.standard_normal(50), Normal(np.zeros(50), spread))
        covered += truth * np.exp(0.7**2 / 2) in found.confidence_interval()
    assert covered >= binom.ppf(0.001, 400, 0.95)


def test_few_losses_of_numbers_have_no_interval():
    found = CRPS()(np.zeros(49), Normal(np.linspace(-1, 1, 49), 1.0))
    assert found.standard_error > 0
    assert found.withheld == "49 rows do not show how far losses go; 50 or more have an interval"
    assert CRPS()(np.zeros(50), Normal(np.linspace(-1, 1, 50), 1.0)).has_interval


def test_counts_that_were_not_seen_are_allowed_for():
    """None of 60 counts of rate 0.02 is above 0: the upper limit reckons with one."""
    found = CRPS()(np.zeros(60), Poisson(np.full(60, 0.02)))
    assert found.confidence_interval().high > 1.5 / 60


@pytest.mark.parametrize(
    ("score", "family", "truth"),
    [
        (IntervalScore(0.9), "log-normal", 5.284060),
        (IntervalScore(0.99), "log-normal", 10.331918),
        (ZVariance(), "log-normal", 1.0),
        (ZVariance(), "student", 1.0),
    ],
)
def test_large_losses_that_were_not_seen_are_those_of_the_forecast(score, family, truth, rng):
    """By the largest loss that was seen, 87, 36, 86 and 84 % of intervals of 100 rows held the truth."""
    if family == "log-normal":
        batch = LogNormal(np.zeros(100), np.full(100, 0.8))
    else:
        batch = StudentT(df=np.full(100, 3.0), loc=np.zeros(100), scale=np.ones(100))
    covered = sum(truth in score(y, batch).confidence_interval() for y in batch.sample(rng, 400))
    assert covered >= binom.ppf(0.001, 400, 0.95)


def test_limits_are_found_when_they_are_asked_for(monkeypatch):
    """Resampling asks for values only, thousands of times."""
    batch = Normal(np.zeros(200), 1.0)
    found = CRPS()(np.zeros(200), batch)
    monkeypatch.setattr(Normal, "sample", lambda *_: pytest.fail("drawn"))
    CRPS()(np.zeros(200), batch)
    monkeypatch.undo()
    assert found.confidence_interval() == found.confidence_interval()


def test_limits_of_clusters_are_the_sandwich_of_sums(rng):
    """Of equal clusters it is the interval of their means, with as many degrees of freedom; without skewness Student's."""
    x, codes = rng.normal(size=200) + np.repeat(rng.normal(size=40), 5), np.repeat(np.arange(40), 5)
    found = MeanLimits.of_clusters(x, None, Clusters(codes, 40))
    means = MeanLimits.of(x.reshape(40, 5).mean(axis=1))
    assert found.n == means.n == 40
    assert (found.squares, found.cubes) == pytest.approx((means.squares, means.cubes))
    assert found.mean == pytest.approx(means.mean)


def test_single_rows_are_clusters_of_one(rng):
    x, w = rng.normal(size=50), rng.uniform(0.5, 2, 50)
    found, plain = MeanLimits.of_clusters(x, None, Clusters(np.arange(50), 50)), MeanLimits.of(x)
    assert found(0.95).low == pytest.approx(plain(0.95).low)
    assert found(0.95).high == pytest.approx(plain(0.95).high)
    weighted = MeanLimits.of_clusters(x, w, Clusters(np.arange(50), 50))
    assert weighted.mean == pytest.approx(np.average(x, weights=w))
    assert weighted.n == int(np.sum(w**2) ** 2 / np.sum(w**4))


def test_sums_of_large_clusters_are_made_good(rng):
    """One cluster of 30 rows and 20 of one: squares of sums about the mean are, corrected, those about the truth."""
    codes = np.r_[np.zeros(30, int), np.arange(1, 21)]
    clusters, share = Clusters(codes, 21), 1 / 50
    seen, true = [], []
    for _ in range(4000):
        x = rng.normal(size=50)
        limits = MeanLimits.of_clusters(x, None, clusters)
        seen.append(limits.squares * limits.n / (limits.n - 1))
        true.append((clusters.sums(share * x) ** 2).sum())
    assert 1 <= np.mean(seen) / np.mean(true) < 1.1  # rather too large: how alike rows are is never below zero


def test_what_was_not_seen_is_a_clump():
    """Four events that happened together: with one more cluster like that the upper limit is higher than with one row."""
    x, clusters = np.repeat([1.0, 0.0], [4, 396]), Clusters(np.arange(400) // 4, 100)
    rows, together = MeanLimits.of(x), MeanLimits.of_clusters(x, None, clusters)
    assert together.share == pytest.approx(4 * rows.share, rel=0.02)
    assert together(0.95).high > rows(0.95).high
    apart = MeanLimits.of_clusters(
        np.roll(x.reshape(4, 100), 0).ravel()[np.arange(400).reshape(4, 100).T.ravel()], None, clusters
    )
    assert apart.share == pytest.approx(rows.share, rel=0.1)
    whole = MeanLimits.of_clusters(np.tile([1.0, 0.0, 0.0, 0.0], 100), None, clusters, are_of_one_fate=True)
    assert whole.share == pytest.approx(4 / 400)
