import time

import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.inference import RankTest
from calibrant.inference.exact_tests.rank_test import _statistic


def test_the_histogram_counts_ranks():
    """Above none, one, two and three of three members."""
    members = np.tile([1.0, 2.0, 3.0], (5, 1))
    result = RankTest(n_resamples=9)([0.0, 1.5, 2.5, 9.0, 8.0], Ensemble(members))
    assert result.estimate.table["observed"].tolist() == [0.2, 0.2, 0.2, 0.4]
    assert result.statistic == pytest.approx((3 * 0.25**2 + 0.75**2) / 1.25)


def test_contrasts_are_standard_and_do_not_share(rng):
    """Of uniform counts: mean 0, variance 1, no correlation; and together less than chi-square."""
    counts = rng.multinomial(200, np.full(6, 1 / 6), 20_000)
    slope, convexity = _statistic(counts, "slope"), _statistic(counts, "convexity")
    for z in (slope, convexity):
        assert abs(z.mean()) < 5 / np.sqrt(20_000)
        assert z.var() == pytest.approx(1, abs=5 * np.sqrt(2 / 20_000))
    assert abs(np.corrcoef(slope, convexity)[0, 1]) < 5 / np.sqrt(20_000)
    assert np.all(slope**2 + convexity**2 <= _statistic(counts, "any") + 1e-9)


@pytest.mark.parametrize("shape", ["any", "slope", "convexity"])
def test_the_level_is_exact_with_ties(shape):
    """Whole numbers, so that most ranks are tied: one in ten at 10 %, within binomial bounds of 400 data sets."""
    rng = np.random.default_rng(6)
    hits = 0
    for i in range(400):
        pool = rng.poisson(1.5, (25, 5)).astype(float)
        hits += RankTest(shape, n_resamples=19, seed=i)(pool[:, 0], Ensemble(pool[:, 1:]), rng=i).pvalue <= 0.1
    assert 0.05 < hits / 400 < 0.1 + 4 * np.sqrt(0.09 / 400)  # equal statistics count against rejection


def test_members_may_be_missing(rng):
    pool = rng.normal(size=(4_000, 9))
    members = np.where(np.arange(8) < rng.integers(3, 9, (4_000, 1)), pool[:, 1:], np.nan)
    result = RankTest()(pool[:, 0], members)
    assert result.estimate.table.n_rows == np.isfinite(members).sum(axis=1).min() + 1
    assert result.pvalue > 0.05
    assert RankTest(n_bins=10)(pool[:, 0], members).estimate.table.n_rows == 10
    assert RankTest()(2 * pool[:, 0], members).pvalue == 0.001
    whole = RankTest()(pool[:, 0], pool[:, 1:])
    assert whole.pvalue == RankTest()(pool[:, 0], Ensemble(pool[:, 1:])).pvalue


def test_shapes_have_their_signs(rng):
    y, members = rng.normal(size=400), Ensemble(rng.normal(size=(400, 9)))
    assert RankTest("slope")(y + 0.5, members).statistic > 3  # the ensemble is too low
    assert RankTest("slope")(y - 0.5, members).statistic < -3
    assert RankTest("convexity")(2 * y, members).statistic > 3  # too narrow
    assert RankTest("convexity")(y / 2, members).statistic < -3
    assert RankTest("slope")(y - 0.5, members).pvalue == 0.001
    assert RankTest("slope")(2 * y, members).pvalue > 0.01
    both = RankTest()(2 * y, members)
    assert both.pvalue == 0.001
    assert "slope" in both.notes[0]


def test_vectors_by_their_preranks(rng):
    batch = MultivariateNormal.example(rng, 300)
    y = batch.sample(rng, 1)[0]
    members = Ensemble(np.moveaxis(batch.sample(rng, 9), 0, 1))
    assert RankTest(prerank="band")(y, members).pvalue > 0.05
    assert RankTest(prerank="average", n_bins=10)(y, batch).pvalue > 0.05
    assert RankTest("slope", prerank="band")(batch.mean + 3 * (y - batch.mean), members).statistic < -3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RankTest("bump"), "shape must be 'any', 'slope' or 'convexity'; got 'bump'"),
        (lambda: RankTest(n_bins=1), "n_bins must be a whole number of at least 2"),
        (
            lambda: RankTest()([0.0], Normal([0.0], 1.0)),
            r"RankTest takes ensembles; got Normal predictions: use ExactTest\(",
        ),
        (
            lambda: RankTest()([0.0], np.zeros((1, 2, 2))),
            r"members \(n, m\) with NaN where one is missing; got shape \(1, 2, 2\)",
        ),
        (lambda: RankTest()([0.0], [[np.nan, np.nan]]), "y_pred must have at least one member per row"),
        (lambda: RankTest()([0.0], [[np.inf, 1.0]]), "none that is infinite"),
        (lambda: RankTest()([0.0, np.nan], [[1.0], [2.0]]), "y_true has NaN or infinite values"),
        (lambda: RankTest()([[0.0, 1.0]], [[1.0, 2.0]]), "y_true must be one number per row"),
        (lambda: RankTest()([0.0, 1.0], [[1.0, 2.0]]), "y_true has 2 rows and y_pred has 1"),
        (lambda: RankTest("convexity")([0.0], Ensemble([[1.0]])), "a convexity needs at least 3 bins; got 2"),
        (lambda: RankTest()([0.0], Ensemble([[1.0]]), sample_weight=[1.0]), "has no use for sample_weight"),
        (lambda: RankTest()([[0.0, 1.0]], Ensemble(np.zeros((1, 3, 2)))), "say how to order them"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_one_row_and_one_member():
    assert RankTest(n_resamples=19)([0.0], Ensemble([[1.0]])).pvalue == 1


def test_large_ensembles_in_about_a_second(rng):
    y, members = rng.normal(size=14_600), Ensemble(rng.normal(size=(14_600, 50)))
    start = time.perf_counter()
    assert RankTest()(y, members).pvalue > 0.01
    assert time.perf_counter() - start < 10  # a shared machine
