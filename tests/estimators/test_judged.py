import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

from calibrant import Brier, LogLoss, Variational
from calibrant.estimators import Lp
from calibrant.estimators.variational import Judged
from calibrant.lab import Tempered

LOSSES = [(Lp(1), "soft"), (Lp(1), "hard"), (Lp(2), "soft"), (Brier(), "soft"), (LogLoss(), "soft")]


def spreads(k, temperature, n=200):
    """Over many data sets: what is removed on average, and the standard errors with and without map variance."""
    rng, world, found = np.random.default_rng([k, int(10 * temperature)]), Tempered(k, temperature), []
    for _ in range(80 if k == 2 else 40):
        rows = Variational()._judged(*world.draw(n, rng), None)[1][0]
        removed = np.array([rows.removed(*loss) for loss in LOSSES])
        plain = removed.var(axis=1, ddof=1) / n
        from_map = np.array([rows.map_variance(*loss) for loss in LOSSES]).mean(axis=1) / n
        found.append((removed.mean(axis=1), plain, plain + from_map))
    values, plain, whole = np.moveaxis(np.array(found), 1, 0)
    return values.std(axis=0, ddof=1), np.sqrt(plain.mean(axis=0)), np.sqrt(whole.mean(axis=0))


@pytest.mark.parametrize("k", [2, 3])
def test_next_to_calibration_map_variance_adds_to_the_spread_of_norms(k):
    seen, plain, whole = spreads(k, 1.0)
    assert (seen[:3] > 1.15 * plain[:3]).all()
    assert (whole > 0.85 * seen).all()
    assert (whole < 2.5 * seen).all()


@pytest.mark.parametrize("k", [2, 3])
def test_far_from_calibration_there_is_little_map_variance(k):
    seen, plain, whole = spreads(k, 3.0)
    assert (np.abs(whole / seen - 1) < 0.3).all()
    assert (whole < 1.25 * plain).all()


def test_what_is_removed_from_an_event():
    rows = Judged(np.array([1, 0]), np.array([0.6, 0.6]), np.array([0.7, 0.7]), np.array([0.5, 0.5]))
    assert rows.removed(Lp(1), "hard") == pytest.approx([0.4, -0.6])
    assert rows.removed(Lp(2), "soft") == pytest.approx([0.2, -0.3])
    assert rows.removed(Brier(), "soft") == pytest.approx([0.16 - 0.09, 0.36 - 0.49])
    assert rows.removed(LogLoss(), "soft") == pytest.approx([np.log(7 / 6), np.log(3 / 4)])


def test_map_variance_is_the_slope_in_standard_deviations():
    """Against finite differences of the expected sign, and of losses along the logit."""
    f, g, t = 0.6, 0.7, 1.3
    rows = Judged(np.array([1]), np.array([f]), np.array([g]), np.array([2 * ndtr(t) - 1]))
    step = 1e-6
    slope = (2 * ndtr(t + step) - 2 * ndtr(t - step)) / (2 * step) * (1 - f)
    assert rows.map_variance(Lp(1), "soft") == pytest.approx([slope**2], rel=1e-6)
    for loss in (Brier(), LogLoss()):
        low, high = (Judged(rows.observed, rows.f, moved(f, g, t, s)).removed(loss, "soft")[0] for s in (-step, step))
        assert rows.map_variance(loss, "soft") == pytest.approx([((high - low) / (2 * step)) ** 2], rel=1e-6)


def moved(f, g, t, step):
    """g, with its logit that many standard deviations further from that of f."""
    return np.array([expit(logit(f) + (logit(g) - logit(f)) * (t + step) / t)])


@pytest.mark.parametrize(("loss", "sign"), LOSSES)
@pytest.mark.parametrize("k", [2, 3])
def test_the_spread_of_a_calibrated_model_is_that_over_outcomes(loss, sign, k, rng):
    """Variances of what is removed, with each outcome as likely as f says."""
    f, g = rng.dirichlet(np.ones(k), 5), rng.dirichlet(np.ones(k), 5)
    sure = rng.uniform(0.1, 0.9, 5)
    if k == 2:
        sure = sure * np.sign(g[:, 1] - f[:, 1])
    shown = (f[:, 1], g[:, 1], sure) if k == 2 else (f, g, sure)
    values = np.stack([Judged(np.full(5, c), *shown).removed(loss, sign) for c in range(k)], axis=1)
    mean = (f * values).sum(axis=1, keepdims=True)
    expected = (f * (values - mean) ** 2).sum(axis=1)
    rows = Judged(np.zeros(5, dtype=int), *shown)
    excess, variance = rows.expected(loss, sign)
    assert variance == pytest.approx(expected, rel=1e-10)
    assert excess == pytest.approx(values[:, 0] - mean[:, 0], rel=1e-10)
    q = 0.7 * f + 0.3 * g
    mean = (q * values).sum(axis=1, keepdims=True)
    assert rows.expected(loss, sign, 0.3)[1] == pytest.approx((q * (values - mean) ** 2).sum(axis=1), rel=1e-10)


def test_what_only_the_map_calls_impossible_has_an_infinite_spread_of_log_loss():
    rows = Judged(np.array([0, 0, 0]), np.array([0.1, 0.0, 0.1]), np.array([0.0, 0.0, 0.2]))
    assert np.isinf(rows.expected(LogLoss(), "hard")[1]).tolist() == [True, False, False]
    assert np.isfinite(rows.expected(Brier(), "hard")[1]).all()


def test_maps_that_know_nothing_of_themselves_have_no_map_variance():
    rows = Judged(np.array([1]), np.array([0.6]), np.array([0.7]))
    assert rows.map_variance(Lp(1), "soft") is None
