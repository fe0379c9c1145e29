import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import SKCE, ExactTest, LogLoss, Quantiles
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
INF = np.inf


@pytest.fixture
def fan(rng):
    return Quantiles(np.sort(rng.normal(size=(4, 5)), axis=1), LEVELS)


@pytest.mark.parametrize("tails", ["exponential", "flat", (-9.0, 9.0), (-INF, 9.0)])
def test_quantiles_are_those_given(tails, fan):
    again = Quantiles(fan.values, LEVELS, tails)
    assert again.quantile(LEVELS) == pytest.approx(fan.values, rel=1e-14)
    reached = np.where(LEVELS == 0.9, 1.0, LEVELS) if tails == "flat" else LEVELS
    assert np.stack([again.cdf(v) for v in fan.values.T]) == pytest.approx(np.repeat(reached[:, None], 4, axis=1))


def test_exponential_tails_go_through_the_last_two_quantiles():
    """So a fan of a Laplace distribution has its tails to all digits."""
    exact = stats.laplace(1.0, 2.0)
    fan = Quantiles(exact.ppf(LEVELS)[None], LEVELS)
    for y in (-20.0, -5.0, exact.ppf(0.1) - 1e-9, exact.ppf(0.9), 5.0, 30.0):
        assert fan.cdf(np.array([y]))[0] == pytest.approx(exact.cdf(y), rel=1e-13)
        assert fan.log_prob(np.array([y]))[0] == pytest.approx(exact.logpdf(y), rel=1e-12)


def test_many_quantiles_tend_to_the_distribution():
    u = (np.arange(999) + 1) / 1000
    fan = Quantiles(stats.norm.ppf(u)[None], u)
    assert fan.mean == pytest.approx([0.0], abs=1e-12)
    assert fan.std == pytest.approx([1.0], abs=1e-3)
    assert fan.crps(np.array([0.3])) == pytest.approx(0.3 * (2 * stats.norm.cdf(0.3) - 1) + 2 * stats.norm.pdf(0.3) - np.pi**-0.5, abs=1e-6)  # fmt: skip
    assert fan.log_prob(np.array([0.3])) == pytest.approx(stats.norm.logpdf(0.3), abs=1e-3)


@pytest.mark.parametrize("tails", ["exponential", "flat", (-9.0, 9.0), (-INF, 9.0)])
def test_coordinates_have_the_wasserstein_distance(tails, rng):
    """The root of ``integral (Q(u) - Q'(u))^2 du``."""
    fan = Quantiles(np.sort(rng.normal(size=(2, 5)) * [[1.0], [3.0]], axis=1), LEVELS, tails)

    def squared(u):
        return np.diff(fan.quantile(np.array([u]))[:, 0])[0] ** 2

    ends = [1e-15, 1e-9, 1e-4, *LEVELS, 1 - 1e-4, 1 - 1e-9, 1 - 1e-15]
    exact = sum(quad(squared, a, b, epsabs=1e-11)[0] for a, b in pairwise(ends))
    assert np.linalg.norm(np.diff(fan.coords, axis=0)) == pytest.approx(np.sqrt(exact), rel=1e-8)


def test_coordinates_of_points_are_their_distance(fan):
    points = fan.point(np.array([1.0, 4.0]))
    assert np.linalg.norm(np.diff(points.coords, axis=0)) == pytest.approx(3.0, rel=1e-14)
    assert points.cdf(np.array([1.0, 3.9])).tolist() == [1.0, 0.0]
    assert points.mean.tolist() == [1.0, 4.0]


def test_crossing_quantiles_are_refused_and_can_be_sorted():
    values = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.5], [4.0, 3.0, 5.0]]
    with pytest.raises(
        InputError,
        match=r"values cross in 2 rows, first in row 1: 3 at level 0.5 is above 2.5 at level 0.75; Quantiles.rearranged",
    ):
        Quantiles(values, [0.25, 0.5, 0.75])
    fan = Quantiles.rearranged(values, [0.25, 0.5, 0.75], tails="flat")
    assert fan.values.tolist() == np.sort(values, axis=1).tolist()
    assert fan.tails == "flat"


@pytest.mark.parametrize(
    ("values", "levels", "message"),
    [
        (
            [[1.0, 2.0]],
            [0.0, 0.5],
            r"strictly between 0 and 1; found 0: give the ends of the range as tails=\(low, high\)",
        ),
        ([[1.0, 2.0]], [0.5, 1.0], "strictly between 0 and 1; found 1: give the ends"),
        ([[1.0, 2.0]], [5, 95], "strictly between 0 and 1; found 95: divide percentages by 100"),
        ([[1.0, 2.0]], [0.5, 0.2], "levels must increase; 0.2 comes after 0.5: sort levels and columns"),
        ([[1.0, 2.0]], [0.5, 0.5], "levels must increase; found 0.5 twice"),
        ([[1.0]], [0.5], r"levels must be at least two numbers, one per column; got shape \(1,\)"),
        ([[1.0, 2.0]], [[0.2, 0.5]], r"levels must be at least two numbers, one per column; got shape \(1, 2\)"),
        ([[1.0, 2.0]], [0.2, np.nan], "levels has NaN"),
        ([[1.0, np.nan]], [0.2, 0.5], "values has NaN or infinite values in 1 place, first in row 0"),
        ([[1.0, INF]], [0.2, 0.5], "values has NaN or infinite"),
        ([[1.0, 2.0, 3.0]], [0.2, 0.5], r"values must be \(n, 2\), one column per level; got shape \(1, 3\)"),
        ([1.0, 2.0], [0.2, 0.5], r"values must be \(n, 2\), one column per level; got shape \(2,\)"),
        (np.zeros((0, 2)), [0.2, 0.5], "values is empty"),
    ],
)
def test_parameters_are_checked(values, levels, message):
    with pytest.raises(InputError, match=message):
        Quantiles(values, levels)


@pytest.mark.parametrize(
    ("tails", "message"),
    [
        ("gaussian", r"tails must be 'exponential', 'flat' or the ends of the range \(low, high\); got 'gaussian'"),
        (None, "tails must be 'exponential', 'flat' or the ends"),
        ((0.0,), "tails must be 'exponential', 'flat' or the ends"),
        ((1.5, 9.0), "tails: low is 1.5 in row 0, within its quantiles: 1 is beyond it"),
        ((0.0, [9.0, 3.0]), "tails: high is 3 in row 1, within its quantiles: 4 is beyond it"),
        ((np.nan, 9.0), "tails: low must be finite, or infinite in every row; got nan"),
        ((INF, 9.0), "tails: low must be finite, or infinite in every row; got inf"),
        (([0.0, -INF], 9.0), "tails: low must be finite, or infinite in every row"),
        (([0.0, 0.0, 0.0], 9.0), r"tails: low must be one number, or one per row; got shape \(3,\)"),
    ],
)
def test_tails_are_checked(tails, message):
    with pytest.raises(InputError, match=message):
        Quantiles([[1.0, 2.0], [2.0, 4.0]], [0.2, 0.5], tails)


def test_targets_are_checked(fan):
    with pytest.raises(InputError, match=r"y_true must be one number per row; got shape \(4, 2\)"):
        fan.as_targets(np.zeros((4, 2)))


def test_rows_words_and_travel(rng):
    fan = Quantiles(
        np.sort(rng.normal(size=(1500, 2)), axis=1), [0.2, 0.5], (np.full(1500, -9.0), np.arange(9, 1509.0))
    )
    part = fan[np.array([3, 1])]
    assert part.tails[1].tolist() == [12.0, 10.0]
    assert np.array_equal(part.values, fan.values[[3, 1]])
    assert repr(fan) == "<Quantiles: 1,500 predictions of 2 quantiles>"
    again = pickle.loads(pickle.dumps(fan))
    assert np.array_equal(again.cdf(np.zeros(1500)), fan.cdf(np.zeros(1500)))


def test_every_library_gives_the_same_numbers(xp, fan, rng):
    y = rng.normal(size=4)
    other = Quantiles(xp.asarray(fan.values), LEVELS.tolist(), (-9.0, INF))
    ours = Quantiles(fan.values, LEVELS, (-9.0, INF))
    for found, exact in (
        (other.coords, ours.coords),
        (other.cf(np.array([0.7, 2.0]))[1], ours.cf(np.array([0.7, 2.0]))[1]),
    ):
        assert isinstance(found, type(other.values))
        assert np.asarray(found) == pytest.approx(exact, rel=1e-12)
    assert other.crps(xp.asarray(y)) == pytest.approx(ours.crps(y), rel=1e-13)
    assert np.asarray(other.point(y).values).tolist() == ours.point(y).values.tolist()
    error = SKCE(Exponential(1.0), Gaussian(1.0))
    assert float(error(xp.asarray(y), other).value) == pytest.approx(error(y, ours).value, rel=1e-10)


def test_gradients_flow_through_the_quantiles(fan, rng):
    torch = pytest.importorskip("torch")
    y, values = rng.normal(size=4), torch.tensor(fan.values, requires_grad=True)
    error = SKCE(Exponential(1.0), Gaussian(1.0))
    error(torch.tensor(y), Quantiles(values, LEVELS)).value.backward()
    step = np.zeros((4, 5))
    step[2, 3] = 1e-6
    slope = sum(s * error(y, Quantiles(fan.values + s * step, LEVELS)).value for s in (1, -1)) / 2e-6
    assert float(values.grad[2, 3]) == pytest.approx(slope, rel=1e-5)


def test_single_precision_is_close(fan, rng):
    y, single = rng.normal(size=4), Quantiles(fan.values.astype(np.float32), LEVELS)
    assert single.coords.dtype == np.float32
    assert SKCE()(y, single).value == pytest.approx(SKCE()(y, fan).value, abs=1e-5)


def test_tests_work_out_of_the_box(rng):
    level = rng.normal(size=(60, 1))
    fan = Quantiles.joined(level + stats.norm.ppf(LEVELS), LEVELS)
    honest = fan.sample(rng, 1)[0]
    result = SKCE()(honest, fan)
    assert result.route == "spectral; plain"
    assert ExactTest(SKCE(), n_resamples=99)(honest, fan).pvalue > 0.05
    assert ExactTest(SKCE(), n_resamples=99)(honest + 1, fan).pvalue == 0.01
    assert np.isfinite(LogLoss()(honest, fan).value)


def test_an_interval_is_two_quantiles():
    fan = Quantiles.interval([1.0, 2.0], [3.0, 5.0], level=0.8)
    np.testing.assert_allclose(fan.levels, [0.1, 0.9])
    np.testing.assert_array_equal(fan.values, [[1.0, 3.0], [2.0, 5.0]])


@pytest.mark.parametrize(
    ("low", "high", "level", "words"),
    [
        ([1.0], [3.0], 90, "level must lie strictly between 0 and 1"),
        ([1.0, 4.0], [3.0, 2.0], 0.9, "low must not be above high; row 1 has 4 and 2"),
        ([1.0], [3.0, 2.0], 0.9, r"one number per row; got shapes \(1,\) and \(2,\)"),
    ],
)
def test_no_interval(low, high, level, words):
    with pytest.raises(InputError, match=words):
        Quantiles.interval(low, high, level)
