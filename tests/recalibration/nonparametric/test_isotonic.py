import numpy as np
import pytest

from calibrant.recalibration import Isotonic


def pooled(scores, observed):
    """Pooling adjacent violators by hand, one row after the other: lists of the rows of each block."""
    blocks = [[i] for i in np.lexsort((observed, scores))]
    ties = []
    for block in blocks:
        if ties and scores[ties[-1][0]] == scores[block[0]]:
            ties[-1] += block
        else:
            ties.append(list(block))
    stack = []
    for block in ties:
        stack.append(block)
        while len(stack) > 1 and observed[stack[-2]].mean() >= observed[stack[-1]].mean() - 1e-12:
            last = stack.pop()
            stack[-1] += last
    return stack


@pytest.fixture(params=[1, 2, 6])
def rows(request, rng):
    """From many ties to none."""
    p = rng.random(150).round(request.param)
    return (rng.random(150) < p**2).astype(int), p


def test_blocks_by_hand(rows):
    y, p = rows
    fitted = Isotonic().fit(y, p, folds=0)
    for block in pooled(p, y):
        assert fitted(p[block]) == pytest.approx(y[block].mean())


def test_centres_by_hand(rows):
    y, p = rows
    fitted = Isotonic(centred=True).fit(y, p, folds=0)
    blocks = pooled(p, y)
    centres, means = [p[b].mean() for b in blocks], [y[b].mean() for b in blocks]
    at = np.linspace(0, 1, 101)
    assert fitted(at) == pytest.approx(np.interp(at, centres, means))
    inside = np.linspace(centres[0], centres[-1], 200)
    assert np.all(np.diff(fitted(inside)) > 0)


def test_scikit_learn_agrees(rows):
    peer = pytest.importorskip("sklearn.isotonic").IsotonicRegression(out_of_bounds="clip")
    y, p = rows
    at = np.linspace(0, 1, 101)
    assert Isotonic().fit(y, p, folds=0)(at) == pytest.approx(peer.fit(p, y).predict(at))


def test_no_increasing_function_is_closer(rows, rng):
    y, p = rows
    best = ((Isotonic().fit(y, p, folds=0)(p) - y) ** 2).mean()
    for _ in range(200):
        power, low, high = rng.uniform(0.2, 4), *np.sort(rng.random(2))
        assert best <= ((low + (high - low) * p**power - y) ** 2).mean()


@pytest.mark.parametrize("centred", [False, True])
def test_names_of_classes_do_not_matter(rows, centred):
    y, p = rows
    at = np.linspace(0, 1, 101)
    one, other = Isotonic(centred=centred).fit(y, p, folds=0), Isotonic(centred=centred).fit(1 - y, 1 - p, folds=0)
    assert one(at) == pytest.approx(1 - other(1 - at), abs=1e-9)


@pytest.mark.parametrize("centred", [False, True])
def test_decreasing_maps_are_increasing_ones_in_the_mirror(rows, centred):
    y, p = rows
    at = np.linspace(0, 1, 101)
    down = Isotonic(centred=centred, increasing=False).fit(y, 1 - p, folds=0)
    assert down(1 - at) == pytest.approx(Isotonic(centred=centred).fit(y, p, folds=0)(at), abs=1e-9)


def test_smoothing_keeps_the_log_loss_finite():
    y, p = [0, 0, 1, 1] * 5, np.arange(20) / 20
    plain, smooth = Isotonic().fit(y, p, folds=0), Isotonic(smoothed=True).fit(y, p, folds=0)
    assert smooth(p) == pytest.approx((20 * plain(p) + 0.5) / 21)
    assert "smoothed=True avoids them" in plain.notes[0]
    assert not smooth.notes
