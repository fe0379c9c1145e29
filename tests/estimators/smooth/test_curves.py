import pickle

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.estimators import IsotonicCurve, KernelSmooth
from calibrant.estimators.smooth.fitted_curves import (
    CANDIDATES,
    COARSE,
    Curve,
    GridPositions,
    _LeftOut,
    _spread,
    cells_of,
)

CURVES = [IsotonicCurve(), KernelSmooth(), KernelSmooth(0.05)]

ROUNDING = 1e-6
"""Of a ratio of sums that are as small as the share ``TRUSTED`` of the largest, made by Fourier transforms."""


def kernel(t, f, h):
    """The Gaussian kernel with forty reflections on either side, one pair after the other, ``(len(t), len(f))``."""
    shifts = 2 * np.arange(-20, 21)[:, None, None]
    apart, mirrored = t[:, None] - f + shifts, t[:, None] + f + shifts
    return (np.exp(-(apart**2) / (2 * h**2)) + np.exp(-(mirrored**2) / (2 * h**2))).sum(axis=0)


@pytest.fixture
def rows(rng):
    """Scores with ties, and exactly 0 and 1."""
    scores = np.r_[rng.beta(0.5, 0.5, 200).round(2), 0, 0, 1, 1]
    return scores, rng.random(204) < 0.1 + 0.8 * scores**2, rng.random(204)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
class TestEveryCurve:
    def test_weights_equal_repetition_of_rows(self, curve, rows, rng):
        scores, observed, _ = rows
        times = rng.integers(0, 4, len(scores))
        weighted = curve.fit(scores, observed, times)
        repeated = curve.fit(np.repeat(scores, times), np.repeat(observed, times))
        at = np.linspace(0, 1, 57)
        if isinstance(curve, KernelSmooth) and curve.bandwidth is None:
            # weights are importance: rows repeated are more rows, and get a narrower kernel
            assert weighted.bandwidth > repeated.bandwidth
            return
        assert weighted(at) == pytest.approx(repeated(at), abs=1e-10)

    def test_the_scale_of_weights_does_not_matter(self, curve, rows):
        scores, observed, weights = rows
        at = np.linspace(0, 1, 57)
        assert curve.fit(scores, observed, 7 * weights)(at) == pytest.approx(
            curve.fit(scores, observed, weights)(at), abs=1e-11
        )

    def test_the_order_of_rows_does_not_matter(self, curve, rows, rng):
        order = rng.permutation(len(rows[0]))
        at = np.linspace(0, 1, 57)
        assert curve.fit(*(x[order] for x in rows))(at) == pytest.approx(curve.fit(*rows)(at), abs=1e-11)

    @pytest.mark.parametrize("outcome", [0, 1])
    def test_constant_outcomes_make_a_constant_curve(self, curve, outcome, rng):
        fitted = curve.fit(rng.random(50), np.full(50, outcome))
        assert fitted(np.linspace(0, 1, 101)) == pytest.approx(outcome, abs=ROUNDING)

    @pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
    def test_equal_scores_have_the_mean(self, curve, score):
        fitted = curve.fit(np.full(5, score), np.array([0, 1, 1, 0, 1]), np.array([1, 1, 1, 0, 0]))
        assert fitted(np.linspace(0, 1, 101)) == pytest.approx(2 / 3, rel=ROUNDING)

    def test_one_row(self, curve):
        assert curve.fit(np.array([0.4]), np.array([1]))(np.array([0.0, 0.4, 1.0])).tolist() == [1, 1, 1]

    def test_two_rows_far_apart(self, curve):
        fitted = curve.fit(np.array([0.0, 1.0]), np.array([0, 1]))(np.linspace(0, 1, 101))
        assert np.all((fitted >= 0) & (fitted <= 1) & (np.diff(fitted, prepend=0) >= -ROUNDING))

    def test_single_precision(self, curve, rows):
        scores = rows[0].astype(np.float32)
        at = np.linspace(0, 1, 57)
        wide = curve.fit(scores.astype(np.float64), rows[1])(at)
        assert np.array_equal(curve.fit(scores, rows[1])(at), wide)
        assert wide.dtype == np.float64

    def test_rules_and_curves_travel_to_other_processes(self, curve, rows):
        fitted = curve.fit(*rows)
        assert pickle.loads(pickle.dumps(curve)) == curve
        assert np.array_equal(pickle.loads(pickle.dumps(fitted))(rows[0]), fitted(rows[0]))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_what_is_done_once_fits_any_outcomes(self, curve, rows, rng, weighted):
        """The digits are those of a fit alone, also after fits to other outcomes that chose other grids."""
        scores, observed, weights = rows
        weights = np.where(rng.random(204) < 0.2, 0, weights) if weighted else None
        fit, at = curve.given(scores, weights), np.linspace(0, 1, 57)
        for y in (observed, ~observed, rng.random(204) < 0.5, scores > 0.5, observed):
            np.testing.assert_array_equal(fit(y)(at), curve.fit(scores, y, weights)(at))

    def test_the_resolved_rule_makes_the_curve_again(self, curve, rows):
        fitted = curve.fit(*rows)
        assert np.array_equal(fitted.rule.fit(*rows)(rows[0]), fitted(rows[0]))


class TestIsotonic:
    def test_against_the_formula_of_least_and_largest_means(self, rows):
        """The solution at score k is the largest over a <= k of the least over b >= k of the mean of rows a to b."""
        scores, observed, weights = rows
        distinct = np.unique(scores)
        weight = np.array([weights[scores == s].sum() for s in distinct])
        event = np.array([weights[(scores == s) & observed].sum() for s in distinct])
        n = len(distinct)
        mean = np.array([[event[a : b + 1].sum() / weight[a : b + 1].sum() if b >= a else np.inf for b in range(n)] for a in range(n)])  # fmt: skip
        expected = [max(mean[a, k:].min() for a in range(k + 1)) for k in range(n)]
        assert IsotonicCurve().fit(*rows)(distinct) == pytest.approx(np.array(expected), abs=1e-12)

    def test_against_scikit_learn(self, rows):
        theirs = pytest.importorskip("sklearn.isotonic").IsotonicRegression()
        scores, observed, weights = rows
        expected = theirs.fit(scores, observed, sample_weight=weights).predict(scores)
        assert IsotonicCurve().fit(*rows)(scores) == pytest.approx(expected, abs=1e-12)

    def test_steps_are_continuous_from_the_right(self):
        curve = IsotonicCurve().fit(np.array([0.2, 0.6]), np.array([0, 1]))
        assert curve(np.array([0.0, 0.2, np.nextafter(0.6, 0), 0.6, 1.0])).tolist() == [0, 0, 0, 1, 1]


class TestKernelSmooth:
    @pytest.mark.parametrize("bandwidth", [0.01, 0.05, 0.3, 2.0])
    def test_against_the_sum_over_all_pairs(self, bandwidth, rng):
        scores = np.r_[rng.beta(0.5, 0.5, 400), 0, 0, 1, 1]
        observed, weights = rng.random(404) < scores**2, rng.random(404)
        at = np.linspace(0, 1, 201)
        near = kernel(at, scores, bandwidth) * weights
        expected = near @ observed / near.sum(axis=1)
        assert KernelSmooth(bandwidth).fit(scores, observed, weights)(at) == pytest.approx(expected, abs=1e-4)

    def test_the_spread_is_that_of_pairs_of_rows(self, rng):
        scores, weights = rng.random(30), rng.random(30) ** 4
        pairs = weights[:, None] * weights * (1 - np.eye(30))
        expected = np.sqrt((pairs * (scores[:, None] - scores) ** 2).sum() / pairs.sum() / 2 * (29 / 30))
        assert _spread(scores, weights) == pytest.approx(expected, rel=1e-12)
        assert _spread(scores, np.ones(30)) == pytest.approx(scores.std(), rel=1e-12)

    def test_one_row_that_outweighs_all_leaves_a_width(self, rng):
        scores, observed, weights = rng.random(50), np.arange(50) % 2, np.r_[1e15, np.ones(49)]
        assert KernelSmooth().fit(scores, observed, weights).bandwidth > 0.001

    @pytest.mark.parametrize("weighted", [False, True])
    def test_leave_one_out_errors_against_all_pairs(self, weighted, rng):
        scores = rng.random(300)
        observed = rng.random(300) < scores**2
        weights = np.full(300, 0.3) if weighted else np.ones(300)
        bandwidths = CANDIDATES * scores.std()
        left_out = _LeftOut(
            GridPositions.of(scores, weights, cells_of(COARSE / bandwidths[-1])), bandwidths, weights[0]
        )
        expected = []
        for h in bandwidths:
            near = kernel(scores, scores, h)
            np.fill_diagonal(near, 0)
            expected.append(weights @ (observed - near @ observed / near.sum(axis=1)) ** 2)
        assert left_out.errors(observed) == pytest.approx(np.array(expected), rel=5e-3)
        chosen = KernelSmooth().fit(scores, observed, weights).bandwidth
        assert chosen == pytest.approx(bandwidths[np.argmin(expected)], rel=1e-12)

    @pytest.mark.parametrize(("low", "width"), [(0.3, 0.003), (0.0, 0.02), (0.995, 0.005), (0.4, 1e-5)])
    def test_rows_close_together_have_the_curve_of_all_nodes(self, low, width, rng, monkeypatch):
        """Only nodes near them are seen, and mirror images across an end count."""
        scores, weights = low + width * rng.random(300), rng.random(300)
        observed = rng.random(300) < (scores - low) / width
        part = KernelSmooth().fit(scores, observed, weights)
        monkeypatch.setattr("calibrant.estimators.smooth.fitted_curves.NEAR", 1 << 30)
        whole = KernelSmooth().fit(scores, observed, weights)
        assert len(part.values) < len(whole.values) / 4
        assert part.bandwidth == whole.bandwidth
        assert part(scores) == pytest.approx(whole(scores), abs=1e-12)
        assert part(np.linspace(0, 1, 99)) == pytest.approx(whole(np.linspace(0, 1, 99)), abs=ROUNDING)

    def test_equal_scores_take_the_smoothest(self):
        assert KernelSmooth().fit(np.full(5, 0.3), np.array([0, 1, 1, 0, 1])).bandwidth == 2.0

    def test_the_bandwidth_follows_the_truth(self, rng):
        scores = rng.random(4000)
        flat = KernelSmooth().fit(scores, rng.random(4000) < 0.4)
        wavy = KernelSmooth().fit(scores, rng.random(4000) < 0.5 + 0.4 * np.sin(40 * scores))
        assert flat.bandwidth > 0.4
        assert wavy.bandwidth < 0.04

    def test_no_weight_is_lost_at_the_ends(self, rng):
        """Without reflection a steep curve would be pulled towards the middle twice as far."""
        scores = np.linspace(0, 1, 2001)
        fitted = KernelSmooth(0.05).fit(scores, scores)  # outcomes without noise
        assert fitted(np.array([0.0]))[0] == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=1e-2)

    def test_between_distant_scores_the_curve_is_a_line(self):
        fitted = KernelSmooth(0.001).fit(np.array([0.2, 0.8]), np.array([0, 1]))
        assert fitted(np.array([0.0, 0.2, 0.5, 0.8, 1.0])) == pytest.approx([0, 0, 0.5, 1, 1], abs=ROUNDING)

    @pytest.mark.parametrize("bandwidth", [0, 1e-5, 11, float("nan"), "wide", True])
    def test_bad_bandwidths(self, bandwidth):
        with pytest.raises(InputError, match=r"bandwidth must be a number from 0.0001 to 10, or None .*; got"):
            KernelSmooth(bandwidth)


class Constant(Curve):
    """The least that a rule of one's own has to write."""

    def fit(self, scores, observed, weights=None):
        return float(np.average(observed, weights=weights))


def test_a_rule_of_ones_own_is_fitted_anew(rows):
    scores, observed, weights = rows
    assert Constant().given(scores, weights)(observed) == Constant().fit(scores, observed, weights)
