from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, Categorical, EqualMass, EqualWidth, MultiLabel, PositiveClass, ReliabilityCurve
from calibrant.estimators import Curve, IsotonicCurve, KernelSmooth
from calibrant.estimators.smooth.fitted_curves import CurveRows, StepCurve
from calibrant.inference.proportions import clopper_pearson
from calibrant.inference.reliability_curve import (
    BinnedLine,
    CurveLine,
    Resampling,
    consistency,
    local_rows,
    monotone_band,
)

TRUTHS = {
    "calibrated": lambda f: f,
    "over-confident": lambda f: 0.3 + 0.4 * f,
    "flat": lambda f: np.full_like(f, 0.4),
    "steep": lambda f: f**3,
}
"""None of them decreases."""


@dataclass(frozen=True)
class Halves(Curve):
    """A curve of one's own: two bins."""

    def fit(self, scores, observed, weights=None):
        f, y, w = CurveRows.of(scores, observed, weights)
        high = f > 0.5
        means = [np.average(y[side], weights=w[side]) if side.any() else 0.5 for side in (~high, high)]
        return StepCurve(self, np.array([0.0, np.nextafter(0.5, 1)]), np.array(means))


def line_of(p, curve, weights=None):
    return CurveLine.of(PositiveClass().events(Categorical(p))[0], curve, weights)


class TestMonotoneBand:
    @pytest.mark.parametrize("truth", TRUTHS)
    @pytest.mark.parametrize("n", [20, 300])
    def test_it_holds_any_truth_that_does_not_decrease(self, truth, n, bounds):
        """Over 500 data sets, at nine places by themselves."""
        rng, sets = np.random.default_rng(2), 500
        places = np.linspace(0.02, 0.98, 9)
        inside = np.zeros(9)
        for _ in range(sets):
            p = np.append(rng.random(n - 9), places)
            rows = CurveRows.of(p, rng.random(n) < TRUTHS[truth](p), None)
            low, high = monotone_band(rows, places, 0.025)
            inside += (low <= TRUTHS[truth](places)) & (TRUTHS[truth](places) <= high)
        assert inside.min() >= bounds(sets, 0.95)[0]

    def test_a_flat_truth_is_not_held_too_often(self):
        """There the rows next to a place are as good as those at it: the band is as narrow as it can be."""
        rng, sets = np.random.default_rng(3), 1000
        inside = 0
        for _ in range(sets):
            p = rng.random(1000)
            low, high = monotone_band(CurveRows.of(p, rng.random(1000) < 0.4, None), p[:1], 0.025)
            inside += bool(low[0] <= 0.4 <= high[0])
        assert inside <= binom.ppf(0.9995, sets, 0.975)

    def test_ties_do_not_depend_on_order(self, rng):
        p, y, w = rng.random(60).round(1), rng.integers(0, 2, 60), rng.random(60)
        order = rng.permutation(60)
        places = np.unique(p)
        one = monotone_band(CurveRows.of(p, y, w), places, 0.025)
        other = monotone_band(CurveRows.of(p[order], y[order], w[order]), places, 0.025)
        assert np.array(other) == pytest.approx(np.array(one), abs=1e-12)

    def test_beyond_all_rows_nothing_is_known(self):
        rows = CurveRows.of(np.array([0.4, 0.6]), np.array([1, 0]), None)
        low, high = monotone_band(rows, np.array([0.1, 0.9]), 0.025)
        assert (low[0], high[1]) == (0, 1)
        assert np.all(low < high)

    def test_by_hand(self):
        """Eight rows, four on each side of a place."""
        rows = CurveRows.of(np.arange(8) / 10, np.array([0, 0, 1, 0, 1, 0, 1, 1]), None)
        low, high = monotone_band(rows, np.array([0.3]), 0.025)
        assert low[0] == clopper_pearson(np.array([0.25]), np.array([4]), 0.025)[0][0]
        assert high[0] == clopper_pearson(np.array([0.5]), np.array([4]), 0.025)[1][0]


class TestLocalRows:
    @pytest.mark.parametrize("bandwidth", [0.02, 0.2, 2.0])
    def test_against_the_sum_over_all_rows(self, bandwidth, rng):
        p, w = np.r_[rng.random(200), 0, 1], rng.random(202)
        places = np.array([0.0, 0.03, 0.5, 0.9, 1.0])
        shifts = 2 * np.arange(-10, 11)[:, None, None]
        apart, mirrored = places[:, None] - p + shifts, places[:, None] + p + shifts
        near = (np.exp(-(apart**2) / (2 * bandwidth**2)) + np.exp(-(mirrored**2) / (2 * bandwidth**2))).sum(axis=0)
        expected = (near @ w) ** 2 / (near**2 @ w**2)
        assert local_rows(CurveRows.of(p, p > 0.5, w), bandwidth, places) == pytest.approx(expected, rel=0.01)

    def test_one_row_is_one_row(self):
        assert local_rows(CurveRows.of(np.array([0.3]), np.array([1]), None), 0.1, np.array([0.3])) == pytest.approx(
            1, rel=1e-3
        )


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_smooth_band_holds_the_smoothed_truth(truth, weighted, bounds):
    """At every place by itself, over 400 data sets with fixed scores; the truth is smoothed as the data are."""
    rng, sets, n = np.random.default_rng(4), 400, 300
    p = np.sort(rng.random(n))
    w = rng.uniform(0.5, 2, n) if weighted else None
    line = line_of(p, KernelSmooth(0.08), w)
    target = KernelSmooth(0.08).fit(p, TRUTHS[truth](p), w)(line.places)
    inside = np.zeros(len(line.places))
    for _ in range(sets):
        low, high = line.confidence(rng.random(n) < TRUTHS[truth](p), Resampling(0.95, 1))
        inside += (low <= target) & (target <= high)
    assert inside.min() >= bounds(sets, 0.95)[0]
    assert inside.mean() <= 0.995 * sets


@pytest.mark.parametrize("weighted", [False, True])
def test_the_binned_band_holds_the_mean_truth_of_each_bin(weighted, bounds):
    rng, sets, n = np.random.default_rng(5), 600, 300
    p = rng.random(n)
    w = rng.uniform(0.5, 2, n) if weighted else None
    chance = 0.2 + 0.6 * p
    line = BinnedLine.of(PositiveClass().events(Categorical(p))[0], EqualMass(5), w)
    which = line.bins.index(p)
    weights = np.ones(n) if w is None else w
    target = np.bincount(which, weights * chance) / np.bincount(which, weights)
    inside = np.zeros(5)
    for _ in range(sets):
        low, high = line.confidence(rng.random(n) < chance, Resampling(0.95, 1))
        inside += (low <= target) & (target <= high)
    assert inside.min() >= bounds(sets, 0.95)[0]
    assert inside.mean() <= 0.99 * sets


@pytest.mark.parametrize("curve", [IsotonicCurve(), KernelSmooth(), Halves()], ids=repr)
def test_the_consistency_band_of_a_curve_holds_calibrated_models(curve, bounds):
    """At every place by itself: a new data set is exchangeable with 19 resamples, whatever the curve."""
    rng, sets, n = np.random.default_rng(6), 80, 40
    p = rng.random(n)
    predictions = Categorical(p)
    line = line_of(p, curve)
    inside = np.zeros(len(line.places))
    for repetition in range(sets):
        low, high = consistency((line,), predictions, n, Resampling(0.8, 19, repetition))
        observed = line.resampled((rng.random((1, n)) < p).astype(int))[0]
        inside += (low - 1e-9 <= observed) & (observed <= high + 1e-9)
    assert inside.min() >= bounds(sets, 0.8)[0]


def test_a_curve_of_ones_own_gets_a_bootstrap(rng):
    """Means of two halves: the bootstrap of their rows agrees with the normal interval."""
    p = rng.random(2000)
    y = (rng.random(2000) < 0.2 + 0.6 * p).astype(int)
    line = line_of(p, Halves())
    low, high = line.confidence(y, Resampling(0.95, 999))
    for side, at in ((p <= 0.5, 0), (p > 0.5, -1)):
        mean, half = y[side].mean(), 1.96 * y[side].std() / np.sqrt(side.sum())
        assert (low[at], high[at]) == pytest.approx((mean - half, mean + half), abs=0.15 * half)


def test_a_band_is_widened_to_hold_a_curve_that_contradicts_its_rows():
    """Outcomes that fall: the isotonic curve is 1/2 throughout, and the rows below each place say far more."""
    p = np.linspace(0, 1, 200)
    line = line_of(p, IsotonicCurve())
    low, high = line.confidence((p < 0.5).astype(int), Resampling(0.95, 1))
    assert np.all((low <= 0.5) & (high >= 0.5))


def test_engines_change_no_digit(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    binned = BinnedLine.of(PositiveClass().events(Categorical(p))[0], EqualMass(4), None)
    own, lines = line_of(p, Halves()), (binned, line_of(p, IsotonicCurve()))
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, get_context("spawn")) as processes:
        plain = consistency(lines, Categorical(p), 50, Resampling(0.9, 19, 3))
        other = consistency(lines, Categorical(p), 50, Resampling(0.9, 19, 3, processes))
        assert np.array_equal(plain, other)
        assert np.array_equal(
            own.confidence(y, Resampling(0.9, 19, 3)), own.confidence(y, Resampling(0.9, 19, 3, threads))
        )


def test_places_are_scores_or_quantiles_of_them(rng):
    few = rng.random(50).round(1)
    assert np.array_equal(line_of(few, IsotonicCurve()).places, np.unique(few))
    many = rng.random(5000)
    places = line_of(many, IsotonicCurve()).places
    assert len(places) == 200
    assert (places[0], places[-1]) == (many.min(), many.max())
    assert np.quantile(many, np.linspace(0, 1, 200)) == pytest.approx(places, abs=1e-3)


def test_empty_bins_have_no_band(rng):
    p = np.r_[rng.uniform(0, 0.2, 20), rng.uniform(0.8, 1, 20)]
    line = BinnedLine.of(PositiveClass().events(Categorical(p))[0], EqualWidth(10), None)
    low, high = line.confidence(rng.integers(0, 2, 40), Resampling(0.9, 1))
    assert len(low) == len(high) == 4


SHAPES = {
    **TRUTHS,
    "sigmoid": lambda f: 1 / (1 + np.exp(-10 * (f - 0.5))),
}


@pytest.mark.study
@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("truth", SHAPES)
def test_coverage_of_confidence_bands(n, truth, bounds):
    """The numbers of the guide: the share of 25 places and 400 data sets where nominal 95 % bands hold the truth."""
    rng, sets, places = np.random.default_rng(7), 400, np.linspace(0.02, 0.98, 25)
    held = {"bins": [], "smooth, smoothed truth": [], "smooth": [], "isotonic": []}
    for _ in range(sets):
        p = rng.random(n)
        chance, exact = SHAPES[truth](p), SHAPES[truth](places)
        y = (rng.random(n) < chance).astype(int)
        event, how = PositiveClass().events(Categorical(p))[0], Resampling(0.95, 1)
        bins = BinnedLine.of(event, EqualMass(15), None)
        which = bins.bins.index(p)
        means = np.bincount(which, chance) / np.bincount(which)
        held["bins"].append(within(bins.confidence(y, how), means))
        smooth = KernelSmooth().fit(p, y)
        band = CurveLine(event, None, KernelSmooth(), places).confidence(y, how)
        held["smooth, smoothed truth"].append(within(band, smooth.rule.fit(p, chance)(places)))
        held["smooth"].append(within(band, exact))
        held["isotonic"].append(within(CurveLine(event, None, IsotonicCurve(), places).confidence(y, how), exact))
    print(f"\n{truth}, n = {n}: " + ", ".join(f"{name} {np.mean(v):.3f}" for name, v in held.items()))
    for name in ("bins", "isotonic"):
        assert np.min(np.sum(held[name], axis=0)) >= bounds(sets, 0.95)[0]


@pytest.mark.study
@pytest.mark.parametrize("truth", SHAPES)
def test_coverage_of_the_bootstrap(truth):
    """Why it is not used for our own curves: percentiles of resampled rows, 120 data sets of 200 rows."""
    rng, places = np.random.default_rng(8), np.linspace(0.02, 0.98, 25)
    held = {IsotonicCurve(): [], KernelSmooth(): []}
    for repetition in range(120):
        p = rng.random(200)
        rows = CurveRows.of(p, rng.random(200) < SHAPES[truth](p), None)
        event = PositiveClass().events(Categorical(p))[0]
        for rule, shares in held.items():
            line = CurveLine(event, None, rule.fit(*rows).rule, places)
            shares.append(within(line._bootstrap(rows, Resampling(0.95, 199, repetition)), SHAPES[truth](places)))
    print(f"\n{truth}: " + ", ".join(f"{rule} {np.mean(shares):.3f}" for rule, shares in held.items()))
    assert np.mean(held[IsotonicCurve()]) < 0.95


def within(band, values):
    return (band[0] <= values) & (values <= band[1])


@pytest.mark.parametrize("labels", [1, 2, 3])
def test_rows_of_fitted_curves_name_their_label(labels, rng):
    p = rng.random((60, labels))
    y = (rng.random((60, labels)) < p) * 1
    found = ReliabilityCurve(curve=IsotonicCurve(), lens=MultiLabel(), n_resamples=19)(y, Bernoulli(p))
    names = [event.name for event in MultiLabel().events(Bernoulli(p))]
    assert list(dict.fromkeys(found.get("event", names))) == names
    assert ("event" in found) == (labels > 1)
