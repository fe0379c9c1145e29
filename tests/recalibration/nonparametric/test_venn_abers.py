import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import VennAbers
from calibrant.recalibration.base import in_rows


def refitted(y, p, w, at, label):
    """Isotonic regression with the new row among the rows, from the definition."""
    _, which = np.unique(np.r_[p, at], return_inverse=True)
    rows = np.bincount(which, weights=np.r_[w, 1])
    events = np.bincount(which, weights=np.r_[w * y, label])
    return isotonic_regression(events / rows, weights=rows).x[which[-1]]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("digits", [1, 2, 6])
def test_the_interval_by_refitting(n, digits, rng):
    for _ in range(5):
        p = rng.random(n).round(digits)
        y = (rng.random(n) < p).astype(int)
        w = rng.integers(1, 4, n)
        at = np.r_[0, 1, p, rng.random(10)]
        ends = VennAbers().fit(y, p, sample_weight=w, folds=0).map.interval(at)
        for label, end in enumerate(ends):
            assert end == pytest.approx([refitted(y, p, in_rows(w, n), t, label) for t in at], abs=1e-12)


def test_the_interval_holds_fractional_weights(rng):
    """A weight below one row's worth: the new row counts as one of them."""
    p, w = rng.random(40).round(1), rng.random(40)
    y = (rng.random(40) < p).astype(int)
    at = np.r_[0, 1, p, rng.random(10)]
    scaled = w / (w @ w / w.sum())
    for label, end in enumerate(VennAbers().fit(y, p, sample_weight=w, folds=0).map.interval(at)):
        assert end == pytest.approx([refitted(y, p, scaled, t, label) for t in at], abs=1e-12)


def test_both_ends_are_merged(rng):
    p = rng.random(100)
    fitted = VennAbers().fit(rng.random(100) < p, p, folds=0)
    lower, upper = fitted.map.interval(p)
    assert np.all(lower < upper)
    assert fitted(p) == pytest.approx(upper / (1 - lower + upper))
    assert np.all((fitted(p) > lower) & (fitted(p) < upper))


def test_log_loss_is_finite_after_certainty_that_was_wrong():
    fitted = VennAbers().fit([0, 0, 1, 1] * 5, [0.0, 1.0, 0.0, 1.0] * 5)
    assert fitted.notes[0].startswith("10 rows had probability 0 for what happened, none after the map")
    assert fitted.scores["after"][0] < fitted.scores["before"][0] < np.inf


def test_names_of_classes_do_not_matter(rng):
    p = rng.random(100).round(2)
    y = (rng.random(100) < p).astype(int)
    at = rng.random(50)
    one, other = VennAbers().fit(y, p, folds=0).map, VennAbers().fit(1 - y, 1 - p, folds=0).map
    for a, b in zip(one.interval(at), reversed(other.interval(1 - at)), strict=True):
        assert a == pytest.approx(1 - b)


def test_one_end_is_calibrated_in_any_sample(rng):
    """With the end of the label that came true, the mean gap over 2,000 new rows is zero within four standard errors."""
    gaps = []
    for _ in range(200):
        p = rng.random(30)
        y = rng.random(30) < p**3
        lower, upper = VennAbers().fit(y[:20].astype(int), p[:20], folds=0).map.interval(p[20:])
        gaps.append((np.where(y[20:], upper, lower) - y[20:]).mean())
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(200)


def test_the_interval_of_other_predictions_is_refused():
    with pytest.raises(InputError, match="got Normal predictions"):
        VennAbers().fit([0, 1], [0.2, 0.7], folds=0).map.interval(Normal([0.0], 1.0))
