import numpy as np
import pytest

from calibrant import Ensemble, Normal, coverage, evaluate
from calibrant.lab import Tempered
from calibrant.reports.model_comparison import curves_of, pictures_of, rows_of
from calibrant.reports.render.html import drawn


@pytest.fixture
def classes(rng, problem_of):
    y, p = Tempered(3, 2.0).draw(200, rng)
    problems = {name: problem_of(y, p) for name in ("a", "b")}
    return problems, {name: evaluate(y, p, n_resamples=99, rng=0, advice=False) for name in problems}


def test_numbers_in_rows(classes):
    _, reports = classes
    first = reports["a"].numbers[0]
    table = rows_of(first, reports).tables["models"]
    assert table["model"].tolist() == ["a", "b"]
    assert table["value"][0] == pytest.approx(100 * first.value)
    assert table["null_high"][1] == pytest.approx(100 * first.null_band.high)


def test_which_pictures_there_are(classes):
    pytest.importorskip("matplotlib")
    pictures = pictures_of(*classes)
    assert [picture.kind for picture in pictures] == ["curves", "comparison", "comparison", "comparison"]
    for picture in pictures:
        assert drawn(picture).startswith("<svg")
        assert picture.description


def test_curves_of_forecasts_are_their_coverage(rng, problem_of):
    y = rng.normal(size=100)
    problems = {"a": problem_of(y, Normal(np.zeros(100), 1.0)), "b": problem_of(y, Ensemble(rng.normal(size=(100, 5))))}
    tables = curves_of(problems).tables
    expected = coverage(y, Normal(np.zeros(100), 1.0), levels=[0.5])["observed"][0]
    row = tables["curve_0"]["predicted"].tolist().index(0.5)
    assert tables["curve_0"]["observed"][row] == pytest.approx(expected)
    assert tables["curve_1"]["model"][0] == "b"
