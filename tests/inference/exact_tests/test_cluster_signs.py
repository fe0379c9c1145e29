"""Tests with clusters: exact where residuals are symmetric, right for many clusters, refused where they are too few."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from calibrant import (
    ECE,
    SKCE,
    AggregatedTest,
    Bernoulli,
    Categorical,
    EqualMass,
    EqualWidth,
    ExactTest,
    InputError,
    MultivariateNormal,
    Normal,
    Poisson,
    Quantiles,
)
from calibrant._clusters import Clusters
from calibrant.distributions import as_problem
from calibrant.estimators import TailScan
from calibrant.estimators.cluster_skewness import ClusterSkewness
from calibrant.inference import WildBootstrapTest, monte_carlo
from calibrant.inference.exact_tests.cluster_signs import _check_bins
from calibrant.kernels import Exponential
from calibrant.lenses import groups


def texts(rng, count=100, questions=5, correlation=0.5):
    """Calibrated answers to several questions about each text, all with the same confidence."""
    clusters = np.repeat(np.arange(count), questions)
    p = rng.random(count)[clusters]
    z = np.sqrt(correlation) * rng.normal(size=count)[clusters] + np.sqrt(1 - correlation) * rng.normal(size=len(p))
    return (ndtr(z) < p) * 1, p, clusters


def test_pvalue_against_all_signs(rng):
    """Twelve clusters have 4,096 sets of signs."""
    clusters, y, p = np.arange(60) % 12, rng.integers(0, 2, 60), rng.random(60)
    cell = np.minimum((p * 3).astype(int), 2)
    sums = np.zeros((12, 3))
    np.add.at(sums, (clusters, cell), y - p)
    weight = np.bincount(cell)
    values = np.sqrt(((np.array(list(product([-1, 1], repeat=12))) @ sums) ** 2 / weight).sum(axis=1))
    observed = np.sqrt((sums.sum(axis=0) ** 2 / weight).sum())
    result = ExactTest(ECE(EqualWidth(3), norm=2), 20_000)(y, p, clusters=clusters)
    low, high = binom.interval(0.999, 20_000, np.mean(values >= observed - 1e-12))
    assert result.statistic == pytest.approx(observed / np.sqrt(60))
    assert low <= 20_001 * result.pvalue - 1 <= high


@pytest.mark.parametrize("n_sets", [100, pytest.param(1000, marks=pytest.mark.study)])
def test_the_level_of_questions_about_a_text(n_sets):
    """Of 1,000 calibrated data sets the test of independent rows rejects 497, the tests with clusters 56 and 46; one is refused."""
    rng, counts = np.random.default_rng(0), np.zeros(3, dtype=int)
    ece, many = ExactTest(ECE(EqualMass(10)), 199), AggregatedTest(n_resamples=199)
    for _ in range(n_sets):
        y, p, clusters = texts(rng)
        try:
            found = ece(y, p, clusters=clusters).pvalue
        except InputError:  # bins of too few clusters
            found = 1.0
        counts += np.array([ece(y, p).pvalue, found, many(y, p, clusters=clusters).pvalue]) <= 0.05
    assert counts[0] > 0.4 * n_sets
    assert (counts[1:] <= binom.ppf(0.9995, n_sets, 0.05)).all()


def test_errors_are_found(rng):
    y, p, clusters = texts(rng, count=200)
    wrong = 0.3 + 0.4 * p
    for test in (
        ExactTest(ECE(EqualMass(10)), 199),
        AggregatedTest(n_resamples=199),
        WildBootstrapTest(n_resamples=199),
    ):
        assert test(y, wrong, clusters=clusters).pvalue == 1 / 200
        assert test(y, p, clusters=clusters).pvalue > 0.05


def test_more_surprises_than_predicted_are_found(rng):
    """Events of 5 % that happen in 40 % of rows: what makes residuals alike is the error of the model."""
    p, clusters = np.full(1_200, 0.05), np.arange(1_200) // 10
    assert AggregatedTest(n_resamples=199)((rng.random(1_200) < 0.4) * 1, p, clusters=clusters).pvalue == 1 / 200


def test_forecasts_of_numbers(rng):
    clusters = np.arange(200) % 40
    loc = rng.normal(size=200)
    y = loc + rng.normal(size=40)[clusters]
    for test in (AggregatedTest(n_resamples=199), WildBootstrapTest(n_resamples=199)):
        assert test(y, Normal(loc, 1.0), clusters=clusters).pvalue > 0.05
        assert test(y, Normal(loc, 3.0), clusters=clusters).pvalue == 1 / 200


def test_labels_have_squares_of_gaps(rng):
    p = rng.random((300, 3))
    result = AggregatedTest(n_resamples=99)((rng.random((300, 3)) < p) * 1, Bernoulli(p), clusters=np.arange(300) // 5)
    assert result.pvalue > 0.05
    assert result.notes[0].startswith("5 statistics")


def test_what_is_said(rng):
    y, p, clusters = texts(rng)
    for test in (ExactTest(SKCE(), 99), AggregatedTest(n_resamples=99)):
        result = test(y, p, clusters=clusters)
        assert (
            "signs of 100 clusters: exact where the residuals of a cluster are symmetric, else for many clusters"
            in result.notes
        )
        assert not result.has_band
        assert not result.estimate.has_interval
    assert (
        "pairs of rows of the same cluster are left out"
        in ExactTest(SKCE(), 99)(y, p, clusters=clusters).estimate.notes
    )


def test_stopping_early_and_workers(rng, monkeypatch):
    monkeypatch.setattr(monte_carlo, "CHUNK", 20_000)  # several chunks
    y, p, clusters = texts(rng)
    assert ExactTest(ECE(norm=2), 999, stop_after=5)(y, p, clusters=clusters).null_distribution.size < 999
    alone = AggregatedTest(n_resamples=199)(y, p, clusters=clusters, rng=3)
    with ThreadPoolExecutor(2) as pool:
        assert AggregatedTest(n_resamples=199)(y, p, clusters=clusters, rng=3, engine=pool).pvalue == alone.pvalue


def test_many_rows_take_random_features(rng, monkeypatch):
    monkeypatch.setattr("calibrant.estimators.kernel_errors.skce.MAX_ROWS", 400)
    y, p, clusters = texts(rng)
    result = ExactTest(SKCE(), 99)(y, p, clusters=clusters)
    assert result.notes[-1].startswith("all pairs of 500 rows in 100 clusters are many: RandomFeatureSKCE(")
    assert ExactTest(SKCE(), 99)(y, p**3, clusters=clusters).pvalue == 0.01


def test_skewness_of_independent_rows_and_of_rows_of_one_fate():
    """100 clusters of 4 rows, events of 1 %: 4 of 400 are expected; where the rows of a cluster share their fate, one."""
    p, clusters = np.full(400, 0.01), Clusters.of_codes(np.arange(400) // 4)
    y = np.zeros(400, int)
    y[:4] = 1
    together = ClusterSkewness.of(*as_problem(y, p), None, clusters)
    assert together.correlation == pytest.approx(1, abs=0.02)
    exact = 100 * 0.01 * 0.99 / 0.98**2
    assert together.surprises()[0][0] == pytest.approx(exact, rel=0.05)
    apart = ClusterSkewness.of(
        np.roll(y, 0)[np.arange(400).reshape(100, 4).T.ravel()], as_problem(y, p)[1], None, clusters
    )
    assert apart.correlation == 0
    assert apart.surprises()[0][0] == pytest.approx(4 * exact)
    assert apart.surprises()[1][0] == pytest.approx(400 * 0.01 * 0.99)


def test_where_nothing_happened_rows_may_share_their_fate():
    p, clusters = np.full(400, 0.01), Clusters.of_codes(np.arange(400) // 4)
    assert ClusterSkewness.of(
        np.zeros(400, int), as_problem(np.zeros(400, int), p)[1], None, clusters
    ).correlation == pytest.approx(1)


def test_equal_weights_change_nothing(rng):
    y, p, clusters = texts(rng)
    problem, known = as_problem(y, p**3), Clusters.of_codes(clusters)
    plain, doubled = (ClusterSkewness.of(*problem, w, known).surprises()[0][0] for w in (None, np.full(500, 2.0)))
    assert plain == pytest.approx(doubled)


def test_too_few_clusters_are_refused():
    y, p = np.tile([0, 1], 55), np.tile([0.4, 0.6], 55)
    for test in (ExactTest(ECE(norm=2), 19), AggregatedTest(n_resamples=19), WildBootstrapTest(n_resamples=19)):
        with pytest.raises(
            InputError, match=r"clusters has 11 different labels, and \w+ needs at least 12 .*more clusters"
        ):
            test(y, p, clusters=np.arange(110) % 11)
        assert test(y, p, clusters=np.arange(110) % 12).pvalue > 0


def test_rare_events_are_refused(rng):
    p = np.full(500, 0.02)
    y = np.repeat((np.arange(50) < 1) * 1, 10)
    with pytest.raises(
        InputError, match=r"no level with these clusters.*worth 1\.\d+ independent ones, and at least 20 are"
    ):
        AggregatedTest(n_resamples=19)(y, p, clusters=np.arange(500) // 10)
    many = np.full(6000, 0.02)
    result = AggregatedTest(n_resamples=19)((rng.random(6000) < many) * 1, many, clusters=np.arange(6000) // 4)
    assert not any(note.startswith("few rare events") for note in result.notes)


def test_bins_of_few_clusters_are_refused():
    """Fifteen bins of twenty clusters; the remedies work."""
    rng = np.random.default_rng(0)
    y, p, clusters = texts(rng, count=20, questions=10, correlation=0.9)
    with pytest.raises(InputError, match=r"bins with too few clusters.*use fewer bins, ECE\(\.\.\., norm=2\)"):
        ExactTest(ECE(EqualMass(15)), 19)(y, p, clusters=clusters)
    for remedy in (ECE(EqualMass(2)), ECE(EqualMass(15), norm=2)):
        assert ExactTest(remedy, 19)(y, p, clusters=clusters).pvalue > 0


def test_settings_that_do_not_go_together(rng):
    y, p, clusters = texts(rng)
    with pytest.raises(InputError, match="alternative must be 'greater' with clusters; got 'less'"):
        ExactTest(ECE(), alternative="less")(y, p, clusters=clusters)
    with pytest.raises(
        InputError, match="block=5 is short for clusters of consecutive rows: leave out block, or clusters"
    ):
        WildBootstrapTest(block=5)(y, p, clusters=clusters)
    with pytest.raises(InputError, match="clusters do not go with function"):
        ExactTest(lambda y, p: 0.0)(y, p, clusters=clusters)


def test_blocks_are_clusters_of_consecutive_rows(rng):
    y, p, clusters = texts(rng)
    test = WildBootstrapTest(SKCE(Exponential(0.3)), 199, block=5)
    assert test(y, p).pvalue == WildBootstrapTest(SKCE(Exponential(0.3)), 199)(y, p, clusters=clusters).pvalue
    assert test(y, p).statistic == float(SKCE(Exponential(0.3))(y, p, clusters=clusters))


def test_products_with_the_matrix_are_the_same(rng, monkeypatch):
    y, p, clusters = texts(rng)
    dense = WildBootstrapTest(SKCE(Exponential(0.3)), 99)(y, p, clusters=clusters)
    monkeypatch.setattr("calibrant.inference.kernel_tests.bootstrap_test.MAX_ROWS", 0)
    streamed = WildBootstrapTest(SKCE(Exponential(0.3)), 99)(y, p, clusters=clusters)
    assert streamed.null_distribution == pytest.approx(dense.null_distribution, rel=1e-6, abs=1e-12)
    assert streamed.pvalue == dense.pvalue


def test_clusters_within_groups(rng):
    y, p, clusters = texts(rng)
    half = np.repeat(["a", "b"], 250)
    table = groups(ExactTest(TailScan(), 99), y, p, by=half, clusters=clusters)
    assert table["pvalue"][0] == ExactTest(TailScan(), 99)(y[:250], p[:250], clusters=clusters[:250]).pvalue


def test_favoured_class_of_several(rng):
    probs = Categorical(rng.dirichlet(np.ones(4), 200))
    y = np.array([rng.choice(4, p=p) for p in np.asarray(probs.probs)])
    found = ClusterSkewness.of(y, probs, None, Clusters.of_codes(np.arange(200) // 2))
    top = np.asarray(probs.probs).max(axis=1)
    assert found.variance == pytest.approx(top * (1 - top))


@pytest.mark.parametrize("library", ["torch", "pandas", "polars"])
def test_any_library(library, rng):
    y, p, clusters = texts(rng)
    module = pytest.importorskip(library)
    make = module.from_numpy if library == "torch" else module.Series
    found = AggregatedTest(n_resamples=99)(make(y), make(p), clusters=make(clusters))
    assert found.pvalue == AggregatedTest(n_resamples=99)(y, p, clusters=clusters).pvalue


def test_forecasts_of_every_kind(rng):
    """Vectors, counts, quantiles, members: calibrated, and far off."""
    clusters = np.repeat(np.arange(40), 4)
    normal, counts = rng.normal(size=160), rng.poisson(3, 160)
    fan = np.tile([-1.2816, 0.0, 1.2816], (160, 1))
    cases = [
        (
            rng.normal(size=(160, 2)),
            MultivariateNormal(np.zeros((160, 2)), 1.0),
            MultivariateNormal(np.full((160, 2), 2.0), 1.0),
        ),
        (counts, Poisson(np.full(160, 3.0)), Poisson(np.full(160, 9.0))),
        (normal, Quantiles(fan, [0.1, 0.5, 0.9]), Quantiles(fan + 2, [0.1, 0.5, 0.9])),
    ]
    for y, right, wrong in cases:
        assert AggregatedTest(n_resamples=99)(y, right, clusters=clusters).pvalue > 0.02
        assert AggregatedTest(n_resamples=99)(y, wrong, clusters=clusters).pvalue == 0.01


def test_bins_are_refused_where_sums_of_sizes_move():
    """From the definition, for clusters of independent rows and one bin: ``.2 / surprises`` of a size against a quarter of .6."""
    rng, refused, expected = np.random.default_rng(0), [], []
    for n in range(2, 14):
        p, w = rng.uniform(0.1, 0.2, n), rng.uniform(0.5, 1.5, n)
        variance, third = w**2 * p * (1 - p), w**3 * p * (1 - p) * (1 - 2 * p)
        shift = min(1.0, 0.2 * third.sum() ** 2 / variance.sum() ** 3)
        expected.append(shift > 0.25 * 0.36**0.5)
        predictions, clusters = Categorical(p), Clusters.of_codes(np.arange(n))
        try:
            _check_bins("ExactTest", ECE(EqualWidth(1)), 0.0, predictions, w, clusters)
            refused.append(False)
        except InputError:
            refused.append(True)
    assert refused == expected
    assert 2 < sum(expected) < 8
