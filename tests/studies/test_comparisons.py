"""The study of comparisons: models that are called equally wrong are, and what it counts is what it says."""

import json

import numpy as np
import pytest

from calibrant import Categorical
from calibrant.distributions import Distribution
from studies import comparisons

WORLDS = {f"{world.kind}, {world.name}": world for world in comparisons.worlds()}


@pytest.mark.parametrize("world", list(WORLDS.values()), ids=list(WORLDS))
def test_errors_lie_as_far_apart_as_is_said(world):
    """In a large data set, by the estimate."""
    y, a, b = world.draw(60_000, np.random.default_rng(4))
    both = [float(world.error(y, p)) for p in (a, b)]
    if world.kind == "numbers":
        assert isinstance(a, Distribution)
    apart = 0.0 if world.apart is None else world.apart()
    assert max(both[0], 0) - max(both[1], 0) == pytest.approx(apart, abs=0.012)


def test_the_error_of_endless_data_is_that_of_many_rows(rng):
    p = rng.random(50_000)
    truth = p**2
    y = (rng.random(50_000) < truth).astype(int)
    assert float(comparisons.BINNED(y, Categorical(p))) == pytest.approx(comparisons.root(p, truth), abs=0.01)
    assert comparisons.root_of_pit(np.sqrt(rng.random(50_000))) == pytest.approx((1 / 30) ** 0.5, abs=0.005)


def test_a_cell_counts_and_is_kept(tmp_path):
    world = WORLDS["two classes, calibrated, or too sure"]
    cell = comparisons.kept(tmp_path / "cell.json", world, 200, 20, 3)
    assert cell["stated"] == 20
    assert 5 <= cell["told"] <= 20
    assert not cell["is_false"]
    assert cell["truth"] < -0.05
    text = json.loads((tmp_path / "cell.json").read_text())
    text["cell"]["told"] = -1
    (tmp_path / "cell.json").write_text(json.dumps(text))
    assert comparisons.kept(tmp_path / "cell.json", world, 200, 20, 3)["told"] == -1
    assert comparisons.kept(tmp_path / "cell.json", world, 200, 20, 4)["told"] >= 0


def test_what_is_told_apart_too_often_is_false(monkeypatch):
    """Models that are not equal, called equal."""
    unequal = WORLDS["two classes, calibrated, or too sure"]
    cell = comparisons.judged(comparisons.World(unequal.kind, unequal.name, unequal.error, unequal.draw), 300, 20, 3)
    assert cell["is_false"]


def test_the_page_has_all_cells():
    cells = [
        {"kind": "two classes", "world": name, "n": n, "truth": 0.02, "is_equal": equal, "stated": stated}
        | {"told": 4, "missed": 2, "is_false": False}
        for name, equal, stated in (("a", True, 100), ("b", False, 100), ("c", True, 0))
        for n in (200, 1000)
    ]
    text = comparisons.page(cells, 1000)
    assert "| two classes | a | 4.0 % | 4.0 % |" in text
    assert "| two classes | b | 2.0 points | 4.0 % | 4.0 % | 2.0 % | 2.0 % |" in text
    assert "| two classes | c | withheld | withheld |" in text
    assert "Of 6 cells, none is false." in text
