import json

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, Categorical, Ensemble, Monitor, MultivariateNormal, Normal, Poisson
from calibrant._validate import InputError
from calibrant.monitoring import Alarm, Defect
from calibrant.results import Finding


def drawn(probs, rng):
    return (probs.cumsum(axis=1) > rng.random((len(probs), 1))).argmax(axis=1)


def tempered(probs, power):
    return probs**power / (probs**power).sum(axis=1, keepdims=True)


def binary(rng, n):
    p = rng.beta(0.5, 0.5, n)
    return (rng.random(n) < p) * 1, p


def classes(rng, n):
    p = rng.dirichlet([0.5] * 4, n)
    return drawn(p, rng), p


def labels(rng, n):
    p = rng.random((n, 2))
    return (rng.random((n, 1)) < p) * 1, Bernoulli(p)  # labels that depend on each other


def counts(rng, n):
    rate = rng.gamma(3, 1, n)
    return rng.poisson(rate), Poisson(rate)


def ensembles(rng, n):
    return rng.normal(size=n), Ensemble(rng.normal(size=(n, 9)))


WORLDS = [binary, classes, labels, counts, ensembles]


@pytest.mark.parametrize("world", WORLDS)
def test_calibrated_streams_rarely_raise_an_alarm_at_any_look(world):
    alarms = sum(Monitor().update(*world(np.random.default_rng(seed), 400)).alarm is not None for seed in range(120))
    assert alarms <= binom.ppf(0.999, 120, 0.05)


@pytest.mark.study
@pytest.mark.parametrize("world", WORLDS)
def test_ten_thousand_looks(world):
    alarms = sum(
        Monitor().update(*world(np.random.default_rng(seed), 10_000)).alarm is not None for seed in range(1000)
    )
    print(f"{world.__name__}: {alarms} of 1,000 streams of 10,000 looks")
    assert alarms <= binom.ppf(0.999, 1000, 0.05)


def test_a_loose_test_would_be_seen_to_be_loose():
    """The bound above is no bound that everything meets."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(60):
        y, p = binary(rng, 400)
        alarms += Monitor().update(y, np.clip(p + 0.08, 0, 1)).alarm is not None
    assert alarms > binom.ppf(0.999, 60, 0.05)


def shifted(rng, n):
    y, p = binary(rng, n)
    return y, 0.6 * p


def over(rng, n):
    p = rng.dirichlet([1] * 4, n)
    return drawn(tempered(p, 0.5), rng), p


def under(rng, n):
    p = rng.dirichlet([1] * 4, n)
    return drawn(tempered(p, 2), rng), p


def one_class(rng, n):
    p = rng.dirichlet([1] * 4, n)
    q = p * np.array([1, 1, 2.5, 1])
    return drawn(q / q.sum(axis=1, keepdims=True), rng), p


def local(rng, n):
    p = rng.random(n)
    wrong = np.where((p > 0.3) & (p < 0.5), 0.75, p)
    return (rng.random(n) < wrong) * 1, p


def narrow(rng, n):
    return rng.normal(0, 1.6, n), Normal(np.zeros(n), 1.0)


def wide(rng, n):
    return rng.normal(0, 0.6, n), Normal(np.zeros(n), 1.0)


def high(rng, n):
    return rng.poisson(2.0, n), Poisson(np.full(n, 3.0))


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (shifted, "too low"),
        (over, "over-confident"),
        (under, "under-confident"),
        (one_class, "probabilities of 2 are too low"),
        (local, "between 30 % and 50 % are too low"),
        (narrow, "too narrow"),
        (wide, "too wide"),
        (high, "too high"),
    ],
)
def test_defects_are_named_with_their_direction(world, words):
    monitor = Monitor().update(*world(np.random.default_rng(1), 3000))
    assert monitor.alarm is not None
    assert monitor.leaning is not None
    assert words in monitor.leaning.words
    assert monitor.alarm.row < 1500
    assert monitor.pvalue < 1e-6


def test_a_change_is_found_and_dated():
    rng = np.random.default_rng(2)
    y, p = binary(rng, 6000)
    late = np.where(np.arange(6000) < 4000, p, np.clip(p + 0.2, 0, 1))
    alarm = Monitor().update(y, late).alarm
    assert alarm is not None
    assert 4000 < alarm.row < 4400
    assert abs(alarm.since - 4000) < 60
    assert alarm.words == "probabilities are too high"


@pytest.mark.parametrize("world", [*WORLDS, local])
def test_how_rows_come_together_changes_nothing(world):
    y, p = world(np.random.default_rng(3), 300)
    whole, parts = Monitor().update(y, p), Monitor()
    for start, end in ((0, 1), (1, 100), (100, 300)):
        parts = parts.update(y[start:end], p[start:end])
    assert parts.log_evalue == pytest.approx(whole.log_evalue, abs=1e-10)
    assert parts.peak == pytest.approx(whole.peak, abs=1e-10)
    assert parts.alarm == whole.alarm
    assert parts.n == whole.n == 300


@pytest.mark.parametrize("world", [*WORLDS, over])
def test_goes_on_from_json(world):
    y, p = world(np.random.default_rng(4), 200)
    first = Monitor(alpha=0.01, seed=5).update(y[:120], p[:120])
    again = Monitor.from_dict(json.loads(first.to_json()))
    assert again.to_dict() == first.to_dict()
    assert again.update(y[120:], p[120:]).to_dict() == first.update(y[120:], p[120:]).to_dict()


@pytest.mark.parametrize(
    ("y_true", "y_pred", "words"),
    [
        ([0], [1.0], "probabilities are too high"),
        ([1], [0.0], "probabilities are too low"),
        ([0], [[0.0, 0.0, 1.0]], "confidences are too high"),
        ([2], [[0.5, 0.5, 0.0]], "the model is over-confident"),
        ([[1, 0]], Bernoulli(np.array([[0.5, 1.0]])), "probabilities of 1 are too high"),
    ],
)
def test_what_had_probability_zero_says_which_way_predictions_err(y_true, y_pred, words):
    alarm = Monitor().update(y_true, y_pred).alarm
    assert (alarm.row, alarm.words) == (1, words)


def test_json_of_infinite_evidence_and_of_nothing():
    certain = Monitor().update([1, 0], [0.0, 0.5])
    assert certain.alarm == Alarm(1, 1, "probabilities are too low", Defect(Finding.TOO_LOW, Finding.TOO_LOW))
    assert certain.pvalue == 0
    assert Monitor.from_dict(json.loads(certain.to_json())).log_evalue == np.inf
    assert Monitor.from_dict(Monitor().to_dict()).n == 0


@pytest.mark.parametrize("world", [over, narrow, wide, high])
def test_states_whose_alarm_has_words_alone_go_on(world):
    """As they were kept before alarms had a defect."""
    monitor = Monitor().update(*world(np.random.default_rng(1), 1000))
    data = json.loads(monitor.to_json())
    del data["alarm"]["defect"]
    assert Monitor.from_dict(data).alarm == monitor.alarm


def test_what_an_alarm_is_about_does_not_depend_on_names():
    """Labels that are called like what bets say of others."""
    names = ("cat", "cat are too high, and dog", "between 1 % and 2 %")
    p = np.full((300, 3), 0.5)
    y = np.random.default_rng(0).random((300, 3)) < [0.5, 0.5, 0.9]
    alarm = Monitor().update(y * 1, Bernoulli(p, labels=names)).alarm
    assert alarm.defect == Defect(Finding.LABEL, Finding.TOO_LOW, 2)
    assert alarm.words == "probabilities of between 1 % and 2 % are too low"


def test_a_fresh_monitor():
    monitor = Monitor()
    assert (monitor.n, monitor.log_evalue, monitor.pvalue, monitor.leaning) == (0, 0.0, 1.0, None)
    assert Monitor(alpha=0.1).update([1] * 99, [0.1] * 99).restart().to_dict() == Monitor(alpha=0.1).to_dict()
    assert "p-value = 1" in repr(monitor)
    assert "alarm    row" in repr(Monitor().update([1] * 99, [0.1] * 99))


@pytest.mark.parametrize(
    ("y_true", "y_pred", "words"),
    [
        ([0, 1], [0.2, 0.3], "binary predictions: watch"),
        ([0, 1], np.full((2, 12), 1 / 12), "multi-class predictions of 0, 1, 2, 3, 4, 5, 6, 7, 8 and 3 more: watch"),
        ([[0, 1]], Bernoulli(np.array([[0.2, 0.3]])), "multi-label predictions of 0, 1: watch"),
        ([0.5], Normal(np.zeros(1), 1.0), "forecasts of numbers: watch"),
        ([[0.5, 1.0]], MultivariateNormal(np.zeros((1, 2)), 1.0), "forecasts of vectors of 2: watch"),
    ],
)
def test_rows_of_another_kind_are_refused(y_true, y_pred, words):
    monitor = Monitor().update([0, 1], [[0.2, 0.3, 0.5]] * 2)
    start = "y_pred must be like the rows before, multi-class predictions of 0, 1, 2; got "
    with pytest.raises(InputError, match=f"^{start}{words} these with a new monitor"):
        monitor.update(y_true, y_pred)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, np.nan])
def test_alpha_is_a_fraction(alpha):
    with pytest.raises(InputError, match="alpha"):
        Monitor(alpha=alpha)


def test_other_data_are_no_monitor():
    with pytest.raises(InputError, match=r"Monitor\.to_dict gave; got kind 'report'"):
        Monitor.from_dict({"kind": "report"})


def changed(data, path, value):
    """The data with another value in one place."""
    first, *rest = path
    data = dict(data) if isinstance(data, dict) else list(data)
    data[first] = changed(data[first], rest, value) if rest else value
    return data


WINDOWS, EVIDENCE = ("history", "windows"), ("history", "evidence")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "calibrant/2"),
        (("alpha",), "high"),
        (("alpha",), 10**400),
        (("seed",), -1),
        (("seed",), 0.5),
        (("window",), 0),
        (("peak",), "nan"),
        (("bets",), []),
        (("bets", "kind"), "odd"),
        (("wealth", "n"), 10**400),
        (("wealth", "n"), True),
        (("wealth", "stakes"), []),
        (("wealth", "stakes"), "0.5"),
        (("wealth", "won", 0), None),
        (("wealth", "begun", 0), 10**30),
        (("alarm", "row"), 10**9),
        (("alarm", "words"), 7),
        (("alarm", "defect", "finding"), "odd"),
        (("history",), 3),
        ((*WINDOWS, "width"), 0),
        ((*WINDOWS, "width"), -5),
        ((*WINDOWS, "width"), 10**400),
        ((*WINDOWS, "most"), 1),
        ((*WINDOWS, "most"), 10**12),
        ((*WINDOWS, "filled"), -1),
        ((*WINDOWS, "rule"), "largest"),
        ((*WINDOWS, "open"), [0.0]),
        ((*WINDOWS, "closed"), [[1, 2]]),
        ((*WINDOWS, "closed"), [[]]),
        ((*WINDOWS, "closed", 0, 0), 10**300),
        ((*WINDOWS, "closed", 0, 0), -1),
        ((*WINDOWS, "closed", 0, 25), "inf"),
        ((*WINDOWS, "closed", 0, 25), -1e9),
        (("wealth", "won", 0), "-inf"),
        (("peak",), -1),
        ((*EVIDENCE, "width"), 0),
        ((*EVIDENCE, "closed"), []),
        ((*EVIDENCE, "start"), 1),
    ],
    ids=lambda x: ".".join(map(str, x)) if isinstance(x, tuple) else str(x)[:9],
)
def test_states_that_were_tampered_with_are_refused(path, value):
    monitor = Monitor(window=50).update([1] * 300, [0.1] * 300)
    data = json.loads(monitor.to_json())
    assert Monitor.from_dict(data).alarm == monitor.alarm
    with pytest.raises(InputError):
        Monitor.from_dict(changed(data, path, value))


@pytest.mark.parametrize(
    ("predictions", "path", "value"),
    [
        (Normal(np.zeros(4), 1.0), ("bets", "d"), 10**9),
        (Normal(np.zeros(4), 1.0), ("bets", "given"), [0.5, 0.1]),
        (Categorical(np.full((4, 3), 1 / 3)), ("bets", "names"), ["a"] * 10_000),
        (Categorical(np.full((4, 3), 1 / 3)), ("bets", "names"), [1, 2, 3]),
        (Categorical(np.full((4, 3), 1 / 3)), ("bets", "names"), ["a", "b"]),
    ],
    ids=["d", "given", "many", "numbers", "few"],
)
def test_bets_that_were_tampered_with_are_refused(predictions, path, value):
    data = json.loads(Monitor().update([0, 1, 2, 1], predictions).to_json())
    assert Monitor.from_dict(data).n == 4
    with pytest.raises(InputError):
        Monitor.from_dict(changed(data, path, value))
