import numpy as np
import pytest

from studies.berta import methods as berta_methods
from studies.berta.data import RUNS, SCENARIOS, data_sets
from studies.berta.methods import METHODS
from studies.berta.recovery import DIGIT, published


def mean(name, n, method):
    values = []
    for seed in range(RUNS):
        ((_, y, p),) = data_sets(SCENARIOS[name], seed, (n,))
        values.append(METHODS[method](SCENARIOS[name], y, p, seed))
    return np.mean(values)


@pytest.mark.parametrize("method", ["bins", "isotonic, in sample", "isotonic"])
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.endswith(" 2 classes")])
def test_two_classes_have_all_published_digits(name, method):
    """At 264 rows the folds are not equal."""
    assert mean(name, 264, method) == pytest.approx(published()[name, 264, method].mean, abs=DIGIT)


@pytest.mark.parametrize("method", ["isotonic, in sample", "isotonic"])
@pytest.mark.parametrize("name", ["over-confident, 3 classes", "calibrated, 10 classes"])
def test_more_classes_have_all_published_digits(name, method):
    assert mean(name, 200, method) == pytest.approx(published()[name, 200, method].mean, abs=DIGIT)


def test_cells_have_all_published_digits_where_k_means_is_theirs(monkeypatch):
    """The paper speaks of 30 cells; its numbers are those of 15."""
    cluster = pytest.importorskip("sklearn.cluster")

    class Theirs:
        def __init__(self, n_cells, seed):
            self.model = cluster.KMeans(n_cells, random_state=seed, n_init="auto")

        def cells(self, p):
            return self.model.fit_predict(p)

    name = "under-confident, 3 classes"
    ours = mean(name, 200, "bins")
    monkeypatch.setattr(berta_methods, "KMeans", Theirs)
    expected = published()[name, 200, "bins"]
    assert mean(name, 200, "bins") == pytest.approx(expected.mean, abs=DIGIT)
    assert ours == pytest.approx(expected.mean, abs=3 * expected.error)


def test_other_folds_give_other_digits(monkeypatch):
    monkeypatch.setattr(berta_methods, "_folds", lambda n, seed: np.array_split(np.arange(n), 5))
    name = "calibrated, 2 classes"
    assert abs(mean(name, 200, "isotonic") - published()[name, 200, "isotonic"].mean) > DIGIT


def test_hard_signs_see_the_same_maps_as_soft_ones():
    ((_, y, p),) = data_sets(SCENARIOS["over-confident, 2 classes"], 0, (1069,))
    soft, hard = (METHODS[f"{kind} sign"](SCENARIOS["over-confident, 2 classes"], y, p, 0) for kind in ("soft", "hard"))
    assert soft != hard
    assert soft == pytest.approx(hard, abs=0.03)
