from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant import ECE, Brier, ClassWise, ExactTest, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.inference import Spiegelhalter
from calibrant.inference.classical import FIXED, IMPOSSIBLE, VARIANCE_NOTE


@pytest.mark.parametrize("weighted", [False, True])
def test_the_brier_score_less_its_mean_in_standard_deviations(weighted):
    """Mean and variance of the score added up over all 4,096 outcomes of twelve rows."""
    p = np.r_[np.linspace(0.22, 0.3, 6), np.linspace(0.68, 0.76, 6)]
    y = np.array([1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0])
    w = np.linspace(0.9, 1.1, 12) if weighted else np.ones(12)
    outcomes = np.array(list(product([0, 1], repeat=12)))
    chances = np.where(outcomes, p, 1 - p).prod(axis=1)
    scores = (outcomes - p) ** 2 @ w / w.sum()
    mean = chances @ scores
    deviation = np.sqrt(chances @ (scores - mean) ** 2)
    expected = (Brier()(y, p, sample_weight=w).value - mean) / deviation
    result = Spiegelhalter()(y, p, sample_weight=w)
    assert result.statistic == pytest.approx(expected, rel=1e-10)
    assert result.pvalue == pytest.approx(2 * norm.sf(abs(expected)), rel=1e-10)
    assert result.notes[0].startswith("few events decide the p-value")
    assert result.notes[1] == VARIANCE_NOTE


@pytest.mark.parametrize("lens", [None, PositiveClass(1)])
def test_it_is_refused_where_calibrated_predictions_would_be_rejected_too_often(lens, bounds):
    """One event in a thousand: the normal law rejects as soon as three happen, in 8 % of data sets."""
    p = np.full(1000, 0.001)
    rejected = binom.sf(2, 1000, 0.001)
    assert rejected > bounds(1000)[1] / 1000
    with pytest.raises(InputError, match="by y_pred 1 events decide it, and at least 2 must: use ExactTest") as refused:
        Spiegelhalter(lens)(np.zeros(1000, int), p)
    remedy = str(refused.value).split("use ")[1].split(", which")[0]
    test = eval(remedy, {"ExactTest": ExactTest, "Brier": Brier, "ECE": ECE, "PositiveClass": PositiveClass})
    assert test(np.zeros(1000, int), p, rng=0).pvalue > 0.05
    assert Spiegelhalter(lens)(np.zeros(1000, int), np.full(1000, 0.003)).pvalue > 0.05


@pytest.mark.parametrize("n", [100, 1000])
def test_the_level(n, rejections, bounds):
    low, high = bounds(1000)
    assert low <= rejections(Spiegelhalter(), "binary", n, 1000) <= high


def test_it_finds_extreme_and_timid_scores(rng):
    p = rng.random(500)
    extreme = Spiegelhalter()((rng.random(500) < 0.3 + 0.4 * p).astype(int), p)
    timid = Spiegelhalter()((rng.random(500) < (p > 0.5)).astype(int), p)
    assert extreme.pvalue < 1e-6
    assert timid.pvalue < 1e-6
    assert extreme.statistic > 0 > timid.statistic


def test_it_misleads_where_errors_balance_and_the_exact_test_does_not(bounds):
    """All scores too low by 0.1, evenly around 1/2: the Brier score is what was promised, so 5 % are rejected."""
    rng, sets, n = np.random.default_rng(2), 300, 500
    theirs = exact = 0
    for repetition in range(sets):
        p = rng.uniform(0.2, 0.8, n)
        y = (rng.random(n) < p + 0.1).astype(int)
        theirs += Spiegelhalter()(y, p).pvalue <= 0.05
        exact += ExactTest(ECE(), 99)(y, p, rng=repetition).pvalue <= 0.05
    low, high = bounds(sets)
    assert low <= theirs <= high
    assert exact >= bounds(sets, 0.9)[0]


def test_it_is_blind_at_one_half():
    y = np.r_[np.ones(90, int), np.zeros(10, int)]
    result = Spiegelhalter()(y, np.full(100, 0.5))
    assert (result.statistic, result.pvalue, result.notes) == (0, 1, (FIXED,))
    assert ExactTest(ECE())(y, np.full(100, 0.5)).pvalue == 0.001


class TestEdges:
    def test_certain_and_right_proves_nothing(self):
        result = Spiegelhalter()([0, 1], [0.0, 1.0])
        assert (result.statistic, result.pvalue, result.notes) == (0, 1, (FIXED,))

    def test_the_impossible_is_rejected(self):
        for y in ([1, 1], [0, 0]):
            result = Spiegelhalter()(y, [0.0, 1.0])
            assert (result.statistic, result.pvalue, result.notes) == (np.inf, 0, (IMPOSSIBLE,))

    def test_a_few_equal_rows(self):
        result = Spiegelhalter()([1] * 20, [0.2] * 20)
        assert result.statistic == pytest.approx(20**0.5 * 0.8 * 0.6 / (0.6 * 0.4), rel=1e-12)

    def test_rows_without_weight_do_not_count(self, rng):
        p, y = rng.random(80), rng.integers(0, 2, 80)
        w = np.r_[np.ones(50), np.zeros(30)]
        assert Spiegelhalter()(y, p, sample_weight=w).statistic == Spiegelhalter()(y[:50], p[:50]).statistic

    def test_the_scale_of_weights_does_not_matter(self, rng):
        p, y, w = rng.random(90), rng.integers(0, 2, 90), rng.random(90)
        one, other = (Spiegelhalter()(y, p, sample_weight=c * w).statistic for c in (1, 1e9))
        assert one == pytest.approx(other, rel=1e-12)


def test_lenses(rng):
    p = rng.dirichlet(np.ones(3), 90)
    y = rng.integers(0, 3, 90)
    top = Spiegelhalter(TopLabel())(y, p)
    assert top.estimate.lens == "top-label"
    assert top.estimate.value == pytest.approx(Brier()(*TopLabel()(y, p)).value, rel=1e-14)
    one = Spiegelhalter(PositiveClass(1))(y, p)
    assert one.statistic == pytest.approx(Spiegelhalter()((y == 1).astype(int), p[:, 1]).statistic, rel=1e-12)
    with pytest.raises(InputError, match=r"Spiegelhalter tests one event and ClassWise\(\) has 3"):
        Spiegelhalter(ClassWise())(y, p)
    with pytest.raises(InputError, match="lens must be a lens"):
        Spiegelhalter("top")


def test_columns_and_tensors(convert, rng):
    p = rng.dirichlet(np.ones(3), 90).astype(np.float32).astype(np.float64)
    y = rng.integers(0, 3, 90)
    test = Spiegelhalter(TopLabel())
    assert test(convert(y), convert(p)).statistic == pytest.approx(test(y, p).statistic, rel=1e-4)
