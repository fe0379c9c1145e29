"""Squares without bias, and how far those of two models lie apart."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from calibrant import (
    Categorical,
    ClassWise,
    DebiasedECE,
    EqualMass,
    Normal,
    PairedDifference,
    Poisson,
    Quantiles,
    Sweep,
    TopLabel,
)
from calibrant.estimators import PIT, PITError
from calibrant.inference import squared_errors
from calibrant.inference.squared_errors import LEVELS, Square, is_square, roots_apart, squares_apart
from calibrant.results import Interval

BINNED = DebiasedECE(EqualMass(5))
ROUND = PITError("cramer-von-mises")


def binary(rng, n, slope):
    """Both see the true log-odds with noise of their own, and are as sure as the slope says."""
    z = rng.normal(0, 1.5, n)
    y = (rng.random(n) < expit(z)).astype(int)
    first, second = (expit(slope * (z + 0.5 * rng.standard_normal(n))) for _ in range(2))
    return [(y, Categorical(p), None) for p in (first, second)]


def forecasts(rng, n, slope):
    """Each knows one of two summands; at slope 1 it knows how little."""
    left, right = rng.standard_normal((2, n))
    y = left + right + rng.standard_normal(n)
    return [(y, Normal(x, np.sqrt(2) / slope), None) for x in (left, right)]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_square_of_pit_values_is_a_mean_over_pairs(weighted, rng):
    n = 40
    y, forecast = rng.normal(0.3, 1.2, n), Normal(np.zeros(n), 1.0)
    w = rng.exponential(size=n) if weighted else np.ones(n)
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    below = (PIT().of(y, forecast)[:, None] <= levels) - levels
    pairs = np.outer(w, w)
    np.fill_diagonal(pairs, 0)
    expected = float((pairs * (below @ below.T)).sum() / LEVELS / pairs.sum())
    found = Square.of(ROUND, (y, forecast, w if weighted else None))
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert float(found.root) == pytest.approx(np.sign(expected) * abs(expected) ** 0.5, rel=1e-9)


def test_levels_of_quantile_forecasts_are_those_given(rng):
    """They count by their widths, as in the distance itself, which many rows come near."""
    n = 20_000
    fan = Quantiles(np.tile([-1.0, 0.0, 1.0], (n, 1)), [0.1, 0.5, 0.9])
    y = rng.normal(0.4, 1, n)
    found = Square.of(ROUND, (y, fan, None))
    assert float(found.root) == pytest.approx(float(ROUND(y, fan)), rel=0.01)
    assert float(found.root) < float(ROUND(y, fan))
    assert len(found.parts[0].gaps) == 3


def test_pit_values_of_counts_are_random_within_their_range(rng):
    y = rng.poisson(2.0, 3_000)
    square = Square.of(ROUND, (y, Poisson(np.full(3_000, 2.0)), None))
    assert abs(square.value) < 0.001
    assert Square.of(ROUND, (y, Poisson(np.full(3_000, 3.0)), None)).value > 0.01


@pytest.mark.parametrize("draw", [binary, forecasts])
@pytest.mark.parametrize("slope", [1.0, 2.0])
def test_the_variance_of_the_difference(draw, slope):
    """Near calibration, where squares are no normal numbers, and far from it; never too small."""
    rng, error = np.random.default_rng(1), BINNED if draw is binary else ROUND
    limits = [squares_apart(*(Square.of(error, p) for p in draw(rng, 150, slope)), None) for _ in range(150)]
    spread = np.std([limit.mean for limit in limits])
    predicted = np.sqrt(np.mean([limit.squares for limit in limits]))
    assert 0.82 < predicted / spread < 1.6  # 4 times 1 / sqrt(300) below 1.05
    assert np.mean([limit.mean for limit in limits]) == pytest.approx(0, abs=4 * spread / 150**0.5)


@pytest.mark.parametrize(("draw", "error"), [(binary, BINNED), (forecasts, ROUND)])
def test_the_level_where_both_are_wrong(draw, error):
    rng, paired, told = np.random.default_rng(2), PairedDifference(error), 0
    for _ in range(80):
        (y, a, _), (_, b, _) = draw(rng, 200, 2.0)
        found = paired(y, a, b)
        told += found.pvalue <= 0.05
        assert (0 in found.interval) == (found.pvalue > 0.05)
    assert told <= binom.ppf(0.999, 80, 0.05)


def test_rows_are_taken_in_parts(monkeypatch, rng):
    (y, a, _), (_, b, _) = forecasts(rng, 100, 2.0)
    whole = PairedDifference(ROUND)(y, a, b)
    monkeypatch.setattr(squared_errors, "CHUNK", 7)
    parts = PairedDifference(ROUND)(y, a, b)
    assert parts.pvalue == pytest.approx(whole.pvalue, rel=1e-9)
    assert tuple(parts.interval) == pytest.approx(tuple(whole.interval), rel=1e-9)


def test_equal_weights_change_nothing(rng):
    for draw, error in ((binary, BINNED), (forecasts, ROUND)):
        (y, a, _), (_, b, _) = draw(rng, 120, 2.0)
        plain, heavy = (PairedDifference(error)(y, a, b, sample_weight=w) for w in (None, np.full(120, 3.0)))
        assert tuple(heavy.interval) == pytest.approx(tuple(plain.interval), rel=1e-9)


def test_a_model_does_not_differ_from_itself(rng):
    for draw, error in ((binary, BINNED), (forecasts, ROUND)):
        (y, a, _), _ = draw(rng, 60, 2.0)
        found = PairedDifference(error)(y, a, a)
        assert (found.value, found.pvalue) == (0, 1)
        assert 0 in found.interval


def test_the_better_model_is_found(rng):
    y = rng.normal(size=400)
    found = PairedDifference(ROUND)(y, Normal(np.zeros(400), 1.0), Normal(np.full(400, 0.3), 1.0))
    assert found.interval.high < 0
    assert found.pvalue < 0.001
    assert found.a.name == "debiased PITError"


def test_events_of_several_classes_are_added_up(rng):
    p = rng.dirichlet(np.ones(4), 500)
    y = (p.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    for lens in (TopLabel(), ClassWise()):
        found = PairedDifference(DebiasedECE(EqualMass(5), lens=lens))(y, p, p**3 / (p**3).sum(axis=1, keepdims=True))
        assert found.interval.high < 0


def test_largest_gaps_are_withheld(rng):
    y = rng.normal(size=100)
    models = Normal(np.zeros(100), 1.0), Normal(np.zeros(100), 2.0)
    for distance in ("kolmogorov", "kuiper"):
        found = PairedDifference(PITError(distance), 39)(y, *models)
        assert (found.pvalue, tuple(found.interval)) == (1.0, (-np.inf, np.inf))
        assert "by PITError('cramer-von-mises'), whose square has no such bias" in found.withheld
    assert PairedDifference(ROUND)(y, *models).withheld is None


def test_which_errors_are_squares():
    assert is_square(BINNED)
    assert is_square(ROUND)
    for other in (DebiasedECE(norm=1), DebiasedECE(Sweep()), DebiasedECE(method="variance"), PITError()):
        assert not is_square(other)


def test_roots_apart_leave_out_zero_where_squares_do():
    ends = Interval(0.1, 0.3, 0.999, ""), Interval(0.0, 0.2, 0.999, "")
    assert roots_apart(Interval(0.01, 0.05, 0.95, ""), *ends).low > 0
    assert roots_apart(Interval(-0.05, -0.01, 0.95, ""), *ends).high < 0
    assert 0 in roots_apart(Interval(-0.01, 0.05, 0.95, ""), *ends)


def test_a_shift_of_one_model_is_the_difference_of_squares():
    """Against a calibrated model the square of the shift, on average."""
    rng, found = np.random.default_rng(5), []
    for _ in range(60):
        q = rng.uniform(0.1, 0.8, 300)
        y = (rng.random(300) < q).astype(np.int64)
        limits = squares_apart(*(Square.of(DebiasedECE(), (y, Categorical(p), None)) for p in (q + 0.15, q)), None)
        found.append(limits.mean)
    assert np.mean(found) == pytest.approx(0.15**2, abs=4 * np.std(found) / 60**0.5)


class Noise:
    """Of its own: with no other has it anything in common."""

    def __init__(self, along):
        self.along = np.asarray(along)

    def covariance(self, other):
        return np.diag([0.1, 0.2]) * (other is self)

    def along_gaps(self):
        return self.along


@pytest.mark.parametrize("far", [0.0, 0.01, 1.0])
def test_both_parts_of_the_variance(far):
    """``2 tr SCSC`` and what the gaps add beyond ``4 tr SCSC``, which is never less than nothing."""
    along = far * np.array([1.0, -2, 3])
    a, b = (Square(value, [Noise(x)], None, None) for value, x in ((0.3, along), (0.1, 0 * along)))
    trace, gaps = 2 * (0.1**2 + 0.2**2), 4 * far**2 * 14
    found = squares_apart(a, b, None)
    assert found.squares == pytest.approx(2 * trace + max(gaps - 4 * trace, 0))
    assert (found.mean, found.lowest, found.highest) == pytest.approx((0.2, 0.2 - 12 * far, 0.2 + 18 * far))
