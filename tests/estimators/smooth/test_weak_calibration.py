import numpy as np
import pytest
from scipy.stats import binom

from calibrant._validate import InputError
from calibrant.estimators import CalibrationRatio


def test_by_hand():
    """Residuals y - R f are 0.1, -0.3, -0.05, 0.55, -0.3: their squares sum to 0.495, 5/4 times over."""
    y, p = [1, 0, 1, 1, 0], [0.6, 0.2, 0.7, 0.3, 0.2]
    result = CalibrationRatio()(y, p)
    error = np.sqrt(1.25 * 0.495) / 3
    assert result.value == pytest.approx(1.5, rel=1e-14)
    assert result.standard_error == pytest.approx(1.5 * error, rel=1e-12)
    assert result.interval == result.confidence_interval()
    assert 0 <= result.interval.low < 1.5 < result.interval.high


def test_the_variance_of_calibrated_predictions(rng):
    """On average ``sum f (1 - f)``, as the observed count has given the predictions."""
    p = rng.random(50_000)
    y = (rng.random(50_000) < p).astype(int)
    result = CalibrationRatio()(y, p)
    assert (result.standard_error * p.sum()) ** 2 == pytest.approx(np.sum(p * (1 - p)), rel=0.02)


WORLDS = {
    "calibrated": (lambda f: f, 1.0),
    "half of the events unforeseen": (lambda f: np.minimum(1, 2 * f), None),
    "over-confident": (lambda f: 0.3 + 0.4 * f, 1.0),
    "rare": (lambda f: 0.2 * f, 0.2),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_cover_the_truth(world, weighted):
    """Nominal 95 % over 1,000 data sets of 200 rows, at 99.9 %; the truth is the ratio over all rows there could be."""
    rng, sets, inside = np.random.default_rng(6), 1000, 0
    chance = WORLDS[world][0]
    truth = WORLDS[world][1] or np.mean(chance((np.arange(100_000) + 0.5) / 100_000)) / 0.5
    for _ in range(sets):
        p = rng.random(200)
        y = (rng.random(200) < chance(p)).astype(int)
        w = rng.uniform(0.5, 2, 200) if weighted else None
        inside += truth in CalibrationRatio()(y, p, sample_weight=w).interval
    assert binom.ppf(0.0005, sets, 0.95) <= inside <= 0.985 * sets


@pytest.mark.parametrize(("rate", "n"), [(0.001, 1000), (0.999, 1000), (0.02, 20)])
def test_rare_and_common_events_are_covered(rate, n):
    """On the log scale 61 % of nearly certain events were covered, and nothing was said where nothing happened."""
    rng, inside = np.random.default_rng(7), 0
    for _ in range(300):
        p = rng.beta(50 * rate, 50 * (1 - rate), n)
        inside += 1.0 in CalibrationRatio()((rng.random(n) < p).astype(int), p).interval
    assert inside >= binom.ppf(0.0005, 300, 0.95)


def test_the_level_is_a_setting():
    y, p = [1, 0, 1, 1, 0], [0.6, 0.2, 0.7, 0.3, 0.2]
    narrow = CalibrationRatio(confidence_level=0.5)(y, p).interval
    wide = CalibrationRatio()(y, p).interval
    assert narrow.level == 0.5
    assert wide.low < narrow.low < 1.5 < narrow.high < wide.high
    with pytest.raises(InputError, match="confidence_level must lie strictly between 0 and 1; got 95"):
        CalibrationRatio(confidence_level=95)


def test_the_scale_of_weights_does_not_matter(rng):
    p, w = rng.random(60), rng.random(60)
    y = (rng.random(60) < p).astype(int)
    one, other = (CalibrationRatio()(y, p, sample_weight=c * w) for c in (1, 1e6))
    assert tuple(other.interval) == pytest.approx(tuple(one.interval), rel=1e-12)


class TestEdges:
    def test_nothing_expected(self):
        with pytest.raises(InputError, match=r"y_pred expects no event at all \(every score is 0\)"):
            CalibrationRatio()([0, 1], [0.0, 0.0])

    def test_nothing_happened(self):
        result = CalibrationRatio()([0, 0], [0.1, 0.4])
        assert (result.value, result.standard_error, result.interval.low) == (0, 0, 0)
        assert result.interval.high > 5

    @pytest.mark.parametrize(("y", "p"), [([1, 1], [0.7, 0.7]), ([0, 1, 1], [0.0, 1.0, 1.0])])
    def test_rows_that_agree_allow_for_others(self, y, p):
        result = CalibrationRatio()(y, p)
        assert result.value == pytest.approx(1 / max(p), rel=1e-14)
        assert result.interval.low < result.value <= result.interval.high

    def test_one_row_has_no_interval(self):
        result = CalibrationRatio()([1], [0.4])
        assert (result.value, result.standard_error, result.interval) == (2.5, None, None)
        assert result.notes == ("one row says nothing of others: there is no interval",)


def test_the_weight_of_an_event(rng):
    """One more event would weigh what events weigh on average by weight; any row, where nothing happened."""
    y, p, w = np.array([1, 0, 1, 0, 0]), rng.random(5), np.array([1.0, 5, 3, 2, 9])
    assert CalibrationRatio()(y, p, sample_weight=w).limits.share == pytest.approx((1 + 9) / (1 + 3) / (w @ p))
    nothing = CalibrationRatio()(np.zeros(5, int), p, sample_weight=w)
    assert nothing.limits.share == pytest.approx((w @ w) / w.sum() / (w @ p))
