import numpy as np
import pytest

from calibrant import Bernoulli
from calibrant.recalibration import Platt
from calibrant.reports import Reason, Verdict
from calibrant.reports.advice import advise_on
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.results import Finding

GOOD, BAD = Verdict("good", "", (), 0.5, Finding.NONE), Verdict("bad", "", (), 0.001, Finding.LABEL)


def labels(p, y, names=("wet", "cold", "dark")):
    return ClassProblem(y, Bernoulli(p, labels=names), None, 99, np.random.SeedSequence(0), None)


@pytest.fixture
def advised(rng):
    p = rng.random((800, 3))
    y = (rng.random((800, 3)) < np.stack([p[:, 0], p[:, 1] ** 2, p[:, 2]], axis=1)).astype(int)
    return p, y, advise_on(labels(p, y), verdict=BAD, source=["x.csv", "--y-true", "y_*", "--y-pred", "p_*"])


def test_each_label_by_itself(advised):
    p, y, found = advised
    table = found.advice.candidates
    assert found.advice.headline.startswith("1 of 3 labels would gain. cold: Platt() would lower the log loss by ")
    assert table["label"][0] == "cold"
    assert table["recalibrator"].tolist() == ["Platt()", "as they are", "as they are"]
    scores = Platt().fit(y[:, 1], p[:, 1]).scores
    assert table["change"][0] == pytest.approx(scores["change"][0], rel=1e-9)
    assert found.picture.kind == "before_after"


def test_the_command_and_the_code_are_of_that_label(advised):
    p, y, found = advised
    assert found.advice.command.startswith("calibrant recalibrate x.csv --y-true y_cold --y-pred p_cold --method")
    names = {"y_true": y, "y_pred": p, "new_predictions": p}
    exec(found.advice.code, names)
    assert len(names["better"]) == 800


def test_calibrated_labels_and_those_with_too_few_events(rng):
    p = rng.random((300, 2))
    p[:, 1] = 0.001
    y = (rng.random((300, 2)) < p).astype(int)
    found = advise_on(labels(p, y, ("a", "b")), verdict=GOOD).advice
    assert found.reason is Reason.NOTHING_WRONG
    assert found.sentences[0] == "1 label has too few rows of either kind to learn from."
    none = advise_on(labels(p[:, [1]], y[:, [1]], ("b",)), verdict=GOOD).advice
    assert none.headline == "No label has enough rows of both kinds to learn from."
    few = advise_on(labels(p[:9], y[:9], ("a", "b")), verdict=GOOD).advice
    assert few.headline == "9 rows are too few to learn from."


def test_many_labels(rng):
    p = rng.random((120, 30))
    y = (rng.random((120, 30)) < p).astype(int)
    found = advise_on(labels(p, y, tuple(map(str, range(30)))), verdict=GOOD).advice
    assert "The first 20 labels of 30." in found.sentences
    assert found.candidates.n_rows == 20


def test_other_problems_are_as_they_are(rng, problem_of):
    from calibrant import Normal

    problem = problem_of(rng.normal(size=60), Normal(np.zeros(60), 1.0))
    assert advise_on(problem, verdict=GOOD).advice.reason is Reason.NOTHING_WRONG


def test_an_alarm_names_the_likeliest_label_or_says_that_rows_are_few():
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.random((200, 3))
        y = (rng.random((200, 3)) < p).astype(int)
        found.append(advise_on(labels(p, y), verdict=BAD).advice)
    offered = [advice.headline for advice in found if advice.reason is None]
    assert all(line.startswith("1 of 3 labels would gain.") for line in offered)
    assert Reason.UNSURE in {advice.reason for advice in found} <= {None, Reason.UNSURE}
