"""The study of verdicts: its worlds are what they are called, and what it counts is what it says."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Categorical, Quantiles
from calibrant.reports import Advice, Reason
from studies import verdict_worlds
from studies import verdicts as verdicts_module


@pytest.fixture
def worlds():
    return verdict_worlds


@pytest.fixture
def verdicts():
    return verdicts_module


def test_worlds_have_names_of_their_own(worlds):
    names = [case.name for case in worlds.CASES]
    assert len(set(names)) == len(names) == 63
    assert sum(not case.words for case in worlds.CASES) == 30


BINARY = ("forest", "exact 0 and 1", "0.5 % events", "2 % events", "external validation", "uneven weights")


@pytest.mark.parametrize("name", BINARY)
def test_calibrated_worlds_are_calibrated(worlds, name):
    """In ten groups of even numbers of rows, what happens is within four standard errors of what is predicted."""
    case = next(case for case in worlds.CASES if case.name == name)
    data = case.draw(np.random.default_rng(0), 200_000)
    order = np.argsort(data.y_pred, kind="stable").reshape(10, -1)
    p, y = data.y_pred[order], data.y_true[order]
    gap, error = (y - p).sum(axis=1), np.sqrt((p * (1 - p)).sum(axis=1))
    assert np.all(np.abs(gap) <= 4 * error + 1e-9)


def test_the_failing_tail_is_that_of_the_study(worlds):
    """Per 10,000 rows, from 4 million: 39 expected and 29 happening above 1/2, 13.2 and 6 above 0.9, the rest as predicted."""
    data = worlds.failing_tail(np.random.default_rng(0), 4_000_000)
    p, y = data.y_pred, data.y_true

    def events(of, where):
        return of[where].sum() / 400

    assert [events(p, p > 0.5), events(p, p > 0.9)] == pytest.approx([39, 13.2], abs=0.5)
    assert [events(y, p > 0.5), events(y, p > 0.9)] == pytest.approx([29, 6], abs=0.8)
    assert events(y, p < 0.5) == pytest.approx(events(p, p < 0.5), abs=4 * np.sqrt(161 / 400))
    assert p.mean() == pytest.approx(0.02, abs=0.001)


def test_the_cohort_has_its_ratio(worlds):
    data = worlds.cohort(0.41, np.random.default_rng(0), 1_000_000)
    assert data.y_pred.mean() == pytest.approx(0.1, abs=0.002)
    assert data.y_true.mean() / data.y_pred.mean() == pytest.approx(1.4, abs=0.02)


@pytest.mark.parametrize("name", ["P10, P50, P90", "P10, P50, P90, skewed", "19 quantiles", "19 quantiles, skewed"])
def test_calibrated_quantiles_are_exceeded_as_often_as_they_say(worlds, name):
    case = next(case for case in worlds.CASES if case.name == name)
    data = case.draw(np.random.default_rng(0), 50_000)
    assert isinstance(data.y_pred, Quantiles)
    levels = np.asarray(data.y_pred.levels)
    below = (data.y_true[:, None] <= np.asarray(data.y_pred.values)).mean(axis=0)
    assert np.all(np.abs(below - levels) < 4 * np.sqrt(levels * (1 - levels) / 50_000))


def test_forests_have_exact_zeros_and_ones(worlds):
    data = worlds.forest(1.0, np.random.default_rng(0), 1_000)
    assert (data.y_pred == 0).sum() > 50 < (data.y_pred == 1).sum()
    assert not data.y_true[data.y_pred == 0].any()
    three = worlds.forest_of_three(np.random.default_rng(0), 500)
    assert isinstance(three.y_pred, Categorical)
    assert np.asarray(three.y_pred.matrix)[np.arange(500), three.y_true].min() > 0


def advice(reason=None, code=None):
    return Advice("", (), None, None, code, reason)


def test_advice_goes_with_the_verdict(verdicts):
    is_consistent = verdicts.is_consistent
    assert is_consistent(advice(code="fitted = ..."), is_alarm=True)
    assert not is_consistent(advice(), is_alarm=True)
    assert not is_consistent(advice(Reason.NOTHING_WRONG), is_alarm=True)
    assert all(is_consistent(advice(why), is_alarm=True) for why in Reason if why is not Reason.NOTHING_WRONG)
    assert is_consistent(advice(Reason.NOTHING_WRONG), is_alarm=False)
    assert not is_consistent(advice(code="fitted = ..."), is_alarm=False)


def test_the_bound_of_false_alarms(verdicts):
    """21 of 200 in a study of one world, as ever; more in a study of thirty, in any of them."""
    assert verdicts.most_alarms(200) == 21
    most = verdicts.most_alarms(200, 30)
    assert 30 * binom.sf(most, 200, 0.05) <= 0.001 < 30 * binom.sf(most - 1, 200, 0.05)


def test_a_study_goes_on_where_it_stopped(verdicts, worlds, monkeypatch, tmp_path):
    class InTurn:
        map = staticmethod(map)

    (case,) = [case for case in worlds.CASES if case.name == "two classes, 20 rows"]
    first = verdicts.outcomes(case, 1, tmp_path, InTurn())
    (kept,) = tmp_path.iterdir()
    assert kept.name == "two-classes--20-rows.jsonl"
    drawn = []
    monkeypatch.setattr(verdicts, "outcome", lambda case, seed: drawn.append(seed) or first[0])
    again = verdicts.outcomes(case, 2, tmp_path, InTurn())
    assert (drawn, again[0]) == ([1], first[0])
    page = verdicts.page_of({case: again})
    assert "| two classes, 20 rows | 20 | calibrated |" in page
    assert "Worlds above the bound: none." in page
