import numpy as np

from calibrant import Normal
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.outline import Outline, tables_of


def test_steps_are_counted_and_slices_are_lazy(rng):
    problem = ForecastProblem(rng.normal(size=30), Normal(np.zeros(30), 1.0), None, 99, np.random.SeedSequence(0), None)
    tables = tables_of(problem.levels, {"site": ["a", "b"] * 15, "day": ["x"] * 30})
    assert [name for name, _ in tables] == ["By site", "By day"]
    assert tables[0][1]().table["group"].tolist() == ["a", "b"]
    assert Outline("", [("a", lambda: None)], [], tables, lambda numbers, pictures: None, []).n_steps == 3
