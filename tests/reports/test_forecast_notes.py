import numpy as np

from calibrant import Ensemble, Normal
from calibrant.distributions import Uniform
from calibrant.reports.notes import forecast_notes


def test_nothing_to_say(rng, problem_of):
    loc = rng.normal(size=100)
    assert list(forecast_notes(problem_of(loc + rng.normal(size=100), Normal(loc, 1.0)))) == []


def test_what_is_said(rng, problem_of):
    y = np.where(np.arange(100) < 10, 0.0, rng.uniform(0, 1.2, 100))
    notes = forecast_notes(problem_of(y, Uniform(np.zeros(100), np.ones(100))))
    assert any(note.startswith("99.0 % of the forecasts repeat an earlier one") for note in notes)
    assert any(note.startswith("10.0 % of outcomes are 0") for note in notes)
    assert any(note.endswith("outcomes lie where their forecast has no probability at all.") for note in notes)
    values = rng.normal(size=(60, 5))
    assert "Members are taken as draws" in forecast_notes(problem_of(values[:, 0], Ensemble(values[:, 1:])))[0]
