import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.reports.class_report.class_faults import ClaimGroups, bound


def test_groups_have_twenty_rows_at_least(rng, problem_of):
    p = rng.random(100)
    groups = ClaimGroups.of(problem_of((rng.random(100) < p) * 1, Categorical(p)))
    assert groups.cells.weight.tolist() == [20] * 5
    assert len(ClaimGroups.along(rng.random(3000), rng.random(3000) < 0.5, None).cells.z) == 15


def test_labels_are_in_one_line(rng, problem_of):
    groups = ClaimGroups.of(problem_of(rng.integers(0, 2, (30, 4)), Bernoulli(rng.random((30, 4)))))
    assert len(groups.probability) == 120


@pytest.mark.parametrize(
    ("z", "run"),
    [
        ([0, 0, 4, 5, 0], slice(2, 4)),
        ([0, 2, 4, 0, 0], slice(1, 3)),
        ([0, -4, -2, -5, 0], slice(1, 4)),
        ([4, 0, 0, -4, 0], None),
        ([4, -1, 4, 0, 0], None),
        ([1, 2, 2, 0, 0], None),
    ],
)
def test_runs(z, run):
    p = np.linspace(0, 1, 5)
    groups = ClaimGroups.along(p, p > 0.5, None)
    cells = type(groups.cells)(*[np.array(z, dtype=float)] * 6)
    assert type(groups)(p, p > 0.5, None, groups.group, cells).run() == run


def test_the_bound_holds_the_largest(rng):
    share = (np.abs(rng.normal(size=(4000, 20))).max(axis=1) > bound(20)).mean()
    assert share == pytest.approx(0.05, abs=0.012)
