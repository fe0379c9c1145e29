import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Normal
from calibrant.distributions import as_problem
from calibrant.estimators import PIT
from calibrant.lab import Tempered
from calibrant.recalibration import Dressing, Temperature, VarianceScaling
from calibrant.recalibration.base import in_order
from calibrant.reports.render.html import drawn
from calibrant.reports.trials import claims_of, picture_of, problem_after


def test_classes_of_all_folds_are_in_order(rng, problem_of):
    y, p = Tempered(3, 2.0).draw(200, rng)
    parts = Temperature().fit(y, p).held_out
    after = problem_after(problem_of(y, p), parts)
    assert after.predictions.matrix == pytest.approx(in_order(parts).matrix)
    assert after.targets is not None


def test_classes_named_by_numbers_are_looked_up_once(rng, problem_of):
    """Targets of a checked problem are columns: 1 is the second class, whatever its name."""
    y, batch = Tempered(3, 2.0).draw(200, rng)
    names = np.array([2, 0, 1])
    sides = (y, Categorical(batch.matrix)), (names[y], Categorical(batch.matrix, labels=names.tolist()))
    after = [problem_after(problem_of(*as_problem(*side)), Temperature().fit(*side).held_out) for side in sides]
    plain, named = (one.test(one.error).statistic for one in after)
    assert named == pytest.approx(plain)


def test_levels_of_all_folds_are_in_order(rng, problem_of):
    y, members = rng.normal(size=100), rng.normal(size=(100, 4))
    parts = Dressing().fit(y, Ensemble(members)).held_out
    after = problem_after(problem_of(y, Ensemble(members)), parts)
    for part in parts:
        assert after.targets[part.rows] == pytest.approx(PIT()(y[part.rows], part.predictions))


def test_claims_are_drawn_as_in_reports(rng, problem_of):
    y, p = Tempered(3, 2.0).draw(200, rng)
    assert claims_of(problem_of(y, p)).kind == "reliability"
    normal = problem_of(rng.normal(size=100), Normal(np.zeros(100), 1.0))
    assert claims_of(normal).tables["pit_histogram"]["observed"].sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["classes", "forecasts"])
def test_the_picture_has_both_sides_and_can_be_drawn(kind, rng, problem_of):
    pytest.importorskip("matplotlib")
    y, p = Tempered(3, 2.0).draw(200, rng)
    recalibrator = Temperature()
    if kind == "forecasts":
        y, p, recalibrator = 3 * rng.normal(size=200), Normal(np.zeros(200), 1.0), VarianceScaling()
    picture = picture_of(problem_of(y, p), recalibrator.fit(y, p).held_out, "the map")
    assert "After the map:" in picture.description
    assert {name.partition("_")[0] for name in picture.tables} == {"before", "after"}
    assert drawn(picture).startswith("<svg")
