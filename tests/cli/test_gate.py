from dataclasses import replace

import numpy as np
import pytest

from calibrant import Normal, evaluate
from calibrant._validate import InputError

pytest.importorskip("rich")

from calibrant.cli.commands import Gate, judge
from calibrant.cli.reporting import numbers_of


@pytest.mark.parametrize(
    ("text", "value", "fails"),
    [
        ("ECE > 0.05", 0.06, True),
        ("ECE > 0.05", 0.05, False),
        ("ECE>=5e-2", 0.05, True),
        ("ECE<0.05", 0.04, True),
        ("ECE <= 0.05", 0.06, False),
        ("ECE > 0.05", float("inf"), True),
        ("ECE > 5%", 0.06, True),
        ("ECE > 5 %", 0.05, False),
        ("ECE >= 1", 1.0, True),
    ],
)
def test_conditions(text, value, fails):
    assert Gate.parse(text).fails({"ECE": value}) is fails


def test_a_whole_repr_may_be_named():
    name = "ECE(bins=EqualMass(n_bins=15), norm=2)"
    assert Gate.parse(f"{name} > 0.1").fails({name: 0.2})


@pytest.mark.parametrize("text", ["", "ECE", "ECE >", "> 0.05", "ECE = 0.05", "ECE > five", "ECE > 1 > 2"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match=r"--fail-if .* cannot be read: write it as 'ECE > 0.05'"):
        Gate.parse(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("ECE > 5", r"lies between 0 and 1; of percent write 'ECE > 5%'$"),
        ("ECE > 1", r"lies between 0 and 1; of percent write 'ECE > 1%'$"),
        ("ECE of b > 2", r"of percent write 'ECE of b > 2%'$"),
        ("pvalue < 0", r"lies between 0 and 1$"),
        ("ECE(bins=EqualMass(n_bins=15), norm=2) >= 3", r"norm=2\) >= 3%'$"),
    ],
)
def test_a_limit_that_is_never_reached_is_refused(text, remedy):
    """Else a gate in percent would pass whatever happens."""
    with pytest.raises(InputError, match=f"^--fail-if '.*' never holds: .*{remedy}"):
        Gate.parse(text)


def test_what_is_no_share_has_limits_of_any_size():
    assert Gate.parse("CRPS > 30").fails({"CRPS": 31})
    assert Gate.parse("LogLoss > 2").fails({"LogLoss": 2.5})
    assert Gate.parse("CRPS of b - a < -0.5").fails({"CRPS of b - a": -0.6})


def test_an_unknown_or_undefined_number_is_an_error_never_a_pass():
    with pytest.raises(InputError, match=r"there is no 'EEC' \(did you mean 'ECE'\?\)"):
        Gate.parse("EEC > 0.05").fails({"ECE": 0.1})
    with pytest.raises(InputError, match="ECE is not a number"):
        Gate.parse("ECE > 0.05").fails({"ECE": float("nan")})


@pytest.mark.parametrize("name", ["ece", "Ece", "ECE_15", "EEC"])
def test_a_near_name_is_offered(name):
    with pytest.raises(InputError, match=r"did you mean 'ECE'\?"):
        Gate.parse(f"{name} > 0.05").fails({"ECE": 0.1, "Brier": 0.2, "pvalue": 0.3})


def test_reports_offer_their_numbers_by_estimator_and_label():
    report = evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, n_resamples=99, advice=False)
    report = replace(report, verdict=replace(report.verdict, pvalue=0.123))
    numbers = numbers_of(report)
    first = report.numbers[0]
    assert numbers["ECE"] == numbers[first.label] == first.value
    assert {"Brier", "Brier score", "LogLoss", "Log loss", "SKCE"} <= set(numbers)
    assert numbers["pvalue"] == 0.123


def test_forecasts_have_numbers_of_their_own(rng):
    mu = rng.normal(size=60)
    report = evaluate(mu + rng.normal(size=60), Normal(mu, np.ones(60)), n_resamples=99, advice=False)
    numbers = numbers_of(report)
    assert {"CRPS", "PITError", "CentralCoverage", "SKCE", "LogLoss", "pvalue"} <= set(numbers)
    with pytest.raises(InputError, match=r"there is no 'CRSP' \(did you mean 'CRPS'\?\)"):
        Gate.parse("CRSP > 0.05").fails(numbers)


def test_judging_says_which_gate_failed(capsys):
    gates = [Gate.parse("ECE > 0.05"), Gate.parse("pvalue < 0.01")]
    assert judge(gates, {"ECE": 0.04, "pvalue": 0.5}) == 0
    assert judge(gates, {"ECE": 0.07, "pvalue": 0.5}) == 1
    assert capsys.readouterr().err == "gate failed: ECE = 0.07 > 0.05\n"
    assert judge([], {}) == 0
    assert judge([Gate.parse("ECE > 5%")], {"ECE": 0.0712}) == 1
    assert capsys.readouterr().err == "gate failed: ECE = 7.12% > 5%\n"
