import json
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from calibrant import Categorical, Normal, Variational
from calibrant._validate import InputError
from calibrant.lab import Tempered
from calibrant.recalibration import (
    Default,
    Found,
    Map,
    OneVsRest,
    Platt,
    QuantileRecalibration,
    Recalibrator,
    SplineScaling,
    Stack,
    Temperature,
    VectorScaling,
    load_map,
)
from calibrant.recalibration.maps import ClassMap, NamedClasses
from calibrant.recalibration.scaling.temperature import Tempering

NAMES = ("cat", "dog", "owl")


@pytest.fixture
def problem(rng):
    y, p = Tempered(3, 2.0).draw(300, rng)
    return y, p.matrix


@pytest.mark.parametrize("recalibrator", [VectorScaling(), Temperature(), Default()], ids=repr)
def test_classes_are_matched_by_name(recalibrator, problem):
    y, p = problem
    fitted = recalibrator.fit(np.array(NAMES)[y], Categorical(p, NAMES))
    order = [2, 0, 1]
    turned = fitted(Categorical(p[:, order], [NAMES[i] for i in order]))
    assert turned.labels == ("owl", "cat", "dog")
    assert np.array_equal(turned.matrix, fitted(Categorical(p, NAMES)).matrix[:, order])
    assert np.array_equal(fitted(p), fitted(Categorical(p, NAMES)).matrix)  # without names, as they stand


def test_names_are_saved_with_the_map(problem, tmp_path):
    y, p = problem
    fitted = VectorScaling().fit(np.array(NAMES)[y], Categorical(p, NAMES))
    fitted.save(tmp_path / "map.json")
    read = load_map(tmp_path / "map.json")
    assert isinstance(read, NamedClasses)
    assert np.array_equal(read(p), fitted(p))
    for better in (fitted, read):
        with pytest.raises(InputError, match="fitted on the classes 'cat', 'dog', 'owl' and y_pred has 'cow'"):
            better(Categorical(p, ["cat", "dog", "cow"]))
        with pytest.raises(InputError, match="fitted on 3 classes and y_pred has 2"):
            better([0.5])
        with pytest.raises(InputError, match="got Normal predictions"):
            better(Normal([0.0], 1.0))


def test_many_names_are_cut_short():
    named = NamedClasses(tuple("abcdefg"), Tempering("Categorical", 2.0, 7))
    with pytest.raises(InputError, match="the classes 'a', 'b', 'c', 'd', 'e', … and y_pred has 'z': fit it on"):
        named(Categorical(np.full((1, 7), 1 / 7), tuple("abcdefz")))


def test_a_temperature_knows_its_number_of_classes(problem):
    fitted = Temperature().fit(*problem)
    with pytest.raises(
        InputError, match="fitted on 3 classes and y_pred has 2: fit it on predictions of the same model"
    ):
        fitted([0.2, 0.8])


def test_every_map_is_read_from_its_file(problem, tmp_path, rng):
    """Among them those with fields that the file has itself: SimplexMap has n, PITMap has scores."""
    y, p = problem
    real, numbers = Normal(rng.normal(size=300), 1.0), rng.normal(size=300)
    for fitted, predictions in [
        (Default().fit(y, p), p),
        (Stack((Temperature(), VectorScaling())).fit(y, p), p),
        (OneVsRest(Platt()).fit(y, p), p),
        (SplineScaling().fit((y == 0) * 1, p[:, 0]), p[:, 0]),
        (QuantileRecalibration().fit(numbers, real), real),
    ]:
        fitted.save(tmp_path / "map.json")
        old, new = fitted(predictions), load_map(tmp_path / "map.json")(predictions)
        if predictions is real:
            old, new = (q.quantile(np.array([0.1, 0.9])) for q in (old, new))
        assert np.array_equal(old, new)


ODD = ["text", None, -1, [], [1], {}, [[1]], "nan", [None], ["a"], True, [1e308] * 3]


@pytest.mark.parametrize("recalibrator", [Default(), Stack((Temperature(),)), OneVsRest(Platt())], ids=repr)
def test_damaged_files_are_refused_or_used_never_a_crash(recalibrator, problem):
    y, p = problem
    whole = json.loads(json.dumps(recalibrator.fit(y, p, folds=0).map.to_dict()))
    refused = 0
    for name in set(whole) - {"map"}:
        cuts = [whole[name][:-1], [whole[name]]] if isinstance(whole[name], list) else []
        for value in [*ODD, *cuts]:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    Map.from_dict({**whole, name: value})(p)
                except InputError:
                    refused += 1
    assert refused > 20


def test_a_field_with_a_default_may_be_missing():
    assert Map.from_dict({"map": "Tempering", "family": "Normal", "temperature": 2}) == Tempering("Normal", 2)


@dataclass(frozen=True)
class _Broken(ClassMap):
    """Somebody's own map that gives no probabilities."""

    n_classes: int

    def probabilities(self, p):
        return p * np.nan


@dataclass(frozen=True)
class _ToBroken(Recalibrator):
    def find(self, targets, predictions, weights):
        return Found(_Broken(predictions.n_classes))


def test_what_a_map_makes_is_checked_at_the_public_calls():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    with pytest.raises(InputError, match="NaN"):
        _Broken(3)(p)
    with pytest.raises(InputError, match="the recalibrator's maps give has NaN"):
        Variational(recalibrator=_ToBroken())(np.arange(20) % 3, p)


@pytest.mark.parametrize("value", [10**400, 10**300, "1e999", True])
def test_numbers_that_no_double_holds_are_refused(value, problem):
    data = Temperature().fit(*problem).map.to_dict()
    number = next(name for name, found in data.items() if isinstance(found, float))
    with pytest.raises(InputError):
        Map.from_dict({**data, number: value})
