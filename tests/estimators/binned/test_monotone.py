"""The error of single predictions: what bins leave open is no more than is said, and limits hold for hidden stairs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, DebiasedECE, EqualMass
from calibrant.estimators import Edges, MonotoneECE
from calibrant.estimators.binned.monotone import NUMBERS_OF_BINS, TAIL, _Spread, chosen

CURVES = {
    "stairs": lambda p, t: (np.floor(p / t) + 0.5) * t,
    "one jump": lambda p, t: np.where(np.abs(p - 0.5) < 2 * t, np.where(p < 0.5, 0.5 - 2 * t, 0.5 + 2 * t), p),
    "shift": lambda p, t: np.minimum(p + t, 1.0),
    "squeeze": lambda p, t: 0.5 + (1 - t) * (p - 0.5),
}


def random_curve(p, rng):
    """A curve that does not fall: a few jumps anywhere, and pieces of the diagonal."""
    knots = np.sort(rng.random(rng.integers(1, 9)))
    return np.clip(rng.random() * p + np.searchsorted(knots, p) / len(knots) * rng.random() + 0.2 * rng.random(), 0, 1)


@pytest.mark.parametrize("shape", [(1, 1), (0.5, 0.5), (1, 30)])
def test_bins_leave_no_more_open_than_is_said(shape, rng):
    """Both inequalities, for random curves that do not fall: of mean distances, and of squares from pairs."""
    for _ in range(300):
        p = np.sort(rng.beta(*shape, 200)).round(rng.integers(2, 6))
        c = random_curve(p, rng)
        bins = EqualMass(int(rng.integers(1, 20))).bins(p)
        spread, cell = _Spread.of(p, bins), np.unique(bins.of_rows(p, slice(None)), return_inverse=True)[1]
        rows = np.bincount(cell)
        gap = np.bincount(cell, weights=c - p) / rows
        assert np.abs(c - p).mean() <= (rows / 200) @ np.abs(gap) + spread.open + 1e-12
        pairs = ((gap * rows) ** 2 - np.bincount(cell, weights=(c - p) ** 2)) / np.maximum(rows * (rows - 1), 1)
        several = rows > 1
        assert (rows * gap**2)[several].sum() / 200 <= (rows * pairs)[several].sum() / 200 + spread.unseen + 1e-12


def test_a_jump_in_a_bin_of_equal_predictions_leaves_all_open():
    """Predictions of one half but for rounding, and a curve from 0 to 1 in the middle of the bin: the gap is 0, the error 1/2."""
    p = np.concatenate([np.full(300, 0.1), 0.5 + np.linspace(-1e-9, 1e-9, 400), np.full(300, 0.9)])
    c = np.concatenate([np.zeros(500), np.ones(500)])
    spread = _Spread.of(p, Edges((0, 0.3, 0.7, 1)).bins(p))
    assert list(spread.rows) == [300, 400, 300]
    assert np.abs(c - p).mean() - 0.6 * 0.1 == pytest.approx(spread.open, abs=1e-8)


def test_what_is_said_is_nearly_reached():
    """A step in one bin, and even predictions in all: half of the bin's share for the one, a quarter of the width for the others."""
    p = (np.arange(1000) + 0.5) / 1000
    spread = _Spread.of(p, EqualMass(10).bins(p))
    assert spread.open == pytest.approx(0.1 / 4 + 0.1 / 2, rel=1e-6)


def test_few_distinct_predictions_leave_nothing_open(rng):
    p = rng.choice([0.1, 0.3, 0.8], 2000)
    y = (rng.random(2000) < p).astype(int)
    spread = chosen(p, None)
    assert spread.open == pytest.approx(0, abs=1e-12)
    assert len(spread.bins) == 3
    other = DebiasedECE(EqualMass(10), norm=2 if spread.has_square else 1)
    assert MonotoneECE()(y, p).confidence_interval().high == pytest.approx(other(y, p).confidence_interval().high)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("n", [500, 4000])
def test_single_predictions_are_covered(curve, n, rng):
    p, sets = (np.arange(n) + 0.5) / n, 60
    truth = CURVES[curve](p, 0.08)
    error = np.abs(truth - p).mean()
    found = [MonotoneECE()((rng.random(n) < truth).astype(int), p).confidence_interval(0.9) for _ in range(sets)]
    assert sum(error > interval.high for interval in found) <= binom.isf(0.001, sets, 0.05)
    assert sum(error < interval.low for interval in found) <= binom.isf(0.001, sets, 0.05)


def test_bins_do_not_depend_on_what_happened_and_grow_with_the_rows(rng):
    sizes = []
    for n in (300, 3000, 30_000):
        p = rng.random(n)
        made = [MonotoneECE()((rng.random(n) < q).astype(int), p).notes for q in (p, 1 - p)]
        assert made[0] == made[1]
        sizes.append(len(chosen(p, None).bins))
    assert sizes[0] < sizes[1] < sizes[2]


def test_more_rows_bring_smaller_limits(rng):
    highs = []
    for n in (1000, 30_000):
        p = rng.random(n)
        highs.append(MonotoneECE()((rng.random(n) < p).astype(int), p).confidence_interval(0.9).high)
    assert highs[1] < 0.03 < highs[0]


def test_labels_are_averaged_and_weights_have_no_interval(rng):
    p = rng.random((400, 2))
    y = (rng.random((400, 2)) < p).astype(int)
    parts = [MonotoneECE()(y[:, k], p[:, k]) for k in range(2)]
    whole = MonotoneECE()(y, Bernoulli(p))
    assert whole.value == pytest.approx(np.mean([part.value for part in parts]))
    assert whole.confidence_interval().high == pytest.approx(
        np.mean([part.confidence_interval().high for part in parts])
    )
    weighted = MonotoneECE()(y[:, 0], p[:, 0], sample_weight=np.full(400, 2.0))
    assert "sample_weight" in weighted.withheld
    assert weighted.value == pytest.approx(parts[0].value)


@pytest.mark.parametrize("n", [9, 19, 20, 29, 30, 50, 70, 100])
def test_the_best_of_all_numbers_with_ten_rows_a_bin(n):
    p = (np.arange(n) + 0.5) / n
    allowed = [number for number in NUMBERS_OF_BINS if number == 1 or n / number >= 10]
    each = [_Spread.of(p, EqualMass(number).bins(p)) for number in allowed]
    least = min(s.expected(TAIL) for spread in each for s in (spread, replace(spread, has_square=True)))
    assert chosen(p, None).expected(TAIL) == least
    assert len(chosen(p, None).rows) == allowed[-1]  # of even predictions the finest is the best
