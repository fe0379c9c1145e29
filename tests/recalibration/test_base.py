import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from calibrant import Brier, Categorical, LogLoss, Normal
from calibrant._validate import InputError
from calibrant.lab import Tempered
from calibrant.recalibration import Found, Recalibrator, Temperature, load_map
from calibrant.recalibration.base import FLOORED, folds_of_rows
from calibrant.recalibration.maps import ClassMap, Map


@dataclass(frozen=True)
class Blend(ClassMap):
    """A map of one's own: a share of the base rates."""

    n_classes: int
    share: float
    rates: np.ndarray

    def probabilities(self, p):
        return (1 - self.share) * p + self.share * self.rates


@dataclass(frozen=True)
class Blending(Recalibrator):
    share: float = 0.2
    is_converged: bool = True

    def find(self, targets, predictions, weights):
        k = predictions.n_classes
        rates = np.bincount(targets, weights, minlength=k) / (len(targets) if weights is None else weights.sum())
        return Found(Blend(k, self.share, rates), self.is_converged)


@pytest.fixture
def data(rng):
    y, p = Tempered(3, 3.0).draw(400, rng)
    return y, p.matrix


def test_a_fitted_map_is_a_function_of_predictions(data):
    y, p = data
    fitted = Blending().fit(y, p)
    expected = 0.8 * p + 0.2 * np.bincount(y) / 400
    assert fitted(p) == pytest.approx(expected, rel=1e-14)
    found = fitted(Categorical(p, labels=["a", "b", "c"]))
    assert isinstance(found, Categorical)
    assert found.labels == ("a", "b", "c")
    assert fitted(p.astype(np.float32)).dtype == np.float64


def test_one_column_stays_one_column(rng):
    p = rng.random(100)
    y = (rng.random(100) < p) * 1
    found = Blending().fit(y, p)(p)
    assert found == pytest.approx(0.8 * p + 0.2 * y.mean(), rel=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_of_rows_that_were_not_seen(weighted, data, rng):
    y, p = data
    w = rng.random(400) if weighted else None
    scores = Blending().fit(y, p, sample_weight=w, folds=4, seed=3).scores
    fold, mapped = folds_of_rows(400, 4, 3), np.empty_like(p)
    for k in range(4):
        learn = fold != k
        weights = None if w is None else w[learn]
        mapped[~learn] = Blending().find(y[learn], Categorical(p[learn]), weights).map.probabilities(p[~learn])
    for row, score in zip(scores.rows(), (LogLoss(), Brier()), strict=True):
        assert row["before"] == pytest.approx(score(y, p, sample_weight=w).value, rel=1e-12)
        assert row["after"] == pytest.approx(score(y, mapped, sample_weight=w).value, rel=1e-12)
        assert row["change"] == pytest.approx(row["after"] - row["before"], rel=1e-9)


def test_the_error_of_the_change_is_that_of_a_mean(data):
    y, p = data
    scores = Temperature().fit(y, p).scores
    assert 0 < scores["error"][0] < abs(scores["change"][0])


def test_a_map_that_makes_things_worse_says_so(rng):
    y, p = Tempered(3).draw(300, rng)
    fitted = Blending(0.9).fit(y, p)
    assert fitted.is_worse
    assert "held-out log loss got worse: do not use this map" in fitted.notes
    assert "worse" in repr(fitted)
    assert not Temperature().fit(*Tempered(3, 3.0).draw(300, rng)).is_worse


@dataclass(frozen=True)
class Swap(ClassMap):
    n_classes: int = 2

    def probabilities(self, p):
        return p[:, ::-1]


class Swapping(Recalibrator):
    def find(self, targets, predictions, weights):
        return Found(Swap())


def test_losses_that_are_infinite_before_and_after_are_floored():
    """Ten rows were impossible before, ten others after: no change, and none that is not a number."""
    y = np.arange(20) % 2
    fitted = Swapping().fit(y, np.where(np.arange(20) < 10, y, 1 - y) * 1.0)
    assert fitted.scores["score"][0] == FLOORED
    assert fitted.scores["before"][0] == fitted.scores["after"][0] == pytest.approx(np.log(42) / 2)
    assert fitted.scores["change"][0] == pytest.approx(0, abs=1e-12)
    assert "10 rows had probability 0 for what happened, 10 after the map" in fitted.notes[0]
    assert "nan" not in repr(fitted)


def test_no_folds_no_scores(data):
    fitted = Blending().fit(*data, folds=0)
    assert fitted.scores is None
    assert not fitted.is_worse
    assert fitted.notes == ()


def test_a_search_that_did_not_end_says_so(data):
    fitted = Blending(is_converged=False).fit(*data)
    assert not fitted.is_converged
    assert fitted.notes[0] == "the fit did not converge"


def test_saved_and_read_back_digit_by_digit(data, tmp_path):
    y, p = data
    fitted = Blending().fit(y, p)
    fitted.save(tmp_path / "map.json")
    read = load_map(tmp_path / "map.json")
    assert isinstance(read, Blend)
    assert np.array_equal(read(p), fitted(p))
    written = json.loads((tmp_path / "map.json").read_text())
    assert written["kind"] == "recalibration"
    assert written["recalibrator"] == "Blending(share=0.2, is_converged=True)"
    assert written["scores"]["score"] == ["log loss", "Brier"]


def test_a_map_is_read_by_a_program_that_never_fitted_one(tmp_path):
    """Its module is found by the name in the file."""
    data = {"kind": "recalibration", "map": {"map": "Tempering", "family": "Categorical", "temperature": 2.0}}
    (tmp_path / "map.json").write_text(json.dumps(data))
    code = (
        "import sys; from calibrant.recalibration.base import load_map; "
        "print(load_map(sys.argv[1])([0.8]).round(6).tolist())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "map.json")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[0.666667]\n"


def tempering(temperature):
    inside = f'{{"map": "Tempering", "family": "Categorical", "temperature": {temperature}}}'
    return f'{{"kind": "recalibration", "map": {inside}}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no recalibration map"),
        ("[]", "was not written by Recalibration.save"),
        ('{"kind": "estimate"}', "was not written by Recalibration.save"),
        ('{"kind": "recalibration"}', "has no field 'map'"),
        ('{"kind": "recalibration", "map": {"map": "Blen"}}', r"there is no map 'Blen' \(did you mean 'Blend'\?\)"),
        ('{"kind": "recalibration", "map": {"map": "Blend", "share": 1}}', "has the fields"),
        (
            '{"kind": "recalibration", "schema": "calibrant/2", "map": {}}',
            "format 'calibrant/2'; .* reads 'calibrant/1'",
        ),
        (tempering("-1"), "the file's Tempering cannot be used: temperature must be a positive number; got -1"),
        (tempering('"hot"'), "the file's Tempering cannot be used: temperature is hot"),
        (tempering("[2]"), r"the file's Tempering cannot be used: temperature is \[2\]"),
        (tempering('2, "n_classes": true'), "n_classes is True"),
        (tempering("2")[:-1] + ', "labels": 3}', "labels must be different names, one per class; got 3"),
        (tempering("2")[:-1] + ', "labels": ["a", "a"]}', "labels must be different names"),
    ],
)
def test_files_that_are_no_maps(text, message, tmp_path):
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load_map(tmp_path / "map.json")


def test_other_predictions_are_refused(data):
    fitted = Blending().fit(*data)
    with pytest.raises(
        InputError, match="fitted on 3 classes and y_pred has 2: fit it on predictions of the same model"
    ):
        fitted([0.2, 0.8])
    with pytest.raises(InputError, match="Blend maps class probabilities; got Normal predictions"):
        fitted(Normal([0.0], [1.0]))


def test_numbers_that_json_lacks_come_back():
    again = Map.from_dict(json.loads(json.dumps(Blend(2, np.inf, np.array([0.1, 0.9])).to_dict())))
    assert again.share == np.inf
    assert again.rates.tolist() == [0.1, 0.9]


def test_bad_input(data):
    y, p = data
    with pytest.raises(InputError, match="got 500 folds of 400 rows"):
        Blending().fit(y, p, folds=500)
    with pytest.raises(InputError, match="look swapped"):
        Blending().fit(p[:, 0], y)


def test_what_breaks_while_a_map_is_made_is_told(tmp_path, monkeypatch):
    path = tmp_path / "map.json"
    Temperature().fit([0, 1, 1, 0] * 10, [0.3, 0.6, 0.2, 0.9] * 10).save(path)

    def broken(data):
        raise OverflowError("too large")

    monkeypatch.setattr(Map, "from_dict", broken)
    with pytest.raises(InputError, match="map.json is no recalibration map: too large"):
        load_map(path)
