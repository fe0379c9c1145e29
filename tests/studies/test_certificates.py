"""The study of certificates: errors are at the margin wherever they are put, and what it counts is what it says."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant import ECE, ClassWise, EqualMass, TopLabel
from calibrant.estimators.binned.binning import lp_norm
from calibrant.inference import Certificate
from studies import certificates


def cell_error(p, truth, error, weights=None):
    """With true frequencies in the place of observed ones."""
    cell = np.unique(error.bins.bins(p, weights).of_rows(p, slice(None)), return_inverse=True)[1]
    w = np.ones(len(p)) if weights is None else weights
    mass = np.bincount(cell, weights=w)
    return float(lp_norm(np.bincount(cell, weights=w * (p - truth)) / mass, mass, error.norm))


@pytest.mark.parametrize("world", certificates.WORLDS)
@pytest.mark.parametrize("where", certificates.SIGNS)
@pytest.mark.parametrize("error", [certificates.L1, certificates.L2, certificates.LARGEST], ids=repr)
def test_errors_are_at_the_margin(world, where, error):
    p = certificates.scores(world, 500)
    assert np.all(np.diff(p) >= 0)
    for weights in (None, certificates.weights_of(500)) if error is not certificates.LARGEST else (None,):
        truth = certificates.placed(p, weights, error, where, 0.03)
        if truth is None:
            continue
        assert truth.min() >= 0
        assert truth.max() <= 1
        assert cell_error(p, truth, error, weights) == pytest.approx(0.03, rel=1e-9)


def test_where_there_is_no_room_there_is_no_world():
    p = certificates.scores("one value near 0", 100)
    assert certificates.placed(p, None, certificates.L1, "last cell", 0.03) is not None
    assert certificates.placed(np.full(100, 0.5), None, certificates.L1, "last cell", 0.6) is None


def test_hidden_certainty_keeps_the_means_of_cells(rng):
    p = certificates.scores("even", 1000)
    truth = certificates.placed(p, None, certificates.L1, "all up", 0.05)
    cell = certificates.L1.bins.bins(p).of_rows(p, slice(None))
    found = certificates.hidden(truth, cell, rng)
    assert np.bincount(cell, weights=found) == pytest.approx(np.bincount(cell, weights=truth))
    assert np.mean((found == 0) | (found == 1)) > 0.48


@pytest.mark.parametrize("where", certificates.MONOTONE)
def test_curves_do_not_fall_and_have_the_error(where):
    p = certificates.scores("even", 2000)
    truth = certificates.monotone(p, where, 0.04)
    assert np.all(np.diff(truth) >= 0)
    rare = certificates.monotone(certificates.scores("2 % events", 500), where, 0.05)
    assert rare is None or (rare.min() >= 0) & (rare.max() <= 1)
    assert np.abs(truth - p).mean() == pytest.approx(0.04, abs=0.002)
    assert np.abs(truth - p).mean() >= 0.04 - 1e-12


@pytest.mark.parametrize("where", certificates.PIT)
def test_pit_values_lie_off_by_the_margin(where, rng):
    u = certificates.PIT[where]((np.arange(100_000) + 0.5) / 100_000, 0.05)
    reached = np.arange(1, 100_001) / 100_000
    u = np.sort(u)
    distance = max((reached - u).max(), (u - reached + 1e-5).max())
    assert distance == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("where", certificates.ARCS)
def test_intervals_of_pit_values_lie_off_by_the_margin(where):
    u = np.sort(certificates.ARCS[where]((np.arange(100_000) + 0.5) / 100_000, 0.05))
    reached = np.arange(1, 100_001) / 100_000
    assert (reached - u).max() + (u - reached + 1e-5).max() == pytest.approx(0.05, abs=1e-4)


def test_bent_pit_values_have_the_distance():
    power = certificates.bent(0.03)
    most = minimize_scalar(lambda u: u - u**power, bounds=(0, 1), method="bounded").fun
    assert -most == pytest.approx(0.03, rel=1e-6)


def test_classes_have_the_error(rng):
    p = certificates.classes(400, rng)
    top, each = ECE(EqualMass(10), lens=TopLabel()), ECE(EqualMass(10), lens=ClassWise())
    truth = certificates.top_label(p, "too sure", 0.06)
    assert truth.sum(axis=1) == pytest.approx(np.ones(400))
    favoured = p.argmax(axis=1)
    assert cell_error(p.max(axis=1), truth[np.arange(400), favoured], top) == pytest.approx(0.06, rel=1e-6)
    for where in certificates.CLASSES:
        truth = certificates.classwise(p, each, where, 0.004)
        assert truth.sum(axis=1) == pytest.approx(np.ones(400))
        assert np.mean([cell_error(p[:, k], truth[:, k], each) for k in range(10)]) == pytest.approx(0.004, rel=1e-4)
    assert certificates.classwise(p, each, "one class", 0.09) is None  # there is not so much to move


def test_false_certificates_are_told_by_their_place():
    """A statement that is always false is found, drawn again, and said to be false."""
    always = Certificate(0.1, 0.05, 0.0, 0.95, 100, "", (), None, 29, None)
    never = Certificate(0.1, 0.15, 0.0, 0.95, 100, "", (), None, 29, None)
    draws = {"good": lambda _: never, "bad": lambda _: always}
    cell = certificates.Cell(
        "L1", "a world", 100, lambda _: draws["bad"], lambda where, _: draws[where], ("good", "bad")
    )
    rows = list(certificates.judged(cell, 100, 0))
    assert [row["margin"] for row in rows] == [0.05, 0.1]
    assert all(row["is_false"] and row["where"] == "bad" and row["false"] == 1 for row in rows)


def test_a_fast_part_of_the_study_holds():
    cells = [
        c
        for c in certificates.cells((200,), ())
        if c.world in ("2 % events", "normal forecasts") or "top label" in c.world
    ]
    assert {c.error for c in cells} == {"L1", "L2", "largest", "PIT", "PIT, any interval"}
    for cell in cells:
        if cell.n <= 500:
            assert not any(row["is_false"] for row in certificates.judged(cell, 60, 2)), cell
