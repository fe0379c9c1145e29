import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, Categorical, Monitor, Normal
from calibrant.monitoring.control import COLUMNS, PLACES, Limits, drift, noun_of


def binary(rng, n):
    p = rng.random(n)
    return (rng.random(n) < p) * 1, p


def classes(rng, n):
    p = rng.dirichlet([0.5] * 4, n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), Categorical(p)


def labels(rng, n):
    p = rng.random((n, 3))
    return (rng.random((n, 1)) < p) * 1, Bernoulli(p)  # labels that depend on each other


def numbers(rng, n):
    return rng.normal(size=n), Normal(np.zeros(n), 1.0)


WORLDS = {"claim": binary, "class": classes, "label": labels, "level": numbers}


@pytest.mark.parametrize("noun", WORLDS)
def test_calibrated_streams_have_no_mark_as_often_as_stated(noun):
    quiet = 0
    for seed in range(80):
        history = Monitor(window=50).update(*WORLDS[noun](np.random.default_rng(seed), 500)).history
        quiet += not drift(history, Limits(n_resamples=399))["beyond"].any()
    assert quiet >= binom.ppf(0.001, 80, 0.95)
    assert noun_of(history) == noun


def test_the_place_and_the_time_of_a_defect_are_marked():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    is_wrong = (np.arange(4000) >= 2000) & (p > 0.3) & (p <= 0.4)
    y = (rng.random(4000) < np.where(is_wrong, 0.8, p)) * 1
    cells = drift(Monitor(window=500).update(y, p).history, Limits())
    marked = cells["beyond"]
    assert set(cells["place"][marked]) == {"30 to 40 %"}
    assert np.all(cells["first"][marked] > 2000)
    assert np.all(cells["score"][marked] < 0)
    cell = (cells["place"] == "30 to 40 %") & (cells["first"] == 3501)
    rows = slice(3500, 4000)
    here = (p[rows] > 0.3) & (p[rows] <= 0.4)
    assert cells["gap"][cell] == pytest.approx((p - y)[rows][here].mean())
    assert cells["rows"][cell] == here.sum()


def test_levels_that_come_too_often_are_claimed_too_little():
    z = np.random.default_rng(1).normal(1.0, 1.0, 1000)
    cells = drift(Monitor(window=500).update(z, Normal(np.zeros(1000), 1.0)).history, Limits())
    gap = {place: cells["gap"][cells["place"] == place] for place in ("0 to 10 %", "90 to 100 %")}
    assert gap["90 to 100 %"] == pytest.approx([0.1 - (part > 1.2816).mean() for part in z.reshape(2, 500)], abs=1e-3)
    assert np.all(gap["0 to 10 %"] > 0.05)
    assert next(iter(cells["place"])) == "90 to 100 %"


def test_many_windows_and_places_are_put_together_or_left_out():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(30), 700)
    cells = drift(Monitor(window=10).update(rng.integers(0, 30, 700), Categorical(p)).history, Limits(n_resamples=99))
    assert len(set(cells["place"])) == PLACES
    assert len(set(cells["first"])) <= COLUMNS
    assert cells["last"].max() == 700
