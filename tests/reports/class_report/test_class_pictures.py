import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.plots.drawings import DRAWINGS
from calibrant.reports.class_report.class_outline import outline_of_classes
from calibrant.reports.class_report.class_pictures import class_pictures, reliability_of


def made(problem):
    evidence = outline_of_classes(problem, {}).gather[1]()
    return [make(evidence) for _, make in class_pictures(problem)]


@pytest.mark.parametrize(
    ("k", "kinds"),
    [
        (2, ["reliability", "reliability", "witness", "null"]),
        (3, ["reliability", "classwise", "confusion", "witness", "simplex", "null"]),
        (5, ["reliability", "classwise", "confusion", "witness", "null"]),
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
