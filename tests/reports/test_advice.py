import shlex

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, Normal, PITError, evaluate
from calibrant.cli.settings import parse_recalibrator
from calibrant.lab.problems import Tempered
from calibrant.recalibration.held_out import in_order
from calibrant.recalibration.temperature import Temperature
from calibrant.reports.advice import ALONE, NOTHING, advise, code, command, too_few
from calibrant.reports.trials import AS_THEY_ARE, Trial


@pytest.fixture
def problem(rng, problem_of):
    return problem_of(*Tempered(2, 3.0).draw(600, rng))


@pytest.fixture
def advised(problem):
    return advise(problem, is_calibrated=False, source=["my $file.csv", "--y-pred", "p_*"])


def test_the_best_map_its_gain_and_how_to_learn_it(advised):
    advice = advised.advice
    assert advice.headline.startswith("Temperature() would lower the log loss by ")
    assert "±" in advice.headline
    assert "%" in advice.headline
    assert advice.command == (
        "calibrant recalibrate 'my $file.csv' --y-pred 'p_*' --method 'Temperature()' --save map.json"
    )
    assert "from calibrant.recalibration.temperature import Temperature" in advice.code
    assert "Each row is seen through a map that was fitted without it, on 4 of 5 folds." in advice.sentences


def test_the_table_has_a_row_a_candidate_and_one_for_none(problem, advised):
    table = advised.advice.candidates
    assert sorted(table["recalibrator"])[-1] == AS_THEY_ARE
    assert table.n_rows == 6
    assert np.all(np.diff(table["after"]) >= 0)
    assert table["change"] == pytest.approx(table["after"] - table["before"])
    row = table["recalibrator"].tolist().index("Temperature()")
    after = in_order(Temperature().fit(problem.targets, problem.predictions).held_out)
    assert table["calibration_error"][row] == ECE(EqualMass(15))(problem.targets, after).value
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
    found = advise(problem_of(y, Normal(np.zeros(1_000), 1.0)), is_calibrated=False)
    assert found.advice.headline.startswith("VarianceScaling() would lower the log loss by ")
    assert "%" not in found.advice.headline  # a density's log loss has no shares
    assert found.advice.command is None
    table = found.advice.candidates
    own = table["recalibrator"].tolist().index(AS_THEY_ARE)
    assert table["calibration_error"][own] == PITError("kuiper")(y, Normal(np.zeros(1_000), 1.0)).value
    ends = [found.picture.tables[f"{side}_levels"]["observed"][0] for side in ("before", "after")]
    assert ends[0] > 0.1 > ends[1]  # of twenty bars


def test_nothing_to_put_right(rng, problem_of):
    p = rng.random(400)
    problem = problem_of((rng.random(400) < p) * 1, Categorical(p))
    found = advise(problem, is_calibrated=True)
    assert (found.advice.headline, found.picture, found.advice.command) == (NOTHING, None, None)
    assert "that were tried" in found.advice.sentences[0]
    assert advise(problem, is_calibrated=False).advice.headline == ALONE


def test_few_rows_and_few_events(problem_of):
    assert too_few(problem_of([0, 1], Categorical([0.2, 0.3]))) == "2 rows are too few to learn from."
    rare = problem_of([1] * 9 + [0] * 91, Categorical(np.full(100, 0.1)))
    assert too_few(rare) == "All but 9 rows are of one class: too few of others to learn from."
    assert advise(rare, is_calibrated=True).advice.candidates is None
    weightless = problem_of([0, 1] * 40, Categorical(np.full(80, 0.5)), np.repeat([1.0, 0.0], 40))
    assert too_few(weightless) == "40 rows are too few to learn from."


def test_rough_and_thinned_are_said(rng, problem_of):
    y, p = Tempered(2, 3.0).draw(31_000, rng)
    found = advise(problem_of(y, p), is_calibrated=False).advice
    assert "Learned and judged on 30,000 of 31,000 rows, drawn at random." in found.sentences
    small = advise(problem_of(y[:100], p[:100]), is_calibrated=False).advice
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
