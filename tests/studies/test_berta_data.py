import csv
from importlib.resources import files

import numpy as np
import pytest

from calibrant.lab import Shifted
from studies.berta.data import RUNS, SCENARIOS, SIZES, Powers, Scenario, data_sets, truth


def published_truths():
    """Of the cells with ten experiments, by scenario."""
    text = files("studies.berta").joinpath("synthetic.csv").read_text(encoding="utf-8")
    return {
        f"{row['scenario']}, {row['classes']} classes": float(row["truth"])
        for row in csv.DictReader(text.splitlines())
        if row["runs"] == str(RUNS)
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_true_error_has_all_published_digits(name):
    assert round(truth(name), 8) == published_truths()[name]


def test_another_seed_gives_other_digits():
    assert round(truth("shifted, 2 classes", seed=1), 8) != published_truths()["shifted, 2 classes"]


def test_the_sizes():
    assert np.array_equal(np.round(np.geomspace(200, 10_000, 15)), SIZES)


@pytest.mark.parametrize("name", ["under-confident, 2 classes", "over-confident, 3 classes"])
def test_data_sets_do_not_depend_on_those_left_out(name):
    some = {n: (y, p) for n, y, p in data_sets(SCENARIOS[name], 3, (350, 200))}
    for n, y, p in data_sets(SCENARIOS[name], 3, (200, 264, 350, 462)):
        if n in some:
            assert np.array_equal(y, some[n][0])
            assert np.array_equal(p, some[n][1])
    assert list(some) == [200, 350]


@pytest.mark.parametrize(("name", "n"), [(name, 40_000) for name in SCENARIOS])
def test_labels_come_from_the_truth(name, n, rng):
    """Frequencies of each class in the half where it is likelier, within four standard errors."""
    scenario = SCENARIOS[name]
    y, p = scenario.draw(n, rng)
    chances = scenario.true(p)
    if scenario.n_classes == 2:
        chances = np.stack([1 - chances, chances], axis=1)
    for k, chance in enumerate(chances.T):
        here = chance > np.median(chance)
        spread = np.sqrt((chance[here] * (1 - chance[here])).sum())
        assert abs(np.sum((y == k)[here] - chance[here])) < 4 * spread


def test_errors_by_hand():
    assert Scenario(2, Shifted(0.02)).error(np.array([0.5, 0.99])) == pytest.approx(0.015)
    p = np.array([[0.2, 0.2, 0.6]])
    gap = np.array([1 / 11, 1 / 11, 9 / 11]) - p[0]
    assert Scenario(3, Powers(2.0)).error(p) == pytest.approx(np.linalg.norm(gap))
    assert [name for name, s in SCENARIOS.items() if s.is_calibrated] == [
        f"calibrated, {k} classes" for k in (2, 3, 10)
    ]
    assert {s.norm for s in SCENARIOS.values() if s.n_classes > 2} == {2}
