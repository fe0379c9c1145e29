import numpy as np
import pytest

from calibrant import CRPS, Brier, Categorical, Ensemble, LogLoss, Normal
from calibrant.lab import Tempered
from calibrant.recalibration import Default, Temperature, VectorScaling
from calibrant.recalibration.base import (
    FLOORED,
    HeldOut,
    folds_of_rows,
    held_out,
    impossible,
    in_order,
    mean_change,
    scores,
)


@pytest.fixture
def problem(rng):
    return Tempered(3, 2.0).draw(200, rng)


def whole(predictions):
    return [HeldOut(np.arange(len(predictions)), predictions)]


def test_no_row_helps_with_its_own_map(problem):
    y, p = problem
    fold = folds_of_rows(len(y), 4, 1)
    parts = held_out(Temperature(), y, p, None, fold)
    assert sorted(np.concatenate([part.rows for part in parts]).tolist()) == list(range(200))
    for part in parts:
        others = np.setdiff1d(np.arange(200), part.rows)
        expected = Temperature().fit(y[others], p[others], folds=0)(p[part.rows])
        assert np.array_equal(part.predictions.matrix, expected.matrix)


def test_rows_below_fold_0_are_never_held_out(problem):
    y, p = problem
    fold = np.where(np.arange(200) < 50, 0, -1)
    (part,) = held_out(Temperature(), y, p, None, fold)
    assert part.rows.tolist() == list(range(50))


def test_folds_in_the_order_of_the_rows(problem):
    y, p = problem
    fitted = Temperature().fit(y, Categorical(p.matrix, ["a", "b", "c"]), seed=5)
    found = in_order(fitted.held_out)
    assert found.labels == ("a", "b", "c")
    for part in fitted.held_out:
        assert np.array_equal(found.matrix[part.rows], part.predictions.matrix)
    assert LogLoss()(y, found.matrix).value == pytest.approx(fitted.scores["after"][0], rel=1e-12)


def test_of_two_classes_the_brier_score_is_the_one_of_the_estimator(rng):
    p = rng.random(50)
    y = (rng.random(50) < p) * 1
    table = scores(y, Categorical(p), None, whole(Categorical(p**2)))
    assert table["before"][1] == pytest.approx(Brier()(y, p).value, rel=1e-12)
    assert table["after"][1] == pytest.approx(Brier()(y, p**2).value, rel=1e-12)


def test_the_error_is_that_of_the_mean_change(problem):
    y, p = problem
    table = scores(y, p, None, whole(p.temper(2.0)))
    change = p.log_prob(y) - p.temper(2.0).log_prob(y)
    assert table["change"][0] == pytest.approx(change.mean(), rel=1e-10)
    assert table["error"][0] == pytest.approx(change.std() / 200**0.5, rel=1e-10)


def test_infinite_log_losses_are_floored_before_they_are_compared():
    """Of three rows, at half an event in four."""
    before, after = Categorical([0.0, 0.8, 0.6]), Categorical([0.0, 0.9, 0.7])
    table = scores(np.array([1, 1, 1]), before, None, whole(after))
    assert table["score"].tolist() == [FLOORED, "Brier"]
    assert table["before"][0] == pytest.approx(-np.log([0.125, 0.8, 0.6]).mean(), rel=1e-12)
    assert table["change"][0] == pytest.approx(-(np.log(0.9 / 0.8) + np.log(0.7 / 0.6)) / 3, rel=1e-12)
    mended = scores(np.array([1, 1, 1]), before, None, whole(Categorical([0.2, 0.8, 0.6])))
    assert mended["change"][0] == pytest.approx(np.log(0.125 / 0.2) / 3, rel=1e-12)
    assert np.isfinite(mended["error"]).all()


def test_how_many_rows_were_called_impossible_is_said():
    y, before = np.array([1, 1, 1]), Categorical([0.0, 0.0, 0.6])
    (words,) = impossible(y, before, None, whole(Categorical([0.0, 0.8, 0.6])))
    assert words.startswith("2 rows had probability 0 for what happened, 1 after the map: the log loss is infinite. ")
    assert "smaller probabilities than 0.125" in words
    assert "none after the map" in impossible(y, before, None, whole(Categorical([0.1, 0.8, 0.6])))[0]
    assert impossible(y, before, np.array([0.0, 0.0, 1.0]), whole(before)) == ()
    assert impossible(y, Categorical([0.5] * 3), None, whole(Categorical([0.5] * 3))) == ()


def test_a_row_newly_called_impossible_is_infinitely_worse():
    y, half, after = np.array([1, 1]), Categorical([0.5, 0.5]), Categorical([0.0, 0.5])
    table = scores(y, half, None, whole(after))
    assert (table["score"][0], table["change"][0], table["error"][0]) == ("log loss", np.inf, np.inf)
    (words,) = impossible(y, half, None, whole(after))
    assert words == "1 row that happened got probability 0 from the map: the log loss is infinite"


def test_rows_without_weight_cost_nothing_though_they_were_called_impossible():
    table = scores(np.array([1, 1]), Categorical([0.0, 0.5]), np.array([0.0, 2.0]), whole(Categorical([0.0, 0.6])))
    assert table["score"][0] == "log loss"
    assert table["before"][0] == pytest.approx(np.log(2), rel=1e-12)


def test_no_change_is_not_a_number():
    infinite, mixed = np.array([np.inf, 1.0]), np.array([1.0, np.inf])
    for pair in ((infinite, mixed), (infinite, infinite), (infinite, np.ones(2)), (np.ones(2), infinite)):
        assert not np.isnan(mean_change(*pair, np.full(2, 0.5))).any()


def test_scores_of_numbers(rng):
    y = rng.normal(size=20)
    narrow, wide, members = Normal(np.zeros(20), 1.0), Normal(np.zeros(20), 2.0), Ensemble(rng.normal(size=(20, 5)))
    table = scores(y, narrow, None, whole(wide))
    assert table["score"].tolist() == ["log loss", "CRPS"]
    assert table["after"] == pytest.approx([LogLoss()(y, wide).value, CRPS()(y, wide).value], rel=1e-12)
    assert scores(y, members, None, whole(wide))["score"].tolist() == ["CRPS"]  # members have no density


def test_predictions_without_a_score(rng):
    vectors = Ensemble(rng.normal(size=(20, 5, 2)))
    assert scores(rng.normal(size=(20, 2)), vectors, None, whole(vectors)) is None


@pytest.mark.parametrize("recalibrator", [Temperature(), Default(), VectorScaling()], ids=repr)
def test_folds_by_an_engine_have_the_same_digits(recalibrator, problem, travelling):
    y, p = problem
    fold, w = folds_of_rows(200, 4, 1), np.linspace(1, 2, 200)
    alone, there = (held_out(recalibrator, y, p, w, fold, engine) for engine in (None, travelling))
    assert len(travelling.sizes) == 4
    for here, elsewhere in zip(alone, there, strict=True):
        assert np.array_equal(here.rows, elsewhere.rows)
        assert np.array_equal(here.predictions.matrix, elsewhere.predictions.matrix)


def test_a_fit_takes_an_engine(problem, travelling):
    y, p = problem
    alone, there = (Temperature().fit(y, p, engine=engine) for engine in (None, travelling))
    assert there.scores.to_dict() == alone.scores.to_dict()
    assert len(travelling.sizes) == 5
