import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm as normal

from calibrant import ECE, Bernoulli, Categorical, ClassWise, DebiasedECE, EqualMass, EqualWidth, ExactTest, Sweep
from calibrant._validate import InputError
from calibrant.checks import check_estimator

BINS = [EqualMass(7), EqualWidth(10)]


@pytest.fixture
def data(rng):
    p = rng.beta(0.6, 0.4, 120)
    return (rng.random(120) < p**1.5).astype(int), p


def cells(bins, p):
    index = bins.bins(p).index(p)
    return [index == b for b in np.unique(index)]


@pytest.mark.parametrize("bins", BINS, ids=repr)
def test_squares_are_products_of_all_pairs(bins, data):
    y, p = data
    r, total = p - y, 0.0
    for rows in cells(bins, p):
        n = rows.sum()
        if n > 1:
            outer = np.outer(r[rows], r[rows])
            total += n / len(p) * (outer.sum() - np.trace(outer)) / (n * (n - 1))
    assert DebiasedECE(bins)(y, p).value == pytest.approx(np.sign(total) * np.sqrt(abs(total)), rel=1e-10)


@pytest.mark.parametrize("singletons", ["drop", "keep"])
@pytest.mark.parametrize("bins", BINS, ids=repr)
def test_variances_of_frequencies(bins, singletons, data):
    y, p = data[0][:40], data[1][:40]
    total = 0.0
    for rows in cells(bins, p):
        n, f = rows.sum(), y[rows].mean()
        gap = (p[rows].mean() - f) ** 2
        total += n / 40 * (gap - f * (1 - f) / (n - 1) if n > 1 else gap * (singletons == "keep"))
    found = DebiasedECE(bins, method="variance", singletons=singletons)(y, p).value
    assert found == pytest.approx(np.sign(total) * np.sqrt(abs(total)), rel=1e-10)


def test_absolute_gaps_by_quadrature(data):
    y, p = data
    total = 0.0
    for rows in cells(EqualMass(7), p):
        n, f, mean = rows.sum(), y[rows].mean(), p[rows].mean()
        noisy = abs(mean - f)
        if 0 < f < 1:
            sd = np.sqrt(f * (1 - f) / n)
            noisy = quad(
                lambda t, m=mean, f=f, sd=sd: abs(m - t) * normal.pdf(t, f, sd),
                f - 12 * sd,
                f + 12 * sd,
                points=[mean],
                limit=200,
            )[0]
        total += n / 120 * (2 * abs(mean - f) - noisy)
    assert DebiasedECE(EqualMass(7), norm=1)(y, p).value == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("method", ["pairs", "variance"])
def test_conformance(norm, method, rng, data):
    y, p = data
    check_estimator(DebiasedECE(norm=norm, method=method), y, Categorical(p))
    check_estimator(DebiasedECE(EqualWidth(3), norm=norm, method=method, singletons="keep"), y[:9], Categorical(p[:9]))
    classes = Categorical.example(rng, 50)
    check_estimator(
        DebiasedECE(lens=ClassWise(), norm=norm, method=method), classes.sample(rng, 1)[0].astype(int), classes
    )
    labels = rng.random((40, 3))
    check_estimator(DebiasedECE(norm=norm, method=method), (rng.random((40, 3)) < labels) * 1, Bernoulli(labels))
    check_estimator(DebiasedECE(Sweep(), norm=norm, method=method), y, Categorical(p))


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("method", ["pairs", "variance"])
def test_equal_weights_change_nothing(norm, method, data):
    estimator = DebiasedECE(norm=norm, method=method)
    assert estimator(*data, sample_weight=np.full(120, 3.5)).value == pytest.approx(estimator(*data).value, rel=1e-10)


def test_weights_weigh_pairs(rng):
    y, p, w = rng.integers(0, 2, 12), rng.random(12), rng.uniform(0.1, 3, 12)
    r = w * (p - y)
    pairs = ((r.sum() ** 2 - (r**2).sum()) / (w.sum() ** 2 - (w**2).sum())).item()
    value = DebiasedECE(EqualMass(1))(y, p, sample_weight=w).value
    assert value == pytest.approx(np.sign(pairs) * np.sqrt(abs(pairs)), rel=1e-10)


def test_the_mean_square_is_unbiased_for_calibrated_data():
    """The plug-in square has mean (1/n) sum_b mean of p(1-p), far from zero."""
    rng, n = np.random.default_rng(5), 60
    squares, plain = [], []
    for _ in range(3_000):
        p = rng.random(n)
        y = (rng.random(n) < p).astype(int)
        value = DebiasedECE(EqualMass(15))(y, p).value
        squares.append(np.sign(value) * value**2)
        plain.append(ECE(EqualMass(15), norm=2)(y, p).value ** 2)
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares)) < 4 * error
    assert np.mean(plain) > 20 * error


def test_pairs_are_unbiased_where_variances_are_not():
    """Within a bin scores differ, so that the variance of y - f is not that of y."""
    rng, values = np.random.default_rng(6), {"pairs": [], "variance": []}
    for _ in range(2_000):
        p = rng.random(40)
        y = (rng.random(40) < p).astype(int)
        for method, found in values.items():
            value = DebiasedECE(EqualMass(1), method=method)(y, p).value
            found.append(np.sign(value) * value**2)
    z = {method: np.mean(found) / (np.std(found) / np.sqrt(2_000)) for method, found in values.items()}
    assert abs(z["pairs"]) < 4
    assert z["variance"] < -6


def test_the_table_shows_what_bins_add(data):
    result = DebiasedECE(EqualMass(4))(*data)
    share = result.table["weight"] / 120
    assert result.value**2 == pytest.approx(abs(share @ result.table["debiased"]), rel=1e-12)
    assert result.lens == "positive class (1)"


def test_tests_and_bad_settings(data):
    y, p = data
    assert ExactTest(DebiasedECE())(1 - y, p).pvalue == 0.001
    for settings, message in [
        ({"norm": 3}, "norm must be 1 or 2"),
        ({"method": "magic"}, "method must be 'pairs' or 'variance'; got 'magic'"),
        ({"singletons": 1}, "singletons must be 'drop' or 'keep'; got 1"),
        ({"bins": 15}, "bins must be a binning"),
        ({"lens": "top"}, "lens must be a lens"),
    ]:
        with pytest.raises(InputError, match=message):
            DebiasedECE(**settings)


@pytest.mark.parametrize(("y", "p"), [([1], [0.3]), ([1, 0, 1], [0.5] * 3), ([0, 1], [0.0, 1.0])])
@pytest.mark.parametrize("norm", [1, 2])
def test_small_data_give_finite_values(y, p, norm):
    assert np.isfinite(DebiasedECE(norm=norm)(y, p).value)
    assert np.isfinite(DebiasedECE(norm=norm, singletons="keep")(y, p).value)
