import numpy as np
import pytest

from calibrant import CRPS, Ensemble, MultivariateNormal, Normal
from calibrant.inference import holm
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.reports.forecast_report.forecast_verdict import gather_forecasts, groups_of


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e8)


def gathered(problem):
    return gather_forecasts(problem, {"error": problem.error}, {"crps": CRPS()}, ())


def test_levels_and_outcomes_are_put_together_by_holm(rng, problem_of):
    loc, scale = rng.normal(size=80), rng.uniform(0.5, 2, 80)
    evidence = gathered(problem_of(loc + scale * rng.normal(size=80), Normal(loc, scale)))
    parts = [evidence.pit.pvalue, evidence.outcomes.pvalue]
    assert evidence.pvalue == min(1, holm(parts).min())
    assert "Holm over their kinds" in evidence.in_words(80)


def test_members_are_not_resampled_from(rng, problem_of):
    values = rng.normal(size=(80, 6))
    evidence = gathered(problem_of(values[:, 0], Ensemble(values[:, 1:])))
    assert evidence.outcomes is None
    assert evidence.pvalue == evidence.pit.pvalue


def test_quarters_of_rows(rng, problem_of):
    loc, scale = rng.normal(size=80), rng.uniform(0.5, 2, 80)
    spread, mean = groups_of(problem_of(loc, Normal(loc, scale)))
    assert (spread.name, mean.name) == ("predicted spread", "predicted mean")
    assert [len(rows) for rows in spread.rows] == [20] * 4
    assert scale[spread.rows[0]].max() < scale[spread.rows[1]].min()
    assert [group.name for group in groups_of(problem_of(loc, Normal(loc, 1.0)))] == ["predicted mean"]
    assert groups_of(problem_of(loc[:20], Normal(loc[:20], 1.0))) == ()
    vectors = MultivariateNormal(np.zeros((80, 2)), 1.0)
    assert groups_of(problem_of(rng.normal(size=(80, 2)), vectors)) == ()


def test_quarters_of_ensembles_leave_the_order_to_chance():
    """Ranks are even in every quarter of members and outcome together; by members alone the narrow quarter would be a U."""
    values = np.random.default_rng(0).normal(size=(20_000, 4))
    problem = ForecastProblem(values[:, 0], Ensemble(values[:, 1:]), None, 99, np.random.SeedSequence(0), None)
    for slicing in groups_of(problem):
        for rows in slicing.rows:
            counts = np.histogram(problem.pit.targets[rows], 4, (0, 1))[0]
            assert np.abs(counts / len(rows) - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / len(rows))
    narrow = np.argsort(values[:, 1:].std(axis=1))[:5000]
    ends = np.histogram(problem.pit.targets[narrow], 4, (0, 1))[0][[0, 3]].sum()
    assert ends > 0.65 * 5000


def test_coordinates_are_tested_one_by_one(rng, problem_of):
    y = rng.normal(size=(80, 2)) * [1.0, 3.0]
    problem = problem_of(y, MultivariateNormal(np.zeros((80, 2)), 1.0))
    evidence = gather_forecasts(problem, {"error": problem.error}, {}, ())
    assert evidence.coordinates[1].pvalue < 0.05 < evidence.coordinates[0].pvalue
