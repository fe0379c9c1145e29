import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import dirichlet

from calibrant._compiled import choice
from calibrant.estimators.simplex import dirichlet as module
from calibrant.estimators.simplex.dirichlet import (
    MAX_BANDWIDTH,
    MIN_BANDWIDTH,
    MIN_DIFFERENT,
    _balanced,
    likeliest_bandwidth,
)


def log_likelihood(points, h, weights=None, judges=None):
    """The mean over judges of the logarithms of kernel sums, by densities of all pairs."""
    w = np.ones(len(points)) if weights is None else weights
    logs = np.array([dirichlet.logpdf(points.T, f / h + 1) for f in points]).T + np.log(w)
    np.fill_diagonal(logs, -np.inf)
    rows = np.arange(len(points)) if judges is None else judges
    return np.average(logsumexp(logs, axis=1)[rows], weights=w[rows])


def best(points, weights=None, judges=None, around=None):
    """The best of a fine grid, 0.5 % from one to the next."""
    grid = (
        np.geomspace(MIN_BANDWIDTH, MAX_BANDWIDTH, 100) if around is None else around * np.exp(np.arange(-30, 31) / 200)
    )
    grid = grid[grid <= MAX_BANDWIDTH]
    found = grid[np.argmax([log_likelihood(points, h, weights, judges) for h in grid])]
    return best(points, weights, judges, found) if around is None else found


EVEN = "the likeliest bandwidth, 1, would make a calibrated model look wrong"


def hump(rng, n):
    """Predictions of three classes around one point."""
    return rng.dirichlet([8.0, 3.0, 2.0], n)


@pytest.mark.parametrize(("alpha", "k"), [(0.5, 2), (2.0, 2), (2.0, 3), (30.0, 2), (30.0, 3)])
def test_it_maximises_the_likelihood_of_each_given_the_others(alpha, k, rng):
    points = rng.dirichlet(np.full(k, alpha), 30)
    found = likeliest_bandwidth(points)
    assert found.value == pytest.approx(best(points), rel=0.011)
    assert found.note is None


def errors_if_calibrated(points, h):
    """Squared smoothing and squared noise of the frequencies of a calibrated model, by densities of all pairs."""
    logs = np.array([dirichlet.logpdf(points.T, f / h + 1) for f in points]).T
    np.fill_diagonal(logs, -np.inf)
    w = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return ((w @ points - points) ** 2).sum(), (w**2 @ (points * (1 - points))).sum()


def test_even_predictions_do_not_get_the_widest_kernel(rng):
    """The likeliest would flatten what it regresses; the one taken has the least error of a calibrated model."""
    points = rng.dirichlet(np.ones(3), 200)
    found = likeliest_bandwidth(points)
    smoothing, noise = errors_if_calibrated(points, MAX_BANDWIDTH)
    assert (best(points) > 0.99, smoothing > noise, found.note) == (True, True, EVEN)
    grid = np.geomspace(0.02, 1, 200)
    least = grid[np.argmin([sum(errors_if_calibrated(points, h)) for h in grid])]
    assert found.value == pytest.approx(least, rel=0.03)


def test_even_predictions_of_many_rows_go_through_compiled_code(rng, monkeypatch):
    points, w = rng.dirichlet(np.ones(3), 200), rng.uniform(0.5, 2, 200)
    plain = likeliest_bandwidth(points, w)
    monkeypatch.setattr(choice, "MAX_PLAIN_ROWS", 10)
    fast = likeliest_bandwidth(points, w)
    assert plain.note == fast.note == EVEN
    assert fast.value == pytest.approx(plain.value, rel=1e-6)


def test_weights_count_as_neighbours_and_as_judges(rng):
    points, w = hump(rng, 30), rng.uniform(0.1, 5, 30)
    found = likeliest_bandwidth(points, w).value
    assert found == pytest.approx(best(points, w), rel=0.011)
    assert abs(np.log(found / likeliest_bandwidth(points).value)) > 0.05


def test_equal_weights_change_nothing(rng):
    points = hump(rng, 40)
    expected = likeliest_bandwidth(points).value
    assert likeliest_bandwidth(points, np.full(40, 3.5)).value == pytest.approx(expected, rel=1e-6)


def test_rows_without_weight_are_as_good_as_left_out(rng):
    points, w = hump(rng, 60), rng.uniform(0.1, 5, 60)
    w[::3] = 0
    points[::6] = points[1::6]  # not even copies without weight are copies
    assert likeliest_bandwidth(points, w) == likeliest_bandwidth(points[w > 0], w[w > 0])


def test_the_order_of_rows_does_not_matter(rng):
    points, w = hump(rng, 100), rng.uniform(0.1, 5, 100)
    points[:10] = points[90:]
    order = rng.permutation(100)
    assert likeliest_bandwidth(points[order], w[order]).value == pytest.approx(
        likeliest_bandwidth(points, w).value, rel=1e-6
    )


def test_copies_do_not_judge_but_take_part(rng):
    points = np.vstack([rng.dirichlet([8e3, 3e3, 2e3], 15), hump(rng, 25)])
    w = np.where(np.arange(40) < 15, 3.0, 1.0)
    found = likeliest_bandwidth(np.repeat(points, w.astype(int), axis=0))
    assert found.value == pytest.approx(best(points, w, np.arange(15, 40)), rel=0.011)
    assert found.note == "45 rows have copies and do not choose the bandwidth"
    assert best(points, w) < 0.1 * found.value


def test_where_all_have_copies_each_is_left_out_with_its_own(rng):
    points = hump(rng, 30)
    found = likeliest_bandwidth(np.repeat(points, 3, axis=0))
    assert found.value == pytest.approx(likeliest_bandwidth(points).value, rel=1e-6)
    assert found.note == "90 rows have copies and are left out together with them"


def test_copies_do_not_drive_the_bandwidth_to_zero(rng):
    counts = rng.multinomial(10, [0.5, 0.3, 0.2], 300)
    assert 1e-3 < likeliest_bandwidth(counts / 10).value < 0.5


def test_few_values_are_kept_apart():
    p = np.repeat([0.1, 0.4, 0.9], [5, 1, 4])
    found = likeliest_bandwidth(np.column_stack([1 - p, p]))
    assert found.value == pytest.approx((0.3 / 4) ** 2, rel=1e-12)
    assert found.note == "the bandwidth keeps the few values apart"


def test_few_values_that_touch_get_the_least_bandwidth():
    p = np.repeat([0.1, 0.1001, 0.9], 3)
    assert likeliest_bandwidth(np.column_stack([1 - p, p])).value == MIN_BANDWIDTH


def test_constant_predictions_get_the_widest_kernel():
    assert likeliest_bandwidth(np.tile([0.2, 0.8], (50, 1))) == (MAX_BANDWIDTH, None)


@pytest.mark.parametrize("points", [[[0.2, 0.8], [0.7, 0.3]], [[0.2, 0.8], [0.2, 0.8]]])
def test_two_rows_get_the_widest_kernel(points):
    """No bandwidth is better than another."""
    found = likeliest_bandwidth(np.array(points))
    assert found.value == pytest.approx(MAX_BANDWIDTH, rel=0.011)
    assert found.note is None


@pytest.mark.parametrize("n", [5, MIN_DIFFERENT - 1, MIN_DIFFERENT])
def test_few_rows_judge_as_well_as_many_do(n, rng):
    points = hump(rng, n)
    assert likeliest_bandwidth(points).value == pytest.approx(best(points), rel=0.011)


def test_no_prediction_shares_the_zeros_of_another():
    k = MIN_DIFFERENT + 2
    found = likeliest_bandwidth((1 - np.eye(k)) / (k - 1))
    assert found == (MAX_BANDWIDTH, "no prediction shares the zeros of another: none has neighbours")


def test_a_point_alone_on_its_face_does_not_judge(rng):
    points = np.vstack([hump(rng, 30), [1.0, 0.0, 0.0]])
    assert likeliest_bandwidth(points).value == pytest.approx(best(points, judges=np.arange(30)), rel=0.011)


def test_thinned_judges_find_what_is_as_good_for_all(monkeypatch, rng):
    points = hump(rng, 400)
    everyone = likeliest_bandwidth(points).value
    monkeypatch.setattr(module, "JUDGES", 100)
    thinned = likeliest_bandwidth(points).value
    assert thinned != everyone
    assert log_likelihood(points, thinned) == pytest.approx(log_likelihood(points, everyone), abs=0.01)


def test_rows_that_do_not_judge_still_take_part(monkeypatch, rng):
    points = hump(rng, 40)
    monkeypatch.setattr(module, "JUDGES", 25)
    judges = module.thinned(np.unique(points, axis=0))[:25]
    found = likeliest_bandwidth(points).value
    assert found == pytest.approx(best(np.unique(points, axis=0), judges=judges), rel=0.011)


@pytest.mark.parametrize("alpha", [1e-2, 1e7])
def test_the_bandwidth_stays_within_bounds(alpha, rng):
    points = rng.dirichlet(np.full(3, alpha), 40)
    assert MIN_BANDWIDTH <= likeliest_bandwidth(points).value <= MAX_BANDWIDTH


def test_tensors_find_the_same_bandwidth():
    torch = pytest.importorskip("torch")
    points = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    mass, share, chosen = np.ones(300), np.ones(300), np.arange(100)
    found = [_balanced(x, mass, share, chosen, 1.0) for x in (points, torch.tensor(points))]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[0] < 0.3
