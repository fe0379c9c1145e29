import numpy as np
import pytest

from calibrant import Categorical, Laplace, LogLoss, Normal
from calibrant.checks.recalibrator import awkward, drawn, other_kinds
from calibrant.recalibration import Temperature


@pytest.mark.parametrize("on", [2, 3, Normal, Laplace])
def test_the_model_is_too_sure(on, rng):
    problem = drawn(rng, on, 2_000)
    found = Temperature().fit(problem.y, problem.predictions)
    assert found.map.temperature > 1.4
    assert found.scores["change"][0] < 0


@pytest.mark.parametrize("on", [2, 3, Normal])
def test_rows_and_precision(on, rng):
    problem = drawn(rng, on, 20)
    some = problem[np.array([3, 3, 1])]
    assert some.y.tolist() == problem.y[[3, 3, 1]].tolist()
    assert np.array_equal(some.arrays[0], problem.arrays[0][[3, 3, 1]])
    assert all(part.dtype == np.float32 for part in problem.single().arrays)


@pytest.mark.parametrize("on", [2, 3, 7, Normal])
def test_awkward_rows_are_valid(on, rng):
    for name, problem in awkward(rng, on).items():
        assert LogLoss()(problem.y, problem.predictions).n == len(problem.y), name


def test_awkward_classes_are_what_they_say(rng):
    rows = awkward(rng, 3)
    p = rows["separable"].arrays[0]
    assert np.array_equal(p.argmax(axis=1), rows["separable"].y)
    assert np.bincount(rows["a class of a single row"].y)[2] == 1
    assert np.all(rows["a class that is never possible"].arrays[0][:, 2] == 0)
    assert set(rows["nothing but zeros and ones"].arrays[0].ravel()) == {0.0, 1.0}
    assert np.ptp(rows["constant predictions"].arrays[0], axis=0).max() == 0


def test_other_kinds_are_other_kinds():
    classes = [
        kind.n_classes for kind in other_kinds(Categorical(np.full((2, 3), 1 / 3))) if isinstance(kind, Categorical)
    ]
    assert classes == [4, 2]
    assert [type(kind) for kind in other_kinds(Normal([0.0], 1.0))] == [Categorical, Laplace]
