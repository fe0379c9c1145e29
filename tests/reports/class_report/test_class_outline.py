import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.reports.class_report.class_outline import class_pictures, outline_of_classes, reliability_of
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.render.html import DRAWINGS


def problem(y, predictions):
    return ClassProblem(np.asarray(y), predictions, None, 99, np.random.SeedSequence(0), None)


@pytest.mark.parametrize(
    ("y", "predictions", "subject", "numbers", "sections"),
    [
        ([0, 1], Categorical([0.2, 0.7]), "event: 1", 9, 0),
        ([0, 2], Categorical(np.full((2, 3), 1 / 3)), "", 5, 1),
        ([[0, 1], [1, 1]], Bernoulli([[0.2, 0.9], [0.5, 0.5]]), "", 3, 1),
    ],
)
def test_what_is_shown_of_which_predictions(y, predictions, subject, numbers, sections):
    outline = outline_of_classes(problem(y, predictions), {})
    assert (outline.subject, len(outline.numbers), len(outline.sections)) == (subject, numbers, sections)
    assert outline.gather[0] == "99 resamples"


def made(problem):
    evidence = outline_of_classes(problem, {}).gather[1]()
    return [make(evidence) for _, make in class_pictures(problem)]


@pytest.mark.parametrize(
    ("k", "kinds"),
    [
        (2, ["reliability", "reliability", "witness", "null"]),
        (3, ["reliability", "classwise", "confusion", "witness", "risk_coverage", "simplex", "null"]),
        (5, ["reliability", "classwise", "confusion", "witness", "risk_coverage", "null"]),
    ],
)
def test_pictures_of_classes(k, kinds, rng, problem_of):
    pytest.importorskip("matplotlib")
    p = rng.dirichlet(np.ones(k), 200)
    pictures = made(problem_of(p.argmax(axis=1), Categorical(p)))
    assert [picture.kind for picture in pictures] == kinds
    assert all(DRAWINGS[picture.kind].to_svg(picture.tables).startswith("<svg") for picture in pictures)
    assert all(any(c.isdigit() for c in picture.description) for picture in pictures)


def test_pictures_of_labels(rng, problem_of):
    p = rng.random((100, 3))
    pictures = made(problem_of((rng.random((100, 3)) < p) * 1, Bernoulli(p)))
    assert [picture.kind for picture in pictures] == ["reliability", "classwise"]


def test_descriptions_say_what_is_seen(rng, problem_of):
    p = rng.random(2000)
    honest = reliability_of(problem_of((rng.random(2000) < p) * 1, Categorical(p)))
    wrong = reliability_of(problem_of((rng.random(2000) < 0.5 * p) * 1, Categorical(p)))
    assert "in 15 groups: " in honest.description
    assert "; the furthest claims 9" in wrong.description
    assert "similar predictions" in wrong.caption
    assert honest.tables["histogram"]["weight"].sum() == 2000
