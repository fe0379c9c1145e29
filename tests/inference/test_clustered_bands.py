"""Bands, intervals of shares and standard errors of rows that belong together."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Brier, InputError, Normal, Variational, coverage
from calibrant._clusters import Clusters
from calibrant.estimators import CalibrationSlope, Lp
from calibrant.inference import Jackknife, LocalErrors, PITCurve, PITHistogram, Witness
from calibrant.inference.pit_bands import band_of_signs
from calibrant.recalibration import Platt
from calibrant.recalibration.base import folds_of_rows


def series(rng, count, rows=5, r=0.9):
    """Outcomes of calibrated forecasts; those of a cluster are alike."""
    cluster = np.repeat(np.arange(count), rows)
    return np.sqrt(r) * rng.normal(size=count)[cluster] + np.sqrt(1 - r) * rng.normal(size=count * rows), cluster


def leaves(table):
    return bool(((table["observed"] < table["low"] - 1e-9) | (table["observed"] > table["high"] + 1e-9)).any())


@pytest.mark.parametrize("measure", [PITHistogram(10), PITCurve(50)])
def test_a_calibrated_forecast_stays_within_the_band(measure):
    rng, n_sets = np.random.default_rng(0), 150
    left = alone = 0
    for _ in range(n_sets):
        y, cluster = series(rng, 40)
        forecast = Normal(np.zeros(200), 1.0)
        left += leaves(measure(y, forecast, clusters=cluster))
        alone += leaves(measure(y, forecast))
    assert left <= binom.ppf(0.999, n_sets, 0.05)
    assert alone > 0.3 * n_sets  # as independent rows


def test_intervals_of_coverage_hold():
    rng, n_sets = np.random.default_rng(1), 150
    missed = np.zeros((2, 2))
    for _ in range(n_sets):
        y, cluster = series(rng, 40)
        for i, more in enumerate(({"clusters": cluster}, {})):
            table = coverage(y, Normal(np.zeros(200), 1.0), levels=(0.5, 0.9), **more)
            missed[i] += (table["low"] > table["expected"]) | (table["expected"] > table["high"])
    assert (missed[0] <= binom.ppf(0.999, n_sets, 0.05)).all()
    assert (missed[1] > 0.15 * n_sets).all()


def test_coverage_of_groups_counts_the_clusters_in_each(rng):
    y, cluster = series(rng, 30)
    by = np.arange(150) % 2
    table = coverage(y, Normal(np.zeros(150), 1.0), levels=(0.5,), by=by, clusters=cluster)
    whole = coverage(y, Normal(np.zeros(150), 1.0), levels=(0.5,), clusters=cluster)
    assert table["observed"].mean() == pytest.approx(whole["observed"][0])
    assert ((table["high"] - table["low"]) > (whole["high"] - whole["low"])).all()


def test_a_band_of_signs_is_the_quantile_of_the_largest_gap(rng):
    gaps, clusters = rng.normal(size=(40, 3)) / 40, Clusters(np.arange(40) // 2, 20)
    low, high = band_of_signs(gaps, np.full(3, 0.5), 1.0, clusters, 0.95, 7)
    signs = 2.0 * np.random.default_rng(7).integers(0, 2, (999, 20)) - 1
    largest = np.sort(np.abs(signs @ gaps.reshape(20, 2, 3).sum(axis=1)).max(axis=1))
    assert high - 0.5 == pytest.approx(largest[949])  # 50 of 1,000 are as large: it, and those beyond
    assert 0.5 - low == pytest.approx(high - 0.5)


@pytest.mark.parametrize("measure", [PITHistogram(), PITCurve(), coverage])
def test_few_clusters_are_refused(rng, measure):
    y, cluster = series(rng, 11)
    with pytest.raises(InputError, match=r"clusters has 11 different labels, and \w+ needs at least 12"):
        measure(y, Normal(np.zeros(55), 1.0), clusters=cluster)


@pytest.mark.parametrize("measure", [PITHistogram(), PITCurve(), coverage])
def test_rows_that_are_clusters_of_their_own_are_independent(rng, measure):
    y, _ = series(rng, 11)
    forecast = Normal(np.zeros(55), 1.0)
    alone, same = measure(y, forecast), measure(y, forecast, clusters=np.arange(55))
    assert all(np.array_equal(alone[name], same[name]) for name in alone)


@pytest.mark.parametrize("measure", [Witness(), LocalErrors()])
def test_what_has_no_band_for_clusters_says_what_has(measure):
    with pytest.raises(InputError, match=r"takes no clusters.*use ReliabilityCurve.*or PITHistogram of forecasts"):
        measure([0, 1, 1], [0.2, 0.6, 0.7], clusters=[0, 0, 1])


def scores(rng, count=60, rows=4):
    p = rng.uniform(0.05, 0.95, count * rows)
    fate = np.repeat(rng.random(count), rows)
    return (fate < p) * 1, p, np.repeat(np.arange(count), rows)


def test_the_jackknife_leaves_out_whole_clusters(rng):
    y, p, cluster = scores(rng)
    found = Jackknife(Brier())(y, p, clusters=cluster)
    losses = (p - y) ** 2
    without = [losses[cluster != c].mean() for c in range(60)]
    assert found.standard_error == pytest.approx(np.sqrt(59 * np.var(without)))
    assert not found.has_interval
    assert "Bootstrap" in found.withheld
    of_groups = Jackknife(CalibrationSlope(), groups=20)(y, p, clusters=cluster, rng=0)
    assert of_groups.standard_error > 0
    with pytest.raises(InputError, match="at most the number of clusters, 60; got 61"):
        Jackknife(Brier(), groups=61)(y, p, clusters=cluster)


def test_folds_of_clusters_are_whole_and_about_equal(rng):
    cluster = Clusters.of_codes(rng.integers(0, 40, 400))
    fold = folds_of_rows(400, 5, 3, cluster)
    assert all(len(set(fold[cluster.codes == c])) == 1 for c in range(40))
    assert np.ptp(np.bincount(fold)) <= cluster.sums().max()
    assert (fold != folds_of_rows(400, 5, 4, cluster)).any()
    with pytest.raises(InputError, match="folds must not exceed the number of clusters; got 5 folds of 3 clusters"):
        folds_of_rows(6, 5, 0, Clusters(np.arange(6) // 2, 3))


def test_variational_judges_rows_by_maps_that_have_not_seen_their_cluster(rng):
    y, p, cluster = scores(rng)
    found = Variational(Lp(1), Platt(), seed=2)(y, p, clusters=cluster)
    fold, total = folds_of_rows(240, 5, 2, Clusters(cluster, 60)), 0.0
    for k in range(5):
        learn, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        g = Platt().fit(y[learn], p[learn], folds=0)(p[rest])
        total += float((np.sign(g - p[rest]) * (y[rest] - p[rest])).sum())
    assert found.value == pytest.approx(total / 240)
    assert not found.has_interval
    assert found.standard_error is None
    assert "no limits are known" in found.withheld
