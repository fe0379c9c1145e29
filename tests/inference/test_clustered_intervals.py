"""Intervals and bands with clusters: they hold where rows of a cluster are alike, or are withheld."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from calibrant import ECE, Bootstrap, Brier, EqualMass, InputError, LogLoss, Normal, PairedDifference, ReliabilityCurve
from calibrant._clusters import Clusters
from calibrant.estimators import CalibrationRatio, IsotonicCurve, ZVariance
from calibrant.inference import WithInterval, differences
from calibrant.inference.intervals import cluster_rows, rows_of_clusters
from calibrant.inference.proportions import clopper_pearson, consistent_shares


def patients(rng, count=50, visits=10, correlation=0.9, alike=False):
    """Calibrated chances at several visits of each patient."""
    clusters = np.repeat(np.arange(count), visits)
    p = rng.random(count)[clusters] if alike else rng.random(len(clusters))
    z = np.sqrt(correlation) * rng.normal(size=count)[clusters] + np.sqrt(1 - correlation) * rng.normal(size=len(p))
    return (ndtr(z) < p) * 1, p, clusters


def test_standard_errors_of_scores_are_those_of_clusters(rng):
    y, p, clusters = patients(rng)
    losses = ((y - p) ** 2).reshape(50, 10).mean(axis=1)
    found = Brier()(y, p, clusters=clusters)
    assert found.standard_error == pytest.approx(losses.std(ddof=1) / np.sqrt(50))
    assert found.value == Brier()(y, p).value


@pytest.mark.parametrize("n_sets", [150, pytest.param(1000, marks=pytest.mark.study)])
def test_intervals_hold(n_sets):
    """Mean scores of 1/6, and a ratio of 1, of 50 patients; of independent rows the intervals of the ratio hold in 55 %."""
    rng, misses = np.random.default_rng(0), np.zeros(4, dtype=int)
    for _ in range(n_sets):
        y, p, clusters = patients(rng, alike=True)
        ratio = Bootstrap(CalibrationRatio(), 99)(y, p, clusters=clusters)
        found = [
            1 / 6 in Brier()(y, p, clusters=clusters).confidence_interval(),
            1 / 6 in Bootstrap(Brier(), 99)(y, p, clusters=clusters).interval,
            ratio.withheld is not None or 1 in ratio.interval,
            1 in CalibrationRatio()(y, p).interval,
        ]
        misses += ~np.array(found)
    most = binom.ppf(0.9995, n_sets, 0.05)
    assert (misses[:3] <= most).all()
    assert misses[3] > 2 * most


def test_differences_of_models_hold():
    """Both models of the same patients; means of ``(y - p)^2 - (y - q)^2`` are known."""
    rng, misses = np.random.default_rng(1), 0
    for _ in range(150):
        y, p, clusters = patients(rng)
        q = 0.2 + 0.6 * p
        truth = -np.mean([(0.2 - 0.4 * u) ** 2 for u in (np.arange(1000) + 0.5) / 1000])
        found = PairedDifference(Brier())(y, p, q, clusters=clusters)
        misses += truth not in found.interval
        assert (found.pvalue <= 0.05) == (0 not in found.interval)
    assert misses <= binom.ppf(0.9995, 150, 0.05)


def test_errors_are_told_apart_by_clusters(rng):
    y, p, clusters = patients(rng, count=100)
    table = differences(Brier(), y, {"true": p, "vague": 0.5 + 0 * p}, clusters=clusters)
    alone = PairedDifference(Brier())(y, 0.5 + 0 * p, p, clusters=clusters)
    assert table["pvalue"][1] == alone.pvalue < 0.01
    ratio = PairedDifference(CalibrationRatio(), 99)(y, 0.8 * p, p, clusters=clusters)
    assert ratio.withheld is None
    assert ratio.interval.low > 0


def test_bands_hold():
    """Of ten bins, each band by itself, in at least 95 % less four standard errors of clusters of bins."""
    rng, held = np.random.default_rng(2), {"confidence": [], "consistency": []}
    for _ in range(60):
        y, p, clusters = patients(rng)
        for band, found in held.items():
            table = ReliabilityCurve(EqualMass(10), band=band)(y, p, clusters=clusters)
            inside = table["predicted" if band == "confidence" else "observed"]
            found.append(np.mean((table["low"] - 1e-9 <= inside) & (inside <= table["high"] + 1e-9)))
    for shares in held.values():
        assert np.mean(shares) >= 0.95 - 4 * np.std(shares) / np.sqrt(60)


def test_bands_of_clusters_of_one_fate_are_those_of_clusters(rng):
    """Ten rows of a cluster that are the same are worth one."""
    y, p, clusters = np.repeat(rng.integers(0, 2, 400), 10), np.full(4000, 0.5), np.repeat(np.arange(400), 10)
    found = ReliabilityCurve(EqualMass(1), band="confidence")(y, p, clusters=clusters)
    single = ReliabilityCurve(EqualMass(1), band="confidence")(y[::10], p[::10])
    assert found["high"] - found["low"] == pytest.approx(single["high"] - single["low"], rel=0.02)


def test_shares_that_go_with_a_prediction_are_those_whose_interval_holds_it(rng):
    p, rows = rng.uniform(0.02, 0.98, 20), rng.uniform(3, 200, 20)
    low, high = consistent_shares(p, rows, 0.025)
    inner = low > 1e-9
    assert clopper_pearson(low, rows, 0.025)[1][inner] == pytest.approx(p[inner])
    assert (clopper_pearson(low, rows, 0.025)[1] >= p - 1e-9).all()
    inner = high < 1 - 1e-9
    assert clopper_pearson(high, rows, 0.025)[0][inner] == pytest.approx(p[inner])


def test_whole_clusters_are_drawn(rng):
    clusters = Clusters.of_codes(np.repeat([3, 1, 2], [4, 2, 3]))
    rows = cluster_rows(rows_of_clusters(clusters), rng)
    counts = np.bincount(rows, minlength=9)
    for code in range(3):
        assert len(np.unique(counts[clusters.codes == code])) == 1


def test_errors_have_no_interval(rng):
    y, p, clusters = patients(rng)
    for error, words in (
        (ECE(), "scores such as Brier"),
        (CalibrationRatio(), r"Bootstrap\(\.\.\.\)"),
        (ZVariance(), "Bootstrap"),
    ):
        y_pred = Normal(p, 1.0) if isinstance(error, ZVariance) else p
        found = error(y, y_pred, clusters=clusters)
        assert found.standard_error is None
        with pytest.raises(ValueError, match=f"has no interval: rows of a cluster depend on each other.*{words}"):
            found.confidence_interval()
        assert found.value == error(y, y_pred).value
    assert Bootstrap(CalibrationRatio(), 99)(y, p, clusters=clusters).interval is not None
    assert Bootstrap(ZVariance(), 99)(y, Normal(p, 1.0), clusters=clusters).interval is not None


def test_an_interval_by_the_way_that_suits(rng):
    y, p, clusters = patients(rng)
    assert WithInterval(CalibrationRatio(), 99)(y, p, clusters=clusters).interval.method == "bootstrap"
    assert WithInterval(Brier(), 99)(y, p, clusters=clusters).interval is not None
    assert WithInterval(ECE())(y, p, clusters=clusters).interval is None


def test_too_few_clusters_are_withheld(rng):
    y, p, clusters = patients(rng, count=11)
    for found in (
        Brier()(y, p, clusters=clusters),
        Bootstrap(Brier(), 99)(y, p, clusters=clusters),
        Bootstrap(CalibrationRatio(), 99)(y, p, clusters=clusters),
        PairedDifference(LogLoss())(y, p, 0.5 + 0 * p, clusters=clusters),
    ):
        assert found.withheld == "11 clusters say too little of others; 12 or more have an interval"
    with pytest.raises(InputError, match="clusters has 11 different labels, and ReliabilityCurve needs at least 12"):
        ReliabilityCurve()(y, p, clusters=clusters)


def test_single_rows(rng):
    """Each row a cluster of its own: as without clusters."""
    y, p, _ = patients(rng)
    own = np.arange(500)
    assert Brier()(y, p, clusters=own).confidence_interval() == Brier()(y, p).confidence_interval()
    assert Bootstrap(Brier(), 99)(y, p, clusters=own).interval == Bootstrap(Brier(), 99)(y, p).interval
    assert PairedDifference(Brier())(y, p, p**2, clusters=own).pvalue == PairedDifference(Brier())(y, p, p**2).pvalue
    assert ReliabilityCurve()(y, p, clusters=own)["high"].tolist() == ReliabilityCurve()(y, p)["high"].tolist()


def test_what_does_not_go_together(rng):
    y, p, clusters = patients(rng)
    with pytest.raises(InputError, match=r"clusters go with bins.*leave out curve=IsotonicCurve"):
        ReliabilityCurve(curve=IsotonicCurve())(y, p, clusters=clusters)
    with pytest.raises(InputError, match="block=5 draws consecutive rows together: leave out block, or clusters"):
        Bootstrap(Brier(), block=5)(y, p, clusters=clusters)
