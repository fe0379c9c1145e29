import numpy as np
import pytest

from calibrant import ECE, Brier, Categorical, EqualMass, PairedDifference
from calibrant.lab import BetaScores, ScoreWorld, Shifted
from studies.coverage import reported
from studies.coverage.worlds import SETTINGS, DataSet, Setting


def world(name):
    return next(setting for setting in SETTINGS if setting.label == name)


def share(judge, setting, sets=40):
    rng = np.random.default_rng(0)
    return np.mean([judge(setting.draw(rng), seed) for seed in range(sets)], axis=0)


@pytest.mark.parametrize("judge", [reported.consistency_band, reported.band_of_bins, reported.band_of_isotonic_curve])
def test_bands_hold_in_an_easy_world(judge):
    assert share(judge, world("even, n = 100"))[0] >= 0.8


@pytest.mark.parametrize("judge", [reported.band_of_bins, reported.band_of_isotonic_curve])
def test_bands_around_what_was_observed_look_at_the_truth(judge):
    """Not at the prediction: a model that is far off has bands that hold all the same."""
    setting = Setting("shifted", ScoreWorld(BetaScores(8, 8), Shifted(0.3)), 400)
    assert share(judge, setting)[0] >= 0.8
    data = setting.draw(np.random.default_rng(0))
    lied = DataSet(data.targets, data.predictions, data.predictions, None)
    assert np.mean([judge(lied, seed)[0] for seed in range(20)]) <= 0.2


def test_bands_and_shares_of_forecasts():
    assert share(reported.pit_bands, world("normal, n = 100")).min() >= 0.8
    assert share(reported.share_inside, world("normal, n = 100"))[0] >= 0.8
    assert share(reported.share_inside, world("normal, too narrow, n = 1,000"))[0] <= 0.2


def test_models_that_are_equally_good():
    pvalue, interval = reported.paired(
        PairedDifference(Brier(), 99), world("even, n = 100").draw(np.random.default_rng(1)), 3
    )
    assert pvalue == interval


def test_verdicts_raise_no_alarm_where_all_is_well_and_one_where_not():
    quiet = reported.verdict(world("even, n = 100").draw(np.random.default_rng(0)), 0)
    assert quiet == [1, 1]
    assert reported.verdict(world("normal, n = 100").draw(np.random.default_rng(0)), 0) == [1, 1]
    p = np.linspace(0.6, 0.99, 200)
    loud = DataSet(np.arange(200) % 5 // 4, Categorical(p), Categorical(p), None)
    assert reported.verdict(loud, 0)[0] == 0
    assert ECE(EqualMass(1))(loud.targets, p).value > 0.5
