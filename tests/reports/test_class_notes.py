import numpy as np

from calibrant import Bernoulli, Categorical
from calibrant.reports.notes import class_notes


def test_nothing_to_say(rng, problem_of):
    p = rng.random(200)
    assert list(class_notes(problem_of((rng.random(200) < p) * 1, Categorical(p)))) == []


def test_weights_doubles_and_precision(rng, problem_of):
    p = np.tile(rng.random(50), 4).astype(np.float32)
    notes = class_notes(problem_of((rng.random(200) < p) * 1, Categorical(p), np.repeat([1.0, 3.0], 100)))
    assert notes[0] == "Weights are unequal: these 200 rows tell as much as 160 of equal weight."
    assert "75.0 % of the predictions repeat an earlier one: there are 50 different ones." in notes
    assert "Probabilities are in single precision: differences below 1e-7 are rounding." in notes


def test_rare_and_common_classes(rng, problem_of):
    p = rng.dirichlet([20, 1, 1], 300)
    y = np.r_[np.zeros(296, int), [1, 1, 1, 2]]
    notes = class_notes(problem_of(y, Categorical(p, labels=["a", "b", "c"])))
    assert list(notes)[:2] == ["Fewer than 10 rows each: b, c.", "98.7 % of rows are of class a."]


def test_constant_predictions(problem_of):
    assert "All predictions are the same: only their mean can be judged." in class_notes(
        problem_of(np.array([0, 1] * 20), Categorical(np.full(40, 0.5)))
    )


def test_labels_say_how_they_are_tested(rng, problem_of):
    p = rng.random((100, 2))
    y = (rng.random((100, 2)) < p * [1, 0.02]) * 1
    notes = class_notes(problem_of(y, Bernoulli(p)))
    assert notes[0] == "Fewer than 10 rows with, or without, the label: 1."
    assert "The verdict tests every label by itself" in notes[-1]
