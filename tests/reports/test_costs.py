import numpy as np
import pytest

from calibrant import evaluate
from calibrant.reports.costs import LAST, REST, announcer, cost


def test_long_steps_count_for_more():
    assert cost("400 redraws") > cost("What to do") > cost("Kernel error (SKCE)") > cost("Levels") > cost("By site")
    assert cost("anything else") == REST


def test_a_report_tells_of_all_its_work():
    seen = []
    by = {"site": ["a", "b", "b"] * 20}
    evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, by=by, n_resamples=99, progress=lambda *step: seen.append(step))
    names, done, totals = zip(*seen, strict=True)
    assert len(set(totals)) == 1
    assert names[-2:] == ("What to do", LAST)
    assert "By site" in names
    assert done[0] == 0
    assert done[-1] == totals[0] == pytest.approx(sum(map(cost, names[:-1])))
    assert done[:-1] == pytest.approx(np.cumsum([0.0, *map(cost, names[:-2])]))
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
