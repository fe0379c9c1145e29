import sys

import numpy as np
import pytest
from scipy.special import expit, softmax

from calibrant._validate import InputError
from calibrant.recalibration.stacking import boosted
from calibrant.recalibration.stacking.boosted import GROWERS, RIDGE, Start, joined

LIBRARIES = ["sklearn", "lightgbm", "catboost"]


@pytest.fixture(params=LIBRARIES)
def library(request):
    pytest.importorskip(request.param)
    return request.param


def start(rng, k, n=400, missing=False):
    x = rng.normal(size=(n, 1 if k == 2 else k)).astype(np.float32).astype(np.float64)
    y = (x[:, 0] > rng.normal(size=n)).astype(np.int64) if k == 2 else (x + rng.gumbel(size=(n, k))).argmax(axis=1)
    y = np.where(y == k - 1, 0, y) if missing else y
    return Start(x, y, rng.uniform(0.5, 2, n), 0.3 * rng.normal(size=(n, 1 if k == 2 else k)), k)


def loss(rows, logits):
    p = np.concatenate([expit(-logits), expit(logits)], axis=1) if rows.n_classes == 2 else softmax(logits, axis=1)
    return -rows.w @ np.log(p[np.arange(len(p)), rows.y]) / rows.w.sum()


@pytest.mark.parametrize("k", [2, 3])
def test_every_round_lowers_the_loss_of_its_rows(library, k, rng):
    rows = start(rng, k)
    rounds = GROWERS[library][0](rows, 5, 0.3, 0)
    assert len(rounds) == 5
    logits, losses = rows.logits, []
    for trees in rounds:
        losses.append(loss(rows, logits))
        logits = logits + trees(rows.x, logits.shape[1])
    assert np.all(np.diff([*losses, loss(rows, logits)]) < 0)


@pytest.mark.parametrize("k", [2, 3])
def test_arrays_say_what_the_library_says(library, k, rng, monkeypatch):
    """Raw values of the library's own model, on rows it has not seen, against the sum of our arrays."""
    rows, fresh = start(rng, k), rng.normal(size=(50, 1 if k == 2 else k)).astype(np.float32).astype(np.float64)
    models = []
    if library == "lightgbm":
        import lightgbm

        train = lightgbm.train
        monkeypatch.setattr(lightgbm, "train", lambda *args: models.append(train(*args)) or models[-1])
    elif library == "catboost":
        import catboost

        fit = catboost.CatBoost.fit
        monkeypatch.setattr(catboost.CatBoost, "fit", lambda self, data: models.append(fit(self, data)) or models[-1])
    else:
        pytest.skip("grown by our own loop; its leaves are checked by hand")
    found = joined(GROWERS[library][0](rows, 4, 0.3, 0), 1)(fresh, rows.logits.shape[1])
    if library == "lightgbm":
        expected = models[0].predict(fresh, raw_score=True)
    else:
        expected = models[0].predict(fresh, prediction_type="RawFormulaVal")
    assert found == pytest.approx(np.reshape(expected, found.shape), abs=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_leaves_are_newton_steps_with_a_ridge(k, rng):
    pytest.importorskip("sklearn")
    rows = start(rng, k)
    (trees,) = GROWERS["sklearn"][0](rows, 1, 0.5, 0)
    value = trees(rows.x, rows.logits.shape[1])
    p = expit(rows.logits) if k == 2 else softmax(rows.logits, axis=1)
    rest = rows.observed - p
    for step in np.unique(value, axis=0):
        leaf = np.all(value == step, axis=1)
        w = rows.w[leaf, None]
        expected = 0.5 * (w * rest[leaf]).sum(axis=0) / ((w * p[leaf] * (1 - p[leaf])).sum(axis=0) + RIDGE)
        assert step == pytest.approx(expected)
        assert rows.w[leaf].sum() >= boosted.ROWS - 1e-9


def test_a_class_that_never_happens_has_a_column(library, rng):
    rows = start(rng, 4, missing=True)
    rounds = GROWERS[library][0](rows, 3, 0.3, 0)
    before, after = (softmax(rows.logits + x, axis=1) for x in (0, sum(trees(rows.x, 4) for trees in rounds)))
    assert np.isfinite(after).all()
    assert after[:, 3].mean() < before[:, 3].mean() + 0.001
    assert loss(rows, np.log(after)) < loss(rows, np.log(before))


def test_the_same_digits_twice(library, rng):
    rows = start(rng, 3)
    one, two = (joined(GROWERS[library][0](rows, 3, 0.3, 0), 1)(rows.x, 3) for _ in range(2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("library", "package"), [("sklearn", "scikit-learn"), ("lightgbm", "lightgbm"), ("catboost", "catboost")]
)
def test_a_library_that_is_not_there(library, package, rng, monkeypatch):
    for name in (library, "sklearn.tree"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        InputError, match=f"library='{library}' needs a library that is not installed: pip install {package}"
    ):
        GROWERS[library][0](start(rng, 2), 1, 0.3, 0)
