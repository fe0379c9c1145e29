import numpy as np
import pytest

from calibrant import EqualMass, EqualWidth
from calibrant.estimators.binned.bin_sums import Tally, tally


@pytest.mark.parametrize("bins", [EqualWidth(6), EqualMass(6), EqualMass(6, "split")], ids=repr)
def test_a_tally_counts_what_is_in_each_bin(bins, rng):
    p = rng.random(300).round(2)
    observed, weights = rng.random(300) < p, rng.random(300)
    for w in (None, weights) if bins != EqualMass(6, "split") else (None,):
        made = bins.bins(p, w)
        cell = made.of_rows(p, slice(None))
        each = np.ones(300) if w is None else w
        t = tally(p, observed, made, w)
        for found, values in ((t.weight, each), (t.predicted, each * p), (t.observed, each * observed)):
            assert found == pytest.approx(np.bincount(cell, weights=values, minlength=len(made)), rel=1e-12)
        assert t.gap == pytest.approx((t.predicted - t.observed) / np.where(t.weight > 0, t.weight, 1), abs=1e-15)


def test_tallies_of_parts_add_up(rng):
    p = rng.random(1_000)
    observed, bins = rng.random(1_000) < p, EqualWidth(9).bins(p)
    parts = [tally(p[i::7], observed[i::7], bins, None) for i in range(7)]
    total = sum(parts[::-1], Tally.empty(bins))
    whole = tally(p, observed, bins, None)
    assert total.score.tolist() == whole.score.tolist()
    assert total.mass.tolist() == whole.mass.tolist()


def test_an_empty_tally_has_no_gap():
    assert Tally.empty(EqualWidth(3).bins(np.zeros(1))).gap.tolist() == [0, 0, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_that_are_known_need_not_be_found(weighted, rng):
    p = rng.random(200)
    observed, weights = rng.random(200) < p, rng.random(200) if weighted else None
    bins = EqualMass(6).bins(p, weights)
    found, known = (tally(p, observed, bins, weights, cell) for cell in (None, bins.index(p)))
    assert (found.mass.tolist(), found.score.tolist()) == (known.mass.tolist(), known.score.tolist())
