import numpy as np
import pytest
from scipy.stats import binom, chi2

from calibrant import ECE, ClassWise, EqualMass, ExactTest, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.inference import HosmerLemeshow
from calibrant.inference.classical import GROUPS_NOTE


def by_hand(y, p, n_groups):
    """The definition, one group after the other, for scores without ties."""
    total = 0.0
    for rows in np.array_split(np.argsort(p), n_groups):
        n, expected = len(rows), p[rows].sum()
        total += (y[rows].sum() - expected) ** 2 / (expected * (1 - expected / n))
    return total


@pytest.fixture
def problem(rng):
    p = rng.uniform(0.1, 0.9, 203)
    return (rng.random(203) < p).astype(int), p


@pytest.mark.parametrize("n_groups", [1, 4, 10])
def test_against_the_definition(problem, n_groups):
    y, p = problem
    result = HosmerLemeshow(n_groups)(y, p)
    expected = by_hand(y, p, n_groups)
    assert result.statistic == pytest.approx(expected, rel=1e-10)
    assert result.pvalue == pytest.approx(chi2.sf(expected, n_groups), rel=1e-10)


def test_a_model_fitted_to_these_rows_has_two_degrees_of_freedom_fewer(problem):
    y, p = problem
    result = HosmerLemeshow(fitted=True)(y, p)
    assert result.pvalue == pytest.approx(chi2.sf(by_hand(y, p, 10), 8), rel=1e-10)
    with pytest.raises(InputError, match="fitted=True takes two degrees of freedom and y_pred makes 2 groups"):
        HosmerLemeshow(2, fitted=True)(y, p)


@pytest.mark.parametrize("n", [200, 1000])
def test_the_level_where_counts_are_not_small(n, bounds):
    rng, sets = np.random.default_rng(3), 1000
    rejected = 0
    for _ in range(sets):
        p = rng.uniform(0.2, 0.8, n)
        rejected += HosmerLemeshow()((rng.random(n) < p).astype(int), p).pvalue <= 0.05
    low, high = bounds(sets)
    assert low <= rejected <= high


def test_the_level_of_a_model_fitted_to_these_rows(bounds):
    """Two coefficients of a logistic model take about two degrees of freedom; without ``fitted`` the test is timid."""
    from scipy.optimize import minimize
    from scipy.special import expit

    rng, sets = np.random.default_rng(9), 800
    rejected = np.zeros(2)
    for _ in range(sets):
        x = rng.uniform(-1.5, 1.5, 300)
        y = (rng.random(300) < expit(x)).astype(int)
        a, b = minimize(lambda c, x=x, y=y: np.logaddexp(0, (1 - 2 * y) * (c[0] + c[1] * x)).sum(), [0, 1]).x
        rejected += [HosmerLemeshow(fitted=fitted)(y, expit(a + b * x)).pvalue <= 0.05 for fitted in (True, False)]
    low, high = bounds(sets)
    assert low <= rejected[0] <= high
    assert rejected[1] < binom.ppf(0.01, sets, 0.05)


def rejected(scores, n_groups, rng):
    """How many calibrated data sets ``(sets, n)`` the definition rejects at 5 %, with groups of equal size."""
    groups = np.sort(scores).reshape(len(scores), n_groups, -1)
    size, mean = groups.shape[2], groups.mean(axis=2)
    observed = (rng.random(groups.shape) < groups).sum(axis=2)
    statistic = ((observed - size * mean) ** 2 / (size * mean * (1 - mean))).sum(axis=1)
    return np.sum(statistic > chi2.isf(0.05, n_groups))


@pytest.mark.parametrize(
    ("alpha", "beta", "n"), [(0.5, 0.5, 100), (0.5, 50, 100), (0.5, 50, 1000), (1, 199, 2000), (500, 0.5, 1000)]
)
def test_it_is_refused_where_calibrated_predictions_would_be_rejected_too_often(alpha, beta, n, bounds):
    """Few events: ten groups reject more than 5 %; the number of groups that is named, if one is, does not."""
    rng, sets = np.random.default_rng(4), 1000
    scores = rng.beta(alpha, beta, (sets, n))
    assert rejected(scores, 10, rng) > bounds(sets)[1]
    p = scores[0]
    y = (rng.random(n) < p).astype(int)
    with pytest.raises(InputError, match=r"at least 3 is needed: use ExactTest\(ECE\(EqualMass\(10\)\)\)") as refused:
        HosmerLemeshow()(y, p)
    assert 0 < ExactTest(ECE(EqualMass(10)), 99)(y, p, rng=0).pvalue <= 1
    _, _, fewer = str(refused.value).partition("or n_groups=")
    if fewer:
        assert HosmerLemeshow(int(fewer))(y, p).n == n
        whole = n - n % int(fewer)
        assert rejected(np.broadcast_to(p[:whole], (sets, whole)), int(fewer), rng) <= bounds(sets)[1]


def test_where_a_few_groups_expect_little_it_says_so(bounds):
    rng, sets = np.random.default_rng(5), 1000
    scores = rng.beta(0.5, 0.5, (sets, 1000))
    assert rejected(scores, 10, rng) <= bounds(sets)[1]
    result = HosmerLemeshow()((rng.random(1000) < scores[0]).astype(int), scores[0])
    assert result.notes[0].startswith("some groups expect fewer than 5 events or non-events, so the p-value is rough")


def test_it_misleads_by_its_number_of_groups():
    """A wave with ten periods averages out in ten groups and not in forty: one data set in seven is rejected, or all."""
    rng, sets, n = np.random.default_rng(5), 100, 1000
    rejected = dict.fromkeys((10, 40), 0)
    for _ in range(sets):
        p = rng.uniform(0.1, 0.9, n)
        y = (rng.random(n) < p + 0.9 * np.sin(25 * np.pi * (p - 0.1)) * np.minimum(p, 1 - p)).astype(int)
        for n_groups in rejected:
            rejected[n_groups] += HosmerLemeshow(n_groups)(y, p).pvalue <= 0.05
    assert rejected[10] <= binom.ppf(0.9995, sets, 0.15)
    assert rejected[40] >= 99


class TestWeights:
    def test_a_weight_is_importance(self, problem):
        y, p = (x[:200] for x in problem)
        plain = HosmerLemeshow()(y, p)
        scaled = HosmerLemeshow()(y, p, sample_weight=np.full(200, 3.5))
        assert scaled.statistic == pytest.approx(plain.statistic, rel=1e-9)

    def test_the_level(self, bounds):
        rng, sets = np.random.default_rng(6), 600
        rejected = 0
        for _ in range(sets):
            p = rng.uniform(0.2, 0.8, 500)
            y = (rng.random(500) < p).astype(int)
            rejected += HosmerLemeshow(5)(y, p, sample_weight=rng.uniform(0.2, 2, 500)).pvalue <= 0.05
        low, high = bounds(sets)
        assert low <= rejected <= high

    def test_rows_without_weight_do_not_count(self, problem):
        y, p = problem
        w = np.r_[np.ones(180), np.zeros(23)]
        assert HosmerLemeshow()(y, p, sample_weight=w).pvalue == pytest.approx(
            HosmerLemeshow()(y[:180], p[:180]).pvalue, rel=1e-9
        )


class TestEdges:
    def test_ties_make_fewer_groups(self):
        y, p = [0, 1, 1, 0] * 5, [0.4] * 20
        result = HosmerLemeshow()(y, p)
        assert result.statistic == pytest.approx((10 - 8) ** 2 / (8 * 0.6), rel=1e-12)
        assert result.pvalue == pytest.approx(chi2.sf(result.statistic, 1), rel=1e-12)

    def test_one_row(self):
        with pytest.raises(InputError, match=r"a group is 0.16 \(harmonic mean\)"):
            HosmerLemeshow()([1], [0.2])

    def test_groups_that_cannot_vary_do_not_count(self, rng):
        p = np.r_[np.zeros(50), rng.uniform(0.2, 0.8, 50), np.ones(50)]
        y = np.r_[np.zeros(50, int), (rng.random(50) < p[50:100]), np.ones(50, int)].astype(int)
        result = HosmerLemeshow(3)(y, p)
        inner = p[50:100]
        expected = (y[50:100].sum() - inner.sum()) ** 2 / (50 * inner.mean() * (1 - inner.mean()))
        assert result.statistic == pytest.approx(expected, rel=1e-10)
        assert result.pvalue == pytest.approx(chi2.sf(expected, 1), rel=1e-10)
        assert result.notes == (GROUPS_NOTE,)

    def test_the_impossible_is_rejected(self):
        result = HosmerLemeshow(2)([1, 0, 1, 1], [0.0, 0.0, 0.6, 0.7])
        assert (result.statistic, result.pvalue) == (np.inf, 0)

    def test_certain_and_right_proves_nothing(self):
        result = HosmerLemeshow()([0, 1], [0.0, 1.0])
        assert (result.statistic, result.pvalue) == (0, 1)

    def test_single_precision(self, problem):
        y, p = problem
        p32 = p.astype(np.float32)
        assert HosmerLemeshow()(y, p32).statistic == pytest.approx(
            HosmerLemeshow()(y, p32.astype(float)).statistic, rel=1e-9
        )


def test_lenses(rng):
    p = rng.dirichlet(np.full(3, 3.0), 120)
    y = rng.integers(0, 3, 120)
    assert HosmerLemeshow(5, TopLabel())(y, p).estimate.lens == "top-label"
    one = HosmerLemeshow(5, PositiveClass(1))(y, p)
    assert one.statistic == pytest.approx(HosmerLemeshow(5)((y == 1).astype(int), p[:, 1]).statistic, rel=1e-12)
    assert one.estimate.table.n_rows == 5
    with pytest.raises(InputError, match=r"HosmerLemeshow tests one event and ClassWise\(\) has 3"):
        HosmerLemeshow(lens=ClassWise())(y, p)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_groups": 0}, "n_groups must be a whole number of at least 1; got 0"),
        ({"lens": "top"}, r"lens must be a lens such as TopLabel\(\); got 'top'"),
        ({"fitted": "yes"}, "fitted must be True or False; got 'yes'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        HosmerLemeshow(**settings)


def test_columns_and_tensors(convert, rng):
    p = rng.dirichlet(np.full(3, 3.0), 120).astype(np.float32).astype(np.float64)
    y = rng.integers(0, 3, 120)
    test = HosmerLemeshow(5, lens=TopLabel())
    assert test(convert(y), convert(p)).statistic == pytest.approx(test(y, p).statistic, rel=1e-4)
