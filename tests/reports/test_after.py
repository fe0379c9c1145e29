import numpy as np
import pytest

from calibrant import PIT, Ensemble, Normal, coverage
from calibrant.lab.problems import Tempered
from calibrant.recalibration.dressing import Dressing
from calibrant.recalibration.held_out import in_order
from calibrant.recalibration.temperature import Temperature
from calibrant.reports.after import claims_of, picture_of, problem_after


def test_classes_of_all_folds_are_in_order(rng, problem_of):
    y, p = Tempered(3, 2.0).draw(200, rng)
    parts = Temperature().fit(y, p).held_out
    after = problem_after(problem_of(y, p), parts)
    assert after.predictions.matrix == pytest.approx(in_order(parts).matrix)
    assert after.targets is not None


def test_levels_of_all_folds_are_in_order(rng, problem_of):
    y, members = rng.normal(size=100), rng.normal(size=(100, 4))
    parts = Dressing().fit(y, Ensemble(members)).held_out
    after = problem_after(problem_of(y, Ensemble(members)), parts)
    for part in parts:
        assert after.targets[part.rows] == pytest.approx(PIT()(y[part.rows], part.predictions))


def test_claims_of_forecasts_are_their_coverage(rng, problem_of):
    y = rng.normal(size=300)
    predictions = Normal(np.zeros(300), 2.0)
    found, expected = claims_of(problem_of(y, predictions)), coverage(y, predictions, levels=[0.5])
    row = found["predicted"].tolist().index(0.5)
    for name in ("observed", "low", "high"):
        assert found[name][row] == pytest.approx(expected[name][0])


def test_the_picture_names_the_map(rng, problem_of):
    y, p = Tempered(3, 2.0).draw(200, rng)
    picture = picture_of(problem_of(y, p), Temperature().fit(y, p).held_out, "Temperature()")
    assert "before and after Temperature()" in picture.description
    assert list(picture.tables) == ["before", "after"]
