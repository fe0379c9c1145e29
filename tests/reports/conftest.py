import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.forecast_problem import ForecastProblem


@pytest.fixture
def problem_of():
    """The problem of a report, with few redraws."""

    def make(y, predictions, weights=None):
        kind = ClassProblem if isinstance(predictions, Categorical | Bernoulli) else ForecastProblem
        return kind(np.asarray(y), predictions, weights, 99, np.random.SeedSequence(0), None)

    return make
