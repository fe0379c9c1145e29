import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal
from calibrant.reports.forecast_report.forecast_outline import outline_of_forecasts
from calibrant.reports.forecast_report.forecast_pictures import forecast_pictures


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e7)


def made(problem):
    evidence = outline_of_forecasts(problem, {}).gather[1]()
    return {picture.kind: picture for picture in (make(evidence) for _, make in forecast_pictures(problem))}


def test_descriptions_say_what_is_seen(rng, problem_of):
    loc, scale = rng.normal(size=400), rng.uniform(0.5, 2, 400)
    pictures = made(problem_of(loc + 2 * scale * rng.normal(size=400), Normal(loc, scale)))
    assert list(pictures) == ["pit_histogram", "pit_curve", "coverage", "fan", "spread", "witness", "null"]
    assert "where 10.0 % are expected" in pictures["pit_histogram"].description
    assert "intervals that promise 90.0 % held 5" in pictures["coverage"].description
    assert "where 3 are expected" in pictures["fan"].description
    assert "where the spread is 0.5" in pictures["spread"].description
    assert "outcomes below than expected" in pictures["pit_curve"].description
    assert "0.0 % of resamples as much or more" in pictures["null"].description


def test_members_are_few(rng, problem_of):
    values = rng.normal(size=(100, 6))
    pictures = made(problem_of(values[:, 0], Ensemble(values[:, 1:])))
    assert "few members" in pictures["fan"].caption
    assert "few members" in pictures["spread"].caption
    assert "are expected" not in pictures["fan"].description


def test_vectors_have_levels_alone(rng, problem_of):
    problem = problem_of(rng.normal(size=(60, 2)), MultivariateNormal(np.zeros((60, 2)), 1.0))
    assert list(made(problem)) == ["pit_histogram", "pit_curve", "null"]
