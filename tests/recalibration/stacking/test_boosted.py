import json
import subprocess
import sys

import numpy as np
import pytest

from calibrant import Normal
from calibrant._validate import InputError
from calibrant.recalibration import Boosted, Quadratic, StructuredMatrix, Temperature
from calibrant.recalibration.maps import Map
from calibrant.recalibration.stacking.boosted import BoostedMap, Trees, row_losses


@pytest.fixture(params=["sklearn", "lightgbm", "catboost"])
def library(request):
    pytest.importorskip(request.param)
    return request.param


def labels(truth, rng):
    return (truth.cumsum(axis=1) > rng.random((len(truth), 1))).argmax(axis=1)


def steps(rng, k, n=1_500):
    """A truth that jumps where the first class overtakes the second, which nothing smooth can follow."""
    p = rng.dirichlet(np.ones(k), n)
    low, high = np.linspace(1, 3, k) / np.linspace(1, 3, k).sum(), np.linspace(3, 1, k) / np.linspace(3, 1, k).sum()
    return p, np.where(p[:, :1] > p[:, 1:2], low**2 / (low**2).sum(), high**2 / (high**2).sum())


@pytest.mark.parametrize("k", [2, 4])
def test_jumps_are_found(library, k, rng):
    p, truth = steps(rng, k)
    found = Boosted(library, first=Temperature()).fit(labels(truth, rng), p)
    alone = Temperature().fit(labels(truth, rng), p)
    assert found.scores["change"][0] < -0.05
    assert np.abs(found(p) - truth).mean() < 0.5 * np.abs(alone(p) - truth).mean()


@pytest.mark.parametrize("k", [2, 3])
def test_calibrated_predictions_get_no_trees(library, k, rng):
    p = rng.dirichlet(np.ones(k), 2_000)
    found = Boosted(library, first=None).fit(labels(p, rng), p, folds=0)
    assert np.abs(found(p) - p).mean() < 0.01


@pytest.mark.parametrize("k", [2, 3])
def test_trees_of_all_folds_by_hand(k, rng):
    """No rounds but one, no first map and no last: logits plus the mean of the folds' trees."""
    pytest.importorskip("sklearn")
    p, truth = steps(rng, k, 400)
    p = 0.9 * p + 0.1 / k  # away from the floor
    found = Boosted("sklearn", first=None, trees=1, folds=4).fit(labels(truth, rng), p, folds=0).map
    assert len(found.trees.roots) == 4
    x = np.log(p) - np.log(p).mean(axis=1, keepdims=True) if k > 2 else np.log(p[:, 1:]) - np.log(p[:, :1])
    moved = found.trees(x.astype(np.float32).astype(float), 1 if k == 2 else k)
    logits = np.log(p) + moved if k > 2 else np.log(p) + np.concatenate([0 * moved, moved], axis=1)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert found(p) == pytest.approx(expected, abs=1e-9)


def test_the_paper_has_a_last_map_and_no_first(library, rng):
    for k, last in ((2, Quadratic()), (3, StructuredMatrix())):
        p, truth = steps(rng, k, 800)
        found = Boosted(library, first=None, last=last).fit(labels(truth, rng), p)
        assert found.map.first is None
        assert found.scores["change"][0] < 0
        again = Map.from_dict(json.loads(json.dumps(found.map.to_dict())))
        assert np.array_equal(again(p), found(p))


def test_the_map_is_read_without_the_library(library, tmp_path, rng):
    p, truth = steps(rng, 3, 600)
    found = Boosted(library).fit(labels(truth, rng), p, folds=0)
    found.save(tmp_path / "map.json")
    code = (
        "import sys, json; sys.modules.update(dict.fromkeys(['sklearn', 'lightgbm', 'catboost']));"
        "from calibrant.recalibration.base import load_map;"
        "print(json.dumps(load_map(sys.argv[1])([[0.5, 0.3, 0.2]]).tolist()))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "map.json")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert np.array_equal(json.loads(output), found([[0.5, 0.3, 0.2]]))


def test_sure_networks_do_not_make_it_explode(library, rng):
    """Nearly all rows are sure and right; LightGBM without a ridge had a log loss of 2 nats more on such predictions."""
    k, n = 10, 1_500
    z = rng.normal(size=(n, k)) + 30 * np.eye(k)[rng.integers(k, size=n)]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = np.where(rng.random(n) < 0.05, rng.integers(k, size=n), p.argmax(axis=1))
    scores = Boosted(library, first=Temperature(), folds=3).fit(y, p, folds=3).scores
    temperature = Temperature().fit(y, p, folds=3).scores
    assert scores["after"][0] < temperature["after"][0] + 0.02


@pytest.mark.parametrize("k", [2, 3, 5])
def test_names_of_classes_do_not_matter(library, k, rng):
    if k == 2 and library != "sklearn":
        pytest.skip("its bins of log-odds are cut from one side")
    p, truth = steps(rng, k, 602)
    y, order = labels(truth, rng), np.roll(np.arange(k), 1)
    recalibrator = Boosted(library, first=Temperature())
    plain = recalibrator.fit(y, p, folds=0)(p)
    renamed = recalibrator.fit(np.argsort(order)[y], p[:, order], folds=0)(p[:, order])
    assert np.abs(renamed - plain[:, order]).mean() < 1e-4  # a row may lie next to a threshold


def test_losses_of_rows_by_hand():
    assert row_losses(np.array([[2.0]]), np.array([0])) == pytest.approx([np.log1p(np.exp(2.0))])
    assert row_losses(np.array([[0.0, 1.0, 2.0]]), np.array([1])) == pytest.approx(
        [np.log(np.exp([0, 1, 2]).sum()) - 1]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"library": "xgboost"}, "library must be 'sklearn', 'lightgbm' or 'catboost'; got 'xgboost'"),
        ({"trees": 0}, "trees must be a whole number of at least 1"),
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0 and up to 1; got 0.0"),
        ({"learning_rate": True}, "learning_rate must be a number above 0 and up to 1; got True"),
        ({"first": "platt"}, "first must be a recalibrator or None; got 'platt'"),
        ({"last": Quadratic}, "last must be a recalibrator or None"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        Boosted(**options)


def test_what_it_cannot_take():
    with pytest.raises(InputError, match="Boosted maps class probabilities; got Normal"):
        Boosted().fit([0.0, 1.0], Normal([0.0, 0.0], 1.0))
    with pytest.raises(InputError, match="floor must be a number between 0 and 1/2"):
        BoostedMap(2, 0.5, None, Trees.none(1), None)
    stump = Trees([3], [0.0], [~0], [~1], [0], [0], [[5.0], [7.0]])
    with pytest.raises(InputError, match="trees of 3 classes have 3 features and columns"):
        BoostedMap(3, 0.1, None, stump, None)
