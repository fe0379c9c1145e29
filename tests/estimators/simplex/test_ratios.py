import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, gammaln

from calibrant._array import to_numpy
from calibrant._softmax import Softmax
from calibrant.estimators.simplex.kde import FULL, NONE, PARTIAL, Ratios


def averages(w, y):
    """The averages of outcomes ``(n, m)`` with weights ``(n, m)``, as of one question."""
    weights = w / w.sum(axis=1, keepdims=True)
    mean, mean_of_squares = ((x * y).sum(axis=1, keepdims=True) for x in (weights, weights**2))
    return Softmax(np.log(w.sum(axis=1)), mean, (weights**2).sum(axis=1), mean_of_squares)


@pytest.fixture
def many(rng):
    """Fifty columns of which all matter."""
    return rng.uniform(0.5, 1.5, (6, 50)), (rng.random((6, 50)) < 0.3) * 1.0


def test_the_plain_ratio_and_its_square(many):
    w, y = many
    found = Ratios.of(averages(w, y), 51, NONE)
    assert found.frequency[:, 0] == pytest.approx((w * y).sum(axis=1) / w.sum(axis=1), rel=1e-14)
    assert np.array_equal(found.square, found.frequency**2)


@pytest.mark.parametrize("m", [2, 5, 50])
def test_partial_squares_are_averages_over_pairs(m, rng):
    w, y = rng.uniform(0.1, 2, (4, m)), (rng.random((4, m)) < 0.5) * 1.0
    found = Ratios.of(averages(w, y), m + 1, PARTIAL)
    for row in range(4):
        pairs = [(i, j) for i in range(m) for j in range(m) if i != j]
        above = sum(w[row, i] * w[row, j] * y[row, i] * y[row, j] for i, j in pairs)
        assert found.square[row, 0] == pytest.approx(above / sum(w[row, i] * w[row, j] for i, j in pairs), abs=1e-14)
    assert np.array_equal(found.frequency, Ratios.of(averages(w, y), m + 1, NONE).frequency)


def test_the_full_correction_by_hand(many):
    w, y = many
    found, partial = (Ratios.of(averages(w, y), 51, debias) for debias in (FULL, PARTIAL))
    weights = w / w.sum(axis=1, keepdims=True)
    plain = (weights * y).sum(axis=1)
    shift = 50 / 49 * (weights**2 * (y - plain[:, None])).sum(axis=1)
    assert np.abs(shift).min() > 1e-5
    assert found.frequency[:, 0] == pytest.approx(plain + shift, rel=1e-13)
    assert found.square[:, 0] == pytest.approx(partial.square[:, 0] + 4 * plain * shift, rel=1e-13)


def test_equal_weights_leave_no_bias_in_ratios(rng):
    w, y = np.ones((3, 40)), (rng.random((3, 40)) < 0.3) * 1.0
    found, count = Ratios.of(averages(w, y), 41, FULL), y.sum(axis=1)
    assert found.frequency[:, 0] == pytest.approx(count / 40, rel=1e-13)
    assert found.square[:, 0] == pytest.approx(count * (count - 1) / (40 * 39), rel=1e-12)


def test_few_columns_are_corrected_too(rng):
    """Two columns of nearly equal weights: their sum is known well, and so is the shift."""
    local = averages(np.array([[1.0, 1.2]]), np.array([[1.0, 0.0]]))
    found, partial = (Ratios.of(local, 3, debias) for debias in (FULL, PARTIAL))
    w = np.array([1.0, 1.2]) / 2.2
    shift = 2 * (w[0] ** 2 - (w**2).sum() * w[0])
    assert found.frequency.item() == pytest.approx(w[0] + shift, rel=1e-13)
    assert found.square.item() == pytest.approx(4 * w[0] * shift + partial.square.item(), rel=1e-13)


def test_rows_whose_weight_a_few_columns_hold_are_corrected_partially(rng):
    """Twelve of fifty columns leave a relative error of the sum above a quarter, fourteen one below."""
    w = np.array([np.repeat([1.0, 1e-3], size) for size in ((12, 38), (14, 36))])
    local = averages(w, (rng.random((2, 50)) < 0.5) * 1.0)
    found, partial = (Ratios.of(local, 51, debias) for debias in (FULL, PARTIAL))
    assert (w.std(axis=1, ddof=1) / w.mean(axis=1) / np.sqrt(50) > 0.25).tolist() == [True, False]
    assert (found.frequency == partial.frequency)[:, 0].tolist() == [True, False]
    assert (found.square == partial.square)[:, 0].tolist() == [True, False]


@pytest.mark.parametrize("debias", [FULL, PARTIAL, NONE])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_a_single_neighbour_says_what_it_says(debias, y):
    for w in ([[1.0]], [[1.0, 1e-12]], [[1.0] + [1e-300] * 60]):
        local = averages(np.array(w), np.array([[y] + [1 - y] * (len(w[0]) - 1)]))
        found = Ratios.of(local, len(w[0]) + 1, debias)
        assert [found.frequency.item(), found.square.item()] == pytest.approx([y, y], abs=1e-11)


@pytest.mark.parametrize("debias", [FULL, PARTIAL, NONE])
def test_rows_without_neighbours_are_zero(debias):
    local = Softmax(np.array([-np.inf]), np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)))
    found = Ratios.of(local, 100, debias)
    assert not found.frequency.any()
    assert not found.square.any()


@pytest.mark.parametrize("debias", [FULL, PARTIAL, NONE])
def test_every_library_gives_the_same_numbers(debias, xp, many):
    local = averages(*many)
    fields = (local.log_sum, local.mean, local.squares, local.mean_of_squares)
    host, found = Ratios.of(local, 51, debias), Ratios.of(Softmax(*map(xp.asarray, fields)), 51, debias)
    assert to_numpy(found.frequency) == pytest.approx(host.frequency, rel=1e-14)
    assert to_numpy(found.square) == pytest.approx(host.square, rel=1e-14)


def beta_kernel(f, z=0.17, h=0.5):
    logs = f / h * np.log(z) + (1 - f) / h * np.log1p(-z) - gammaln(f / h + 1) - gammaln((1 - f) / h + 1)
    return np.exp(logs)


@pytest.mark.parametrize("curve", [lambda f: f, lambda f: expit(10 * f - 5)], ids=["calibrated", "sigmoid"])
def test_the_correction_removes_the_bias(curve):
    """Around 0.17, of 64 uniform predictions; the limit of the ratio by quadrature."""
    rng, m, repeats = np.random.default_rng(7), 64, 80_000
    limit = quad(lambda f: beta_kernel(f) * curve(f), 0, 1)[0] / quad(beta_kernel, 0, 1)[0]
    f = rng.random((repeats, m))
    local = averages(beta_kernel(f), rng.random((repeats, m)) < curve(f))

    def z_scores(debias):
        found = Ratios.of(local, m + 1, debias)
        errors = [found.frequency - limit, found.square - limit**2]
        return [error.mean() / (error.std() / np.sqrt(repeats)) for error in errors]

    assert np.abs(z_scores(FULL)).max() < 3.5
    assert min(z_scores(PARTIAL)) > 8
    plain = z_scores(NONE)[1]
    assert plain > 1.5 * z_scores(PARTIAL)[1]


@pytest.mark.parametrize(("bandwidth", "left"), [(0.5, 0.2), (0.02, 1.02)], ids=["wide", "narrow"])
def test_concentration_decides_not_the_number_of_columns(bandwidth, left):
    """Wide kernels leave a fifth of the bias; narrow ones, which the formula would make twice as wrong, stay as they are."""
    rng, repeats, m = np.random.default_rng(11), 60_000, 31
    shape = lambda f: beta_kernel(f, h=bandwidth)  # noqa: E731
    curve = lambda f: expit(10 * f - 5)  # noqa: E731
    limit = quad(lambda f: shape(f) * curve(f), 0, 1)[0] / quad(shape, 0, 1)[0]
    f = rng.random((repeats, m))
    local = averages(shape(f), rng.random((repeats, m)) < curve(f))
    full, partial = (Ratios.of(local, m + 1, debias).square.mean() / limit**2 - 1 for debias in (FULL, PARTIAL))
    assert abs(full) < left * partial
    w, shift = local.squares[:, None], local.mean_of_squares - local.squares[:, None] * local.mean
    everywhere = np.mean((local.mean**2 - local.mean_of_squares) / (1 - w) + 4 * local.mean * shift) / limit**2 - 1
    assert (everywhere > 2 * partial) == (bandwidth == 0.02)
