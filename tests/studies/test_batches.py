from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

from calibrant import ECE, DebiasedECE, EqualMass, EqualWidth, Sweep
from calibrant._validate import InputError
from calibrant.lab import BetaScores, Power, ScoreWorld
from studies.roelofs.batches import CHUNK, Batch, simulate
from studies.roelofs.fits import FITS

WORLDS = [FITS["resnet110_c10"].world(), FITS["resnet152_imgnet"].world(), ScoreWorld(BetaScores(), Power(2))]
BINS = {"width": EqualWidth, "mass": lambda n_bins: EqualMass(n_bins, ties="split")}
SWEEPS = {"width": Sweep("width"), "mass": Sweep("mass", ties="split")}


def data(world, n, n_sets, seed):
    """Outcomes and scores, ``(n_sets, n)``, half of the scores rounded so that there are ties everywhere."""
    rng = np.random.default_rng(seed)
    scores = world.scores.draw(rng, (n_sets, n))
    scores[::2] = scores[::2].round(2)
    return (rng.random((n_sets, n)) < world.curve(scores)).astype(np.uint8), scores


def each(estimator, observed, scores):
    return np.array([estimator(y, f).value for y, f in zip(observed, scores, strict=True)])


@pytest.mark.parametrize("world", WORLDS, ids=["confident", "wide", "uniform"])
@pytest.mark.parametrize("rule", ["width", "mass"])
@pytest.mark.parametrize("n", [7, 200, 1001])
def test_errors_are_those_of_the_estimators(world, rule, n):
    observed, scores = data(world, n, 6, seed=n)
    batch = Batch.of(observed, scores)
    for n_bins in (1, 2, 15, 64):
        for norm in (1, 2, 3):
            expected = each(ECE(BINS[rule](n_bins), norm), observed, scores)
            assert batch.plug_in(rule, n_bins, norm) == pytest.approx(expected, abs=1e-12)
        debiased = DebiasedECE(BINS[rule](n_bins), method="variance", singletons="keep")
        squares = each(debiased, observed, scores) * np.abs(each(debiased, observed, scores))
        found = batch.debiased(rule, n_bins)
        assert found * np.abs(found) == pytest.approx(squares, abs=1e-12)


@pytest.mark.parametrize("world", WORLDS, ids=["confident", "wide", "uniform"])
@pytest.mark.parametrize("rule", ["width", "mass"])
@pytest.mark.parametrize("n", [5, 200, 1001])
def test_sweeps_are_those_of_the_estimator(world, rule, n):
    observed, scores = data(world, n, 12, seed=n + 1)
    for norm in (1, 2):
        error, n_bins = Batch.of(observed, scores).sweep(rule, norm)
        estimator = ECE(SWEEPS[rule], norm)
        assert error == pytest.approx(each(estimator, observed, scores), abs=1e-12)
        fixed = [ECE(BINS[rule](int(b)), norm)(y, f).value for b, y, f in zip(n_bins, observed, scores, strict=True)]
        assert error == pytest.approx(np.array(fixed), abs=1e-12)


def test_where_sweeps_end_by_hand():
    """In order up to 3 bins, with 4 they are 0, 1, 1/2, 1; never in order; up to one row per bin; with empty bins between."""
    observed = np.array([[0, 0, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    scores = np.tile([0.05, 0.2, 0.3, 0.55, 0.7, 0.95], (3, 1))
    batch = Batch.of(observed, scores)
    assert batch.sweep("mass")[1].tolist() == [3, 1, 6]
    gapped = Batch.of(np.array([[0, 1, 1, 1]]), np.array([[0.05, 0.1, 0.95, 0.99]]))
    assert gapped.sweep("width")[1].tolist() == [4]


def test_draws_are_those_of_the_world():
    batch = Batch.draw(WORLDS[1], 500, 40, np.random.default_rng(1))
    assert batch.scores.shape == (40, 500)
    assert np.all(np.diff(batch.scores, axis=1) >= 0)
    expected = WORLDS[1].curve(batch.scores)
    miss = batch.observed[:, -1].sum() - expected.sum()
    assert abs(miss) < 4.5 * np.sqrt(np.sum(expected * (1 - expected)))


sweeps = partial(Batch.sweep, rule="mass")
CELLS = [(WORLDS[0], 30), (WORLDS[1], 50), (WORLDS[2], 40)]


def test_same_digits_on_every_engine_and_where_cells_are_skipped():
    n_sets = CHUNK + 20
    alone = dict(simulate(sweeps, CELLS, n_sets, seed=3))
    assert [values.shape for values in alone.values()] == [(2, n_sets)] * 3
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for engine in (threads, processes):
            found = dict(simulate(sweeps, CELLS, n_sets, seed=3, engine=engine))
            assert all(np.array_equal(alone[i], found[i]) for i in range(3))
    (only,) = simulate(sweeps, CELLS, n_sets, seed=3, skip={0, 2})
    assert only[0] == 1
    assert np.array_equal(only[1], alone[1])
    assert list(simulate(sweeps, CELLS, n_sets, skip=[0, 1, 2])) == []
    other = dict(simulate(sweeps, CELLS, n_sets, seed=4))
    assert not np.array_equal(alone[0], other[0])


def test_every_data_set_is_another():
    (_, first), (_, second) = simulate(sweeps, CELLS[:1] * 2, 3 * CHUNK)
    assert len(np.unique([first[0], second[0]])) == 6 * CHUNK


def test_settings_are_checked():
    with pytest.raises(InputError, match="n_sets must be a whole number of at least 2; got 1"):
        next(simulate(sweeps, CELLS, 1))
