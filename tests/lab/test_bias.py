from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import ECE, Brier, DebiasedECE, EqualMass, ExactTest
from calibrant._validate import InputError
from calibrant.lab import BetaScores, Power, ScoreWorld, Sigmoid, Study, SyntheticNormal, bias_study, power_study, tce

WORLD = ScoreWorld(BetaScores(1.1, 0.3), Power(2))
ESTIMATORS = {"ECE": ECE(EqualMass(5), norm=2), "debiased": DebiasedECE(EqualMass(5))}
TEST = {"exact": ExactTest(ECE(EqualMass(5)), 19)}


def mean_outcome(y_true, y_pred):
    return float(np.mean(y_true))


def test_numbers_are_those_of_the_study():
    table = bias_study(WORLD, ESTIMATORS, [50, 200], 30, seed=2)
    study = Study([WORLD], [50, 200], list(ESTIMATORS.items()), 30, 2)()
    assert table["estimator"].tolist() == ["ECE", "debiased"] * 2
    assert table["n"].tolist() == [50, 50, 200, 200]
    for name in ("truth", "mean", "bias", "sd", "rmse"):
        assert table[name].tolist() == study[name].tolist()
    assert set(table["truth"]) == {tce(WORLD)}
    assert table["bias_error"] == pytest.approx(table["sd"] / 30**0.5)


def test_errors_are_how_much_studies_differ():
    """Of 200 small studies: the spread of every number, within a fifth of what they say, four standard errors."""
    estimators = {"ECE": ECE(EqualMass(5), norm=2)}
    tables = [bias_study(WORLD, estimators, [50], 12, seed=s) for s in range(200)]
    for name in ("bias", "sd", "rmse"):
        spread = np.std([table[name][0] for table in tables], ddof=1)
        said = np.mean([table[f"{name}_error"][0] for table in tables])
        assert spread == pytest.approx(said, rel=0.2), name


def test_debiasing_takes_bias_off():
    """Of a calibrated world's mean square: the plug-in error is off by its noise, the debiased one not at all."""
    table = bias_study(ScoreWorld(BetaScores()), ESTIMATORS, [200], 200)
    assert table["bias"][0] > 20 * table["bias_error"][0]
    assert abs(table["bias"][1]) < 5 * table["bias_error"][1]
    assert table["rmse"] ** 2 == pytest.approx(table["bias"] ** 2 + table["sd"] ** 2 * 199 / 200, rel=1e-9)


def test_names_of_a_list_are_their_settings():
    table = bias_study(WORLD, [ECE(EqualMass(5)), Brier(), mean_outcome], [20], 2)
    assert table["estimator"].tolist() == ["ECE(bins=EqualMass(n_bins=5))", "Brier()", "mean_outcome"]
    assert np.isnan(table["bias"][2])
    assert np.isfinite(table["sd"][2])


def test_any_world_will_do():
    assert bias_study(Sigmoid(0.4), {"Brier": Brier()}, [20], 5)["truth"][0] > 0
    assert power_study([SyntheticNormal()], {"none": constant_test}, [5], 3)["rejected"].tolist() == [0]


def constant_test(y_true, y_pred):
    from calibrant import ECE, ExactTest

    return ExactTest(ECE(EqualMass(1)), 1)([0, 1], [0.5, 0.5])


def test_studies_go_on_and_run_anywhere(tmp_path):
    steps = []
    path = tmp_path / "study.jsonl"
    first = bias_study(WORLD, ESTIMATORS, [30], 30, path=path, progress=lambda *step: steps.append(step))
    assert len(steps) == 2
    again = bias_study(WORLD, ESTIMATORS, [30], 30, path=path, progress=lambda *step: steps.append(step))
    assert len(steps) == 2
    with ThreadPoolExecutor(2) as engine:
        elsewhere = bias_study(WORLD, ESTIMATORS, [30], 30, engine=engine)
    assert first["mean"].tolist() == again["mean"].tolist() == elsewhere["mean"].tolist()


def test_level_and_power():
    worlds = {"right": ScoreWorld(BetaScores()), "wrong": ScoreWorld(BetaScores(), Power(1.8))}
    table = power_study(worlds, TEST, [200], 200)
    assert table["world"].tolist() == ["right", "wrong"]
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= 200 * table["rejected"][0] <= high
    assert table["rejected"][1] > 0.8
    assert table["error"] == pytest.approx(np.sqrt(table["rejected"] * (1 - table["rejected"]) / 200))
    assert np.all((table["low"] <= table["rejected"]) & (table["rejected"] <= table["high"]))
    assert power_study(worlds, TEST, [200], 20, alpha=0.5)["rejected"][0] > 0.2
    assert power_study(list(worlds.values()), TEST, [20], 2)["world"][1] == worlds["wrong"].name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bias_study(WORLD, TEST, [20], 2),
            "estimators must give numbers, not p-values: for tests there is power_study",
        ),
        (
            lambda: power_study([WORLD], ESTIMATORS, [20], 2),
            "tests must give p-values: for estimators there is bias_study",
        ),
        (lambda: bias_study(WORLD, ECE(), [20], 2), r"estimators must be a list, or a dictionary of names; got ECE\("),
        (lambda: bias_study(WORLD, ESTIMATORS, [20], 1), "n_sets must be a whole number of at least 2; got 1"),
        (lambda: power_study([WORLD], TEST, [0], 2), "every one of sizes must be a whole number of at least 1; got 0"),
    ],
)
def test_settings_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()
