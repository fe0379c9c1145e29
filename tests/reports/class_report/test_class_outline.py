import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.reports.class_report.class_outline import outline_of_classes
from calibrant.reports.class_report.class_problem import ClassProblem


def problem(y, predictions):
    return ClassProblem(np.asarray(y), predictions, None, 99, np.random.SeedSequence(0), None)


@pytest.mark.parametrize(
    ("y", "predictions", "subject", "numbers", "sections"),
    [
        ([0, 1], Categorical([0.2, 0.7]), "event: 1", 4, 0),
        ([0, 2], Categorical(np.full((2, 3), 1 / 3)), "", 5, 1),
        ([[0, 1], [1, 1]], Bernoulli([[0.2, 0.9], [0.5, 0.5]]), "", 3, 1),
    ],
)
def test_what_is_shown_of_which_predictions(y, predictions, subject, numbers, sections):
    outline = outline_of_classes(problem(y, predictions), {})
    assert (outline.subject, len(outline.numbers), len(outline.sections)) == (subject, numbers, sections)
    assert outline.gather[0] == "99 resamples"
