import numpy as np
import pytest

from calibrant import evaluate
from calibrant.reports.core.model import LAST, Step, announcer


def test_a_step_is_its_name_with_its_work():
    step = Step("400 resamples", 50.0)
    assert (step, step.work) == ("400 resamples", 50.0)
    assert Step("Brier score").work < 1


def test_a_report_tells_of_all_its_work():
    seen = []
    by = {"site": ["a", "b", "b"] * 20, "resamples": ["a", "b", "b"] * 20}
    evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, by=by, n_resamples=99, progress=lambda *step: seen.append(step))
    names, done, totals = zip(*seen, strict=True)
    assert len(set(totals)) == 1
    assert names[-2:] == ("What to do", LAST)
    assert "By site" in names
    work = {step: step.work for step in names}
    assert (
        work["99 resamples"]
        > work["What to do"]
        > work["Kernel error (SKCE)"]
        > work["By resamples"]
        == work["By site"]
    )
    assert done[0] == 0
    assert done[-1] == totals[0] == pytest.approx(sum(step.work for step in names))
    assert done[:-1] == pytest.approx(np.cumsum([0.0, *(step.work for step in names[:-2])]))
    assert totals[0] < 110  # shares of a hundred, and small change


def test_without_advice_the_work_is_less():
    seen = []
    options = {"n_resamples": 99, "advice": False, "progress": lambda *step: seen.append(step)}
    evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, **options)
    assert "What to do" not in [step[0] for step in seen]
    assert seen[-1][1] == seen[-1][2]


def test_an_announcer_of_nothing():
    seen = []
    announcer([], lambda *step: seen.append(step))(LAST)
    assert seen == [(LAST, 0, 0)]
