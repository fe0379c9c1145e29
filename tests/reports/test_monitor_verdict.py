import numpy as np
import pytest

from calibrant import Monitor
from calibrant.monitoring.bets import ClassBets, EventBets, LabelBets
from calibrant.monitoring.control import Limits
from calibrant.monitoring.pit_bets import PITBets
from calibrant.reports.stream_report import evalue, judge_stream

LIMITS = Limits(n_resamples=199)


@pytest.mark.parametrize(
    ("kind", "words", "finding"),
    [
        ("binary", "probabilities are too low", "too low"),
        ("multi-class", "probabilities of dog are too low", "class"),
        ("multi-label", "probabilities of dog are too high", "label"),
        ("numbers", "forecasts are too narrow", "too narrow"),
        ("counts", "forecasts are too low", "too low"),
        ("vectors", "forecasts of coordinate 1 are too low", "too low"),
    ],
)
def test_an_alarm_is_told_since_when_and_which_way(watched, kind, words, finding):
    monitor = watched(kind, n=1500, change=700)
    verdict = judge_stream(monitor, LIMITS)
    assert verdict.headline == f"Not calibrated any more since about row {monitor.alarm.since:,}: {words}."
    assert (verdict.tone, verdict.finding, verdict.is_alarm) == ("bad", finding, True)
    assert f"row {monitor.alarm.row:,}" in verdict.evidence[0]
    assert "at most 5 %" in verdict.evidence[0]
    assert verdict.evidence[1].startswith("In the windows before: ")
    assert verdict.pvalue == monitor.pvalue


def test_a_defect_from_the_first_row_has_no_before(watched):
    verdict = judge_stream(watched(change=0), LIMITS)
    assert verdict.headline.startswith("Not calibrated, from the first rows on: ")
    assert verdict.evidence[1].startswith("Over all: ")


def test_few_rows_before_are_no_before():
    """Of fewer rows nobody would have said that they are calibrated."""
    y, p = np.array([1, 0, 1, 0] + [1] * 60), np.array([0.5] * 4 + [0.1] * 60)
    monitor = Monitor(window=100).update(y, p)
    assert 1 < monitor.alarm.since < monitor.alarm.row < 50
    headline = judge_stream(monitor, LIMITS).headline
    assert headline.startswith("Not calibrated, from the first rows on: ")


def test_a_quiet_stream_is_good_and_its_leaning_no_finding(watched):
    monitor = watched(change=None)
    verdict = judge_stream(monitor, LIMITS)
    assert verdict.headline == "No alarm in 800 rows: nothing says that the model is not calibrated."
    assert (verdict.tone, verdict.finding, verdict.is_alarm) == ("good", "none", False)
    assert monitor.leaning.words in verdict.evidence[1]
    assert "no finding" in verdict.evidence[1]


def test_evidence_halfway_to_an_alarm_makes_unsure(watched):
    monitor = watched(change=0, n=180, alpha=1e-9)
    assert 1e-9 < monitor.pvalue < 10**-4.5
    verdict = judge_stream(monitor, LIMITS)
    assert verdict.tone == "unsure"
    assert "evidence has gathered" in verdict.headline


@pytest.mark.parametrize("n", [1, 49])
def test_few_rows_are_never_called_calibrated(watched, n):
    verdict = judge_stream(watched(change=None, n=n), LIMITS)
    assert verdict.finding == "too few rows"
    assert f"after {n} row{'s' * (n > 1)}." in verdict.headline


def test_before_the_first_row():
    verdict = judge_stream(Monitor(), LIMITS)
    assert (verdict.tone, verdict.finding) == ("unsure", "too few rows")
    assert verdict.evidence == ()


def test_a_stream_that_was_put_right_says_so():
    """Too high for 300 rows, and right for 20,000 after: the alarm stays, and the evidence has gone."""
    rng = np.random.default_rng(0)
    p = rng.random(20_300)
    y = (rng.random(20_300) < np.where(np.arange(20_300) < 300, p**2, p)) * 1
    monitor = Monitor().update(y, p)
    assert monitor.alarm.row < 300
    verdict = judge_stream(monitor, LIMITS)
    assert verdict.tone == "bad"
    assert "has fallen to" in verdict.evidence[-1]


def test_what_was_impossible_is_told():
    verdict = judge_stream(Monitor().update([1, 0, 1], [0.5, 0.5, 0.0]), LIMITS)
    assert "probability zero" in verdict.evidence[-1]
    assert verdict.pvalue == 0


def test_a_second_defect_is_told_beside_the_first():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    truth = np.where(np.arange(3000) < 1000, p**2, np.sqrt(p))
    monitor = Monitor().update((rng.random(3000) < truth) * 1, p)
    verdict = judge_stream(monitor, LIMITS)
    assert "too high" in verdict.headline
    assert "too low, since about row 997" in verdict.evidence[-1]


def test_every_bet_has_a_finding():
    known = {
        "over-confident",
        "under-confident",
        "too high",
        "too low",
        "too narrow",
        "too wide",
        "local",
        "class",
        "label",
    }
    names = ("a", "over-confident", "between 1 % and 2 %")  # which no finding depends on
    for bets in (EventBets(), ClassBets(names), LabelBets(names), PITBets(), PITBets(2)):
        assert {bet.defect.finding for bet in bets.bets()} <= known
    assert {bet.defect.finding for bet in LabelBets(names).bets()} == {"label"}


def test_evalues_in_words():
    assert [evalue(x) for x in (-np.inf, np.log(0.05), np.log(19.5), np.log(123456))] == ["0", "0.05", "19.5", "1e5"]
