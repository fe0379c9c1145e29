import re
import shlex

import numpy as np
import pytest
from scipy.special import expit

from calibrant import ECE, Categorical, EqualMass, Normal, PITError, evaluate
from calibrant.cli.settings import parse_recalibrator
from calibrant.lab import Tempered
from calibrant.recalibration import Temperature
from calibrant.recalibration.base import in_order
from calibrant.reports import Reason, Verdict, judge
from calibrant.reports.advice import WORDS, advise, choice, code, command, too_few
from calibrant.reports.trials import AS_THEY_ARE, Trial, tried
from calibrant.results import Finding


def found(finding, tone="bad"):
    return Verdict(tone, "", (), 0.001, Finding(finding))


GOOD, BAD = found("none", "good"), found("over-confident")


@pytest.fixture
def problem(rng, problem_of):
    return problem_of(*Tempered(2, 3.0).draw(600, rng))


@pytest.fixture
def advised(problem):
    return advise(problem, verdict=BAD, source=["my $file.csv", "--y-pred", "p_*"])


def test_the_best_map_its_gain_and_how_to_learn_it(advised):
    advice = advised.advice
    assert advice.headline.startswith("Temperature() would lower the log loss by ")
    assert "±" in advice.headline
    assert "%" in advice.headline
    assert advice.command == (
        "calibrant recalibrate 'my $file.csv' --y-pred 'p_*' --method 'Temperature()' --save map.json"
    )
    assert "from calibrant.recalibration import Temperature" in advice.code
    assert "Each row is seen through a map that was fitted without it, on 4 of 5 folds." in advice.sentences


def test_the_table_has_a_row_a_candidate_and_one_for_none(problem, advised):
    table = advised.advice.candidates
    assert sorted(table["recalibrator"])[-1] == AS_THEY_ARE
    assert table.n_rows == 7
    assert np.all(np.diff(table["after"]) >= 0)
    assert table["change"] == pytest.approx(table["after"] - table["before"])
    row = table["recalibrator"].tolist().index("Temperature()")
    after = in_order(Temperature().fit(problem.targets, problem.predictions).held_out)
    error = ECE(EqualMass(15))(problem.targets, after).value  # of searches that start from the map of all rows
    assert table["calibration_error"][row] == pytest.approx(error, rel=1e-12)
    assert table["null_low"][row] < table["null_high"][row]
    own = table["recalibrator"].tolist().index(AS_THEY_ARE)
    assert table["calibration_error"][own] == ECE(EqualMass(15))(problem.targets, problem.predictions).value


def test_the_code_runs(problem, advised):
    names = {"y_true": problem.targets, "y_pred": problem.predictions, "new_predictions": problem.predictions}
    exec(advised.advice.code, names)
    assert len(names["better"]) == len(problem)


def test_the_command_names_what_the_program_knows(advised):
    words = shlex.split(advised.advice.command)
    assert words[2] == "my $file.csv"
    assert parse_recalibrator(words[words.index("--method") + 1]) == Temperature()


def test_the_picture_has_both_curves(advised):
    assert advised.picture.kind == "before_after"
    curves = [advised.picture.tables[name] for name in ("before_curve", "after_curve")]
    gaps = [np.abs(curve["observed"] - curve["predicted"]).mean() for curve in curves]
    assert gaps[1] < gaps[0]


def test_forecasts(rng, problem_of):
    y = rng.normal(0.0, 2.0, 1_000)
    found = advise(problem_of(y, Normal(np.zeros(1_000), 1.0)), verdict=BAD)
    assert found.advice.headline.startswith("VarianceScaling() would lower the log loss by ")
    assert "%" not in found.advice.headline  # a density's log loss has no shares
    assert found.advice.command is None
    table = found.advice.candidates
    own = table["recalibrator"].tolist().index(AS_THEY_ARE)
    assert table["calibration_error"][own] == PITError("kuiper")(y, Normal(np.zeros(1_000), 1.0)).value
    ends = [found.picture.tables[f"{side}_pit_histogram"]["observed"][0] for side in ("before", "after")]
    assert ends[0] > 0.1 > ends[1]  # of twenty bars


def test_nothing_to_put_right(rng, problem_of):
    p = rng.random(400)
    problem = problem_of((rng.random(400) < p) * 1, Categorical(p))
    said = advise(problem, verdict=GOOD)
    assert (said.advice.reason, said.picture, said.advice.command) == ("nothing wrong", None, None)
    assert said.advice.headline == "Nothing to put right."
    assert "that were tried" in said.advice.sentences[0]


def test_nothing_is_put_right_without_an_alarm(problem):
    assert advise(problem, verdict=GOOD).advice.reason is Reason.NOTHING_WRONG  # though a map would gain


REASONS = [
    ("slice", "bad", Reason.SLICE),
    ("local", "good", Reason.LITTLE),
    ("local", "bad", Reason.UNMENDED),
    ("mixed", "unsure", Reason.UNMENDED),
]


@pytest.mark.parametrize(("finding", "tone", "reason"), REASONS)
def test_an_alarm_without_a_map_has_a_reason(finding, tone, reason, problem_of):
    """Calibrated predictions of a great many rows: no map gains."""
    rng = np.random.default_rng(3)
    p = rng.random(4_000)
    problem = problem_of((rng.random(4_000) < p) * 1, Categorical(p))
    advice = advise(problem, verdict=found(finding, tone)).advice
    assert (advice.reason, advice.headline, advice.command) == (reason, WORDS[reason], None)


def test_few_rows_are_a_reason_of_their_own(problem_of):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    problem = problem_of((rng.random(60) < p) * 1, Categorical(p))
    assert advise(problem, verdict=found("local")).advice.reason is Reason.UNSURE


def cohort(rng, n, shift=0.5, slope=1.0):
    """External validation: one event in ten was predicted; log-odds are moved, and more or less spread."""
    z = rng.normal(-2.6, 1.0, n)
    return (rng.random(n) < expit(shift + slope * z)) * 1, z


@pytest.mark.parametrize(("shift", "slope"), [(0.5, 1.0), (0.1, 0.8), (-0.6, 1.0)])
def test_a_fault_that_a_simple_map_mends_gets_one_that_does(shift, slope, problem_of):
    """Ten cohorts of 700 patients: each alarm has a map, and each map lowers the log loss of all patients."""
    fresh = np.random.default_rng(99).normal(-2.6, 1.0, 20_000)
    truth, alarms, gains = expit(shift + slope * fresh), 0, []
    for seed in range(10):
        y, z = cohort(np.random.default_rng(seed), 700, shift, slope)
        verdict = judge(y, expit(z), n_resamples=99, rng=seed)
        chosen = choice(tried(problem_of(y, Categorical(expit(z)))), verdict)
        assert (chosen.recalibrator is not None) == verdict.is_alarm
        if chosen.recalibrator is not None:
            better = chosen.recalibrator.fit(y, expit(z), folds=0)(expit(fresh))
            gains.append(cross_entropy(truth, expit(fresh)) - cross_entropy(truth, better))
        alarms += verdict.is_alarm
    assert alarms >= 7
    assert min(gains) > 0


def cross_entropy(truth, p):
    return -(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean()


def test_a_gain_within_chance_is_said_to_be(problem_of):
    y, z = cohort(np.random.default_rng(3), 500, 0.35)
    problem = problem_of(y, Categorical(expit(z)))
    advice = advise(problem, verdict=found("too low")).advice
    assert advice.headline.startswith("Intercept() would lower the log loss by ")
    assert (
        "The gain alone is within chance: it is the verdict that calls for a map, and this one fits best."
        in advice.sentences
    )


def test_few_rows_and_few_events(problem_of):
    assert too_few(problem_of([0, 1], Categorical([0.2, 0.3]))) == "2 rows are too few to learn from."
    rare = problem_of([1] * 9 + [0] * 91, Categorical(np.full(100, 0.1)))
    assert too_few(rare) == "All but 9 rows are of one class: too few of others to learn from."
    assert advise(rare, verdict=GOOD).advice.candidates is None
    weightless = problem_of([0, 1] * 40, Categorical(np.full(80, 0.5)), np.repeat([1.0, 0.0], 40))
    assert too_few(weightless) == "40 rows are too few to learn from."


def test_rough_and_thinned_are_said(rng, problem_of):
    y, p = Tempered(2, 3.0).draw(31_000, rng)
    found = advise(problem_of(y, p), verdict=BAD).advice
    assert "Learned and judged on 30,000 of 31,000 rows, drawn at random." in found.sentences
    small = advise(problem_of(y[:100], p[:100]), verdict=BAD).advice
    assert "100 rows leave much to chance: judge the map again on new ones." in small.sentences


def test_names_are_quoted():
    trial = Trial(Temperature(), (), np.zeros(1))
    words = ["a'; rm -rf ~; '.csv", "--y-true", "`x`"]
    assert shlex.split(command(words, trial))[2:5] == words
    assert command(None, trial) is None
    assert code(trial, "[:, 3]").splitlines()[2] == "fitted = Temperature().fit(y_true[:, 3], y_pred[:, 3])"


def test_reports_carry_it(rng):
    y, p = Tempered(3, 3.0).draw(300, rng)
    report = evaluate(y, p, n_resamples=99, source=["x.csv"])
    assert report.advice.command.startswith("calibrant recalibrate x.csv --method")
    assert report.to_dict()["advice"]["headline"] == report.advice.headline
    assert report.pictures[-1].kind == "before_after"
    without = evaluate(y, p, n_resamples=99, advice=False)
    assert without.advice is None
    assert without.pictures[-1].kind != "before_after"


def test_one_map_in_two_forms_is_not_said_to_be_better_by_rounding():
    """The default of four classes that are a temperature away is that temperature."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(400, 4))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    sure = p**2 / (p**2).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    told = evaluate(y, sure.round(4), n_resamples=99).to_markdown()
    assert "would lower the log loss" in told
    assert not re.search(r"smallest log loss, by -?\d(\.\d)?e-1\d", told)
