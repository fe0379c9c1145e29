import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bootstrap, Brier, ExactTest
from calibrant.lab import BetaScores, ScoreWorld
from calibrant.results import Estimate, Interval
from studies.coverage.claims import Estimated, Finding, Judged, Rejected, holds, share_held, size_of_error, stated
from studies.coverage.worlds import Setting

SETTING = Setting("even", ScoreWorld(BetaScores()), 50)


def everywhere(setting):
    return True


def test_a_share_is_judged_by_the_binomial_bound():
    allowed = int(binom.ppf(0.999, 400, 0.05))
    inside, outside = (share_held("interval", np.array([0.0] * k + [1.0] * (400 - k))) for k in (allowed, allowed + 1))
    assert not inside.is_red
    assert outside.is_red
    assert outside.share == pytest.approx(1 - (allowed + 1) / 400)


def test_what_is_withheld_does_not_count():
    found = share_held("interval", np.array([np.nan] * 350 + [0.0] * 50))
    assert (found.data_sets, found.stated, found.is_red) == (400, 50, False)
    assert share_held("band", np.full(9, np.nan)).stated == 0


def test_standard_errors_are_compared_with_the_spread():
    values = np.random.default_rng(0).normal(0, 2.0, 1_000)
    assert not size_of_error(values, np.full(1_000, 2.0)).is_red
    small = size_of_error(values, np.full(1_000, 1.6))
    assert small.is_red
    assert small.share == pytest.approx(1.6 / 2.0, rel=0.08)
    assert size_of_error(np.zeros(5), np.ones(5)) == Finding(
        "standard error", 5, 0, pytest.approx(np.nan, nan_ok=True), pytest.approx(np.nan, nan_ok=True)
    )


def test_intervals_hold_their_ends_and_nothing_beyond():
    low, high = np.array([0.0, 0.1, np.nan]), np.array([0.1, 0.2, np.nan])
    assert holds(low, 0.1, high)[:2].tolist() == [1, 1]
    assert holds(low, 0.101, high)[:2].tolist() == [0, 1]
    assert np.isnan(holds(low, 0.1, high)[2])


def test_what_an_estimate_states():
    plain = Estimate("ECE", 0.1, 10, None)
    assert np.isnan(stated(plain)[1:]).all()
    assert stated(Estimate("ECE", 0.1, 10, None, interval=Interval(0.0, 0.2, 0.95, "bins")))[2:] == [0.0, 0.2]
    kept = stated(Estimate("ECE", 0.1, 10, None, standard_error=0.01, withheld="too few"))
    assert kept[:2] == [0.1, 0.01]
    assert np.isnan(kept[2:]).all()


def test_an_estimator_that_understates_its_error_is_found(monkeypatch):
    claim = Estimated("Brier()", everywhere, Brier())
    rng = np.random.default_rng(0)
    values = np.array([claim.found(SETTING.draw(rng), i) for i in range(300)])
    assert not any(finding.is_red for finding in claim.findings(SETTING, values))
    value, error, low, high = values.T
    halved = np.stack([value, error / 2, value - (value - low) / 2, value + (high - value) / 2], axis=1)
    assert [finding.is_red for finding in claim.findings(SETTING, halved)] == [True, True]


def test_tests_are_tried_on_calibrated_worlds_and_refusals_are_no_statement():
    claim = Rejected("test", everywhere, ExactTest(Brier(), 19))
    assert claim.applies(SETTING)
    assert set(claim.found(SETTING.draw(np.random.default_rng(0)), 0)) <= {0.0, 1.0}

    def refuse(data, seed):
        from calibrant._validate import InputError

        raise InputError("no")

    refused = Judged("refused", everywhere, ("band",), refuse)
    assert np.isnan(refused.found(SETTING.draw(np.random.default_rng(0)), 0)).all()


def test_resampled_estimates_use_the_seed():
    claim = Estimated("bootstrap", everywhere, Bootstrap(Brier(), 19))
    data = SETTING.draw(np.random.default_rng(0))
    assert claim.found(data, 1) == claim.found(data, 1)
    assert claim.found(data, 1) != claim.found(data, 2)
