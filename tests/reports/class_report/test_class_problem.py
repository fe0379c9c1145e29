import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, MultiLabel, PositiveClass, TopLabel
from calibrant.reports.class_report.class_problem import ClassProblem


def problem(predictions, targets):
    return ClassProblem(targets, predictions, None, 99, np.random.SeedSequence(0), None)


@pytest.mark.parametrize(
    ("predictions", "targets", "kind", "lens"),
    [
        (Categorical([0.2, 0.7]), np.array([0, 1]), "binary", PositiveClass()),
        (Categorical([[0.2, 0.3, 0.5]]), np.array([0]), "multi-class", TopLabel()),
        (Bernoulli([[0.2, 0.9]]), np.array([[0, 1]]), "multi-label", MultiLabel()),
    ],
)
def test_kinds_and_lenses(predictions, targets, kind, lens):
    made = problem(predictions, targets)
    assert made.kind == kind
    assert made.lens == lens
    assert made.error.lens == lens


def test_what_is_claimed_and_what_happened():
    made = ClassProblem(
        np.array([0, 1]), Categorical([0.2, 0.7]), np.array([1.0, 3.0]), 99, np.random.SeedSequence(0), None
    )
    assert made.means() == pytest.approx(((0.2 + 3 * 0.7) / 4, 0.75))


def test_what_the_kernel_error_costs():
    assert problem(Categorical([0.2, 0.7]), np.array([0, 1])).kernel_width == 0
    assert problem(Categorical(np.full((2, 3), 1 / 3)), np.array([0, 1])).kernel_width == 3
    assert problem(Bernoulli([[0.2, 0.9]] * 2), np.array([[0, 1]] * 2)).kernel_error is None
    assert problem(Categorical([0.2]), np.array([0])).kernel_error is None
