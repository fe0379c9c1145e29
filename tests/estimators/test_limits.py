import numpy as np
import pytest
from scipy.special import betaincinv, chdtri, expit, logit, ndtri
from scipy.stats import binom, halfnorm, ncx2

from calibrant import ECE, Bernoulli, ClassWise, DebiasedECE, EqualMass, EqualWidth, Normal, SmoothECE, Sweep, TopLabel
from calibrant.estimators import CanonicalECE, KolmogorovSmirnov, Kuiper, PITError
from calibrant.estimators.binned.binning import lp_norm, tally
from calibrant.estimators.limits import (
    ArcGap,
    CurveGap,
    RootOfSquares,
    SquareWithoutBias,
    SumOfGaps,
    above,
    kuiper_quantile,
    noise_of,
    noise_of_rows,
    skewed_quantile,
    squares_within,
)
from calibrant.inference import proportions

WORLDS = {
    "calibrated": (lambda rng, n: rng.random(n), lambda p: p),
    "one event in a thousand": (lambda rng, n: rng.beta(0.1, 100, n), lambda p: p),
    "one score": (lambda rng, n: np.full(n, 0.001), lambda p: p),
    "three times as many": (lambda rng, n: rng.beta(0.5, 100, n), lambda p: np.minimum(3 * p, 1)),
    "zeros are not": (lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)), lambda p: np.maximum(p, 0.03)),
    "mild": (lambda rng, n: rng.uniform(0.01, 0.99, n), lambda p: expit(0.8 * logit(p))),
    "strong": (lambda rng, n: rng.uniform(0.01, 0.99, n), lambda p: expit(0.4 * logit(p) + 0.3)),
}


def covered(estimator, world, n, rng, sets=100):
    """How often the interval covers the error with the true frequencies in the place of what happened."""
    scores, truth = WORLDS[world]
    count = 0
    for _ in range(sets):
        p = scores(rng, n)
        q = truth(p)
        interval = estimator((rng.random(n) < q).astype(int), p).confidence_interval()
        assert 0 <= interval.low <= interval.high <= 1
        count += interval.low - 1e-12 <= true_error(estimator, p, q) <= interval.high + 1e-12
    return count


def true_error(estimator, p, q):
    if isinstance(estimator, KolmogorovSmirnov | Kuiper):
        walk = np.cumsum(np.bincount(np.unique(p, return_inverse=True)[1], weights=p - q)) / len(p)
        return float(estimator.of_walks(np.append(0.0, walk)[None])[0])
    if isinstance(estimator, SmoothECE):
        return float(estimator.errors(p, None)(q[None])[0])
    bins = estimator.bins.bins(p)
    cell = bins.of_rows(p, slice(None))
    rows, gap = np.bincount(cell, minlength=len(bins)), np.bincount(cell, weights=p - q, minlength=len(bins))
    return float(lp_norm(gap / np.where(rows > 0, rows, 1), rows, estimator.norm))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "estimator",
    [
        ECE(EqualMass(15)),
        ECE(EqualWidth(15), norm=2),
        ECE(EqualMass(5), norm=np.inf),
        DebiasedECE(EqualMass(15)),
        DebiasedECE(EqualWidth(15), norm=1),
        KolmogorovSmirnov(),
        Kuiper(),
        SmoothECE(),
        SmoothECE(0.05),
    ],
    ids=repr,
)
def test_errors_are_covered(estimator, world, rng):
    """Near calibration resampling covered in none to half of the data sets."""
    for n in (20, 300):
        assert covered(estimator, world, n, rng) >= binom.ppf(0.0005, 100, 0.95)


def test_a_clear_error_is_told_from_zero(rng):
    p = rng.random(2000)
    y = (rng.random(2000) < 0.2 + 0.6 * p).astype(int)
    for estimator in (
        ECE(),
        ECE(norm=2),
        DebiasedECE(),
        DebiasedECE(norm=1),
        KolmogorovSmirnov(),
        Kuiper(),
        SmoothECE(),
    ):
        found = estimator(y, p)
        low, high = found.confidence_interval()
        assert 0 < low < found.value < high < 2.2 * found.value
        assert found.confidence_interval(0.5).low > low


def test_the_debiased_error_has_an_interval_that_is_never_negative(rng):
    values = []
    for _ in range(50):
        p = rng.random(200)
        found = DebiasedECE()((rng.random(200) < p).astype(int), p)
        low, high = found.confidence_interval()
        assert 0 <= low < high
        values.append(found.value)
    assert min(values) < 0


def test_averages_over_classes_and_labels_are_covered(rng):
    """Twenty labels: the bias of every one adds up, and resampling covered 13 %."""
    estimator, count = ECE(EqualMass(15)), 0
    for _ in range(60):
        p = rng.beta(0.5, 0.5, (300, 20))
        q = expit(0.8 * logit(p))
        interval = estimator((rng.random((300, 20)) < q).astype(int), Bernoulli(p)).confidence_interval()
        count += interval.low <= np.mean([true_error(estimator, p[:, i], q[:, i]) for i in range(20)]) <= interval.high
    assert count >= binom.ppf(0.0005, 60, 0.95)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("k", [2, 10])
def test_all_classes_at_once_are_covered(norm, k, rng):
    estimator, count = CanonicalECE(norm=norm), 0
    for _ in range(60):
        p = rng.dirichlet(np.ones(k), 200)
        q = p**0.6 / (p**0.6).sum(axis=1, keepdims=True)
        y = (q.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(0, k - 1)
        cell = estimator.cells.cells(p)
        gaps = np.stack([np.bincount(cell, weights=x) for x in (p - q).T], axis=1)
        rows = np.bincount(cell)
        truth = ((np.abs(gaps) ** norm).sum(axis=1) @ (1 / rows.astype(float)) ** (norm - 1) / 200) ** (1 / norm)
        interval = estimator(y, p).confidence_interval()
        count += interval.low <= truth <= interval.high
    assert count >= binom.ppf(0.0005, 60, 0.95)


def test_weights_count_as_importance(rng):
    p = rng.random(300)
    y = (rng.random(300) < 0.3 + 0.5 * p).astype(int)
    for estimator in (ECE(), ECE(norm=2), DebiasedECE(), KolmogorovSmirnov(), SmoothECE(0.1)):
        plain = estimator(y, p).confidence_interval()
        same = estimator(y, p, sample_weight=np.full(300, 2.5)).confidence_interval()
        assert tuple(same) == pytest.approx(tuple(plain), abs=0.01)
        uneven = estimator(y, p, sample_weight=np.where(np.arange(300) < 30, 9.0, 0.1)).confidence_interval()
        assert uneven.high - uneven.low > plain.high - plain.low


def test_what_has_no_limits_says_why(rng):
    p = rng.dirichlet(np.ones(3), 50)
    y = p.argmax(axis=1)
    reasons = {
        ECE(Sweep(), lens=TopLabel()): "the bins depend on what happened",
        DebiasedECE(Sweep(), lens=TopLabel()): "the bins depend on what happened",
        ECE(label_binned=True, lens=TopLabel()): "label_binned=True",
        ECE(norm=3, lens=TopLabel()): "norm=3",
        CanonicalECE(norm=np.inf): "norm=inf",
    }
    for estimator, reason in reasons.items():
        found = estimator(y, p)
        assert reason in found.withheld
        with pytest.raises(ValueError, match="has no interval"):
            found.confidence_interval()


def test_noise_of_tallies_is_at_least_that_of_rows(rng):
    p = rng.beta(0.3, 3, 500)
    y = rng.random(500) < p
    bins = EqualWidth(20).bins(p)
    counted = tally(p, y, bins, None)
    exact = noise_of_rows(p, y, bins.of_rows(p, slice(None)), None, 20)
    assert np.all(noise_of(counted) >= exact - 1e-12)
    assert noise_of(counted).sum() == pytest.approx(exact.sum(), rel=0.05)


def test_limits_of_squares_solve_their_equation():
    low, high = squares_within(0.5, 0.01, 0.002, 1.96)
    for x in (low, high):
        assert abs(0.5 - x) == pytest.approx(1.96 * (4 * x * 0.01 + 0.002) ** 0.5, rel=1e-12)
    assert squares_within(0.01, 0.01, 0.002, 1.96)[0] == 0


def test_nothing_seen_is_not_nothing():
    """No event among many rows: -log(0.025) may be true (the exact limit of one side; Wilson's is 3.84)."""
    assert above(0.0, 1e-6, 0.025) == pytest.approx(-1e-6 * np.log(0.025), rel=1e-6)


@pytest.mark.parametrize("events", [1, 4, 40])
def test_limits_of_rare_events_are_exact(events):
    """Garwood's limit of a Poisson count; Wilson's of one event is 5.2 and the exact one 5.57."""
    exact = chdtri(2 * events + 2, 0.025) / 2
    assert events + 1e6 * above(1e-12 * events, 1e-6, 0.025) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("n", [3, 40, 700])
@pytest.mark.parametrize("tail", [0.3, 0.05, 1e-6])
def test_limits_of_curves_leave_nothing_out(n, tail, rng):
    """Against the exact limits at every level; most levels are ruled out by the normal ones."""
    u = np.sort(rng.beta(*rng.choice([0.5, 1.0, 2.0], 2), n))
    low, high = proportions.clopper_pearson(np.arange(n + 1) / n, np.full(n + 1, n), tail)
    exact = max((high - np.append(0.0, u)).max(), (np.append(u, 1.0) - low).max())
    below, over = CurveGap(u, 0.1)(tail)
    assert 0.1 + over == pytest.approx(exact, abs=1e-12)
    assert below == pytest.approx((np.log(2 / tail) / (2 * n)) ** 0.5, rel=1e-12)


def test_the_largest_gap_has_the_exact_limit_of_one_cell(rng):
    """At the whole level, however many cells there are; the lower limit is for all of them at once."""
    p, y = np.repeat([0.2, 0.5, 0.9], 50), np.repeat([0, 1, 0, 1, 0, 1], [45, 5, 20, 30, 4, 46])
    found = ECE(EqualMass(3), norm=np.inf)(y, p).confidence_interval(0.9)
    (_, high), (low, _) = (proportions.clopper_pearson(np.array([0.6]), np.array([50]), t) for t in (0.05, 0.05 / 3))
    assert found.high == pytest.approx(
        max(high[0] - 0.5, 0.2 - proportions.clopper_pearson(np.array([0.1]), np.array([50]), 0.05)[0][0])
    )
    assert found.low == pytest.approx(max(low[0] - 0.5, 0.0))
    assert found.method == "Clopper-Pearson"


def test_largest_gaps_of_all_classes_have_limits(rng):
    p = rng.dirichlet(np.ones(3), 300)
    y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    y[p[:, 2] > 0.6] = 0  # the last class is the worst
    whole = ECE(EqualMass(4), norm=np.inf, lens=ClassWise())(y, p).confidence_interval(0.9)
    parts = [ECE(EqualMass(4), norm=np.inf)((y == k).astype(int), p[:, k]).confidence_interval(0.9) for k in range(3)]
    assert parts[0].high < parts[1].high < parts[2].high or parts[1].high < parts[0].high < parts[2].high
    assert whole.high == pytest.approx(parts[2].high)
    assert 0 <= whole.low <= max(part.low for part in parts)


def test_the_limit_without_bias_has_the_square_at_its_quantile(rng):
    """A second route: squares of normal noise in ten cells, the whole error in one of them."""
    n, cells = 4000, 10
    p = np.repeat((np.arange(cells) + 0.5) / cells, n // cells)
    found = DebiasedECE(EqualMass(cells))((rng.random(n) < p).astype(int), p)
    high = found.confidence_interval(0.9).high
    truth = p.reshape(cells, -1)[:, 0].copy()
    truth[4] += high * cells**0.5
    counts = rng.binomial(n // cells, np.minimum(truth, 1), (40_000, cells))
    gap = counts / (n // cells) - p.reshape(cells, -1)[:, 0]
    size = n // cells
    squares = counts * (1 - 2 * p.reshape(cells, -1)[:, 0]) + size * p.reshape(cells, -1)[:, 0] ** 2
    drawn = (((gap * size) ** 2 - squares) / (size * (size - 1))).mean(axis=1)
    square = max(np.sign(found.value) * found.value**2, 0.0)
    assert np.mean(drawn <= square) == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(("tail", "stephens"), [(0.1, 1.620), (0.05, 1.747), (0.025, 1.862), (0.01, 2.001)])
def test_quantiles_of_kuipers_statistic_are_those_of_stephens(tail, stephens):
    assert kuiper_quantile(10**8, tail) * 1e4 == pytest.approx(stephens, abs=1e-3)
    assert kuiper_quantile(40, tail) * (40**0.5 + 0.155 + 0.24 / 40**0.5) == pytest.approx(stephens, abs=1e-3)


@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("share", [0.0, 0.08, 0.5])
def test_limits_of_the_gap_of_any_interval_hold(n, share, rng):
    """A share of all PIT values lies at 0.3: so large is the gap of an interval around it."""
    sets, misses = 400, np.zeros(2)
    for _ in range(sets):
        u = np.where(rng.random(n) < share, 0.3 + 1e-9 * rng.random(n), rng.random(n))
        low, high = PITError("kuiper")(ndtri(u), Normal(np.zeros(n), 1.0)).confidence_interval(0.9)
        misses += np.array([low > share, high < share])
    assert misses.max() <= binom.isf(0.001, sets, 0.05)


def test_the_limit_of_any_interval_is_the_largest_of_single_shares():
    counts = np.arange(30)
    exact = betaincinv(counts + 1, 30 - counts, 0.95) - counts / 30
    assert ArcGap(30)(0.05)[1] == exact.max()
    fine = np.arange(100_000)
    exact = betaincinv(fine + 1, 100_000 - fine, 0.95) - fine / 100_000
    assert ArcGap(100_000)(0.05)[1] == pytest.approx(exact.max(), rel=1e-5)


@pytest.mark.parametrize("square", [0.0, 1e-4, 0.01])
def test_the_root_without_bias_solves_its_equation(square):
    """Moments of ``(theta + e)^2 + sum e_b^2`` by adding up those of each square, and the quantile by SciPy."""
    noise, step = np.array([4e-4, 1e-4, 9e-4]), 1e-3
    shares, means = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.5, 0.3])
    plain = RootOfSquares(np.zeros(3), noise, np.full(3, step), np.ones(3), 0.0)
    found = SquareWithoutBias(plain, square, square**0.5, means, shares, np.full(3, 1e-3)).root(0.05)

    def quantile(theta):
        gap = theta / np.sqrt(shares)
        ends = np.minimum(means + gap, 1), np.maximum(means - gap, 0)
        own = max(max((q * (1 - q)).max() for q in ends) * 1e-3, 9e-4 + step**2)
        v = np.array([own, 4e-4 + step**2, 1e-4 + step**2])
        moments = ncx2.stats(1, [theta**2 / own, 0, 0], moments="vs")  # of squares of normal variables, in units of v
        variance = (moments[0] * v**2).sum()
        skewness = (moments[1] * moments[0] ** 1.5 * v**3).sum() / variance**1.5
        return theta**2 + variance**0.5 * skewed_quantile(skewness, 0.05)

    assert quantile(found) == pytest.approx(square, abs=1e-7)


def test_the_limit_of_a_sum_of_sizes_of_noise():
    """No gap is sure: sizes of normal noise, whose moments SciPy knows."""
    variances = np.array([4e-4, 1e-4, 9e-4])
    below, _ = SumOfGaps(np.zeros(3), variances, 1e-3)(0.05)
    mean, variance, skewness = halfnorm.stats(scale=np.sqrt(variances), moments="mvs")
    third = (skewness * variance**1.5).sum()
    quantile = skewed_quantile(third / variance.sum() ** 1.5, 0.95)
    assert below == pytest.approx(mean.sum() + variance.sum() ** 0.5 * quantile, rel=1e-9)


def test_gaps_without_spread_are_what_they_are():
    none = np.zeros(2)
    assert RootOfSquares(np.array([0.3, 0.4]), none, none, none, 0.5).low(0.25, 0.025) == 0.5
