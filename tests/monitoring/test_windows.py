import numpy as np
import pytest

from calibrant import ECE, Bernoulli, Ensemble, EqualMass, ExactTest, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.monitoring import Windows


def rows(n=250, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p) * 1, p


def fed(windows, y, p, cuts):
    done = []
    for start, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        windows, more = windows.update(y[start:end], p[start:end])
        done += more
    return done + windows.finish()


def test_a_window_is_the_exact_test_of_its_rows():
    y, p = rows()
    done = fed(Windows(100), y, p, [])
    assert [(w.first, w.last) for w in done] == [(1, 100), (101, 200), (201, 250)]
    test = ExactTest(ECE(EqualMass(15)), 199)(y[100:200], p[100:200], rng=[0, 100])
    assert (done[1].error, done[1].pvalue) == (test.statistic, test.pvalue)
    assert done[1].predicted == pytest.approx(p[100:200].mean())
    assert done[1].observed == pytest.approx(y[100:200].mean())
    assert done[1].null_low == test.null_band().low


@pytest.mark.parametrize("cuts", [[1], [100], [99, 101], [50, 120, 249], [*range(1, 250, 7)]])
def test_how_rows_come_together_changes_nothing(cuts):
    y, p = rows()
    assert fed(Windows(100), y, p, cuts) == fed(Windows(100), y, p, [])


def test_nor_does_it_for_ensembles_with_random_levels():
    y, members = np.zeros(40), Ensemble(np.random.default_rng(4).normal(size=(40, 3)))
    assert fed(Windows(20), y, members, [7, 30]) == fed(Windows(20), y, members, [])


def test_of_many_classes_the_favoured_one_is_looked_at():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 100)
    y = rng.integers(0, 3, 100)
    (window,) = fed(Windows(100), y, p, [40])
    assert window.predicted == pytest.approx(p.max(axis=1).mean())
    assert window.observed == pytest.approx((p.argmax(axis=1) == y).mean())


def test_labels_of_a_row_stay_together():
    p = np.random.default_rng(2).random((60, 3))
    (window,) = fed(Windows(60), np.ones((60, 3), dtype=int), Bernoulli(p), [25])
    assert window.observed == 1
    assert window.pvalue < 0.02


def test_forecasts_are_seen_by_their_levels():
    rng = np.random.default_rng(3)
    narrow = Normal(np.zeros(400), np.full(400, 0.5))
    first, second = fed(Windows(200), rng.normal(size=400), narrow, [])
    assert first.predicted == 0.9
    assert first.observed < 0.75
    assert max(first.pvalue, second.pvalue) < 0.02
    (calibrated,) = fed(Windows(200), rng.normal(size=200), Ensemble(rng.normal(size=(200, 9))), [50])
    assert calibrated.pvalue > 0.02


def test_refusals():
    with pytest.raises(InputError, match="size"):
        Windows(0)
    started, _ = Windows(10).update([1, 0], [0.3, 0.4])
    with pytest.raises(InputError, match="like the rows before"):
        started.update(np.ones((2, 2), dtype=int), Bernoulli([[0.1, 0.2], [0.3, 0.4]]))
    assert Windows(10).finish() == []


def test_vectors_are_judged_by_the_ranks_of_their_averages(rng):
    loc, scale = np.zeros((200, 2)), np.ones((200, 2))
    y = rng.normal(size=(200, 2))
    right = Windows(100).update(y, MultivariateNormal(loc, scale))[1]
    wrong = Windows(100).update(3 * y, MultivariateNormal(loc, scale))[1]
    assert [one.pvalue > 0.01 for one in right] == [True, True]
    assert [one.pvalue < 0.01 for one in wrong] == [True, True]
