import numpy as np
import pytest
from scipy.stats import binom, chi2

from calibrant._validate import InputError
from calibrant.inference.kernel_tests import asymptotic
from calibrant.inference.kernel_tests.asymptotic import sf

TAILS = (1e-300, 1e-100, 1e-20, 1e-8, 1e-3, 0.05, 0.3, 0.5)


@pytest.mark.parametrize("df", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 50.0])
def test_equal_weights_are_chi_square(df, scale):
    for p in TAILS:
        x = chi2.isf(p, df)
        assert sf(scale * x, np.full(df, scale)) == pytest.approx(chi2.sf(x, df), rel=1e-10)
        assert sf(scale * x, np.array([scale]), np.array([float(df)])) == pytest.approx(chi2.sf(x, df), rel=1e-10)


@pytest.mark.parametrize("df", [0.3, 2.5, 1e4, 1e6])
def test_degrees_need_not_be_whole(df):
    for p in (1e-12, 0.01, 0.4):
        x = chi2.isf(p, df)
        assert sf(x, np.ones(1), np.array([df])) == pytest.approx(chi2.sf(x, df), rel=1e-10)


@pytest.mark.parametrize("df", [1, 2, 7, 300])
def test_below_the_mean_the_lower_tail_is_right(df):
    for p in (1e-9, 1e-3, 0.2, 0.45):
        x = chi2.ppf(p, df)
        assert 1 - sf(x, np.ones(df)) == pytest.approx(p, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("x", [0.01, 0.5, 3.0, 10.0, 40.0, 200.0, 1000.0, 5000.0])
def test_pairs_are_sums_of_exponentials(x):
    """Weights in pairs: ``sum_i exp(-x / 2 w_i) prod_{j != i} w_i / (w_i - w_j)``."""
    w = np.array([5.0, 2.0, 1.0, 0.1])
    shares = [np.prod([a / (a - b) for b in w if b != a]) for a in w]
    closed = sum(share * np.exp(-x / (2 * a)) for share, a in zip(shares, w, strict=True))
    assert sf(x, np.repeat(w, 2)) == pytest.approx(closed, rel=1e-11)


@pytest.mark.parametrize(
    ("weights", "degrees"),
    [
        (1 / np.arange(1, 400.0) ** 2, None),
        (0.5 ** np.arange(60), None),
        (np.r_[1.0, np.full(1000, 1e-3)], None),
        (np.array([1.0, 1e-3]), np.array([1.0, 1e6])),
        (np.array([1.0, 1e-8]), None),
        (np.array([1.0, 0.3]), np.array([0.01, 3.7])),
    ],
)
def test_twice_the_nodes_on_another_path_give_the_same_digits(weights, degrees, monkeypatch):
    """The integral does not depend on the path: another angle and step is another route to the same number."""
    d = np.ones_like(weights) if degrees is None else degrees
    mean, spread = d @ weights, np.sqrt(2 * d @ weights**2)
    points = [x for x in mean + spread * np.array([-2, -0.7, 0, 0.4, 3, 20, 150]) if x > 0]
    here = [sf(x, weights, degrees) for x in points]
    monkeypatch.setattr(asymptotic, "NODES", 400)
    monkeypatch.setattr(asymptotic, "ANGLE", np.pi / 2.5)
    assert [sf(x, weights, degrees) for x in points] == pytest.approx(here, rel=1e-10)


def test_simulation(rng):
    weights = np.array([3.0, 1.0, 0.5, 0.5, 0.1])
    drawn = rng.standard_normal((200_000, 5)) ** 2 @ weights
    for x in (0.5, 2.0, 5.0, 15.0, 30.0):
        low, high = binom.interval(0.999, len(drawn), sf(x, weights))
        assert low <= np.count_nonzero(drawn >= x) <= high


def test_imhof_on_the_imaginary_axis(rng):
    """The published integral, by quadrature, where it converges fast."""
    from scipy.integrate import quad

    w = rng.uniform(0.2, 1, 12)
    for x in (2.0, 7.0, 20.0):

        def integrand(u, x=x):
            angle = 0.5 * np.arctan(w * u).sum() - 0.5 * x * u
            return np.sin(angle) / (u * np.prod((1 + (w * u) ** 2) ** 0.25))

        imhof = 0.5 + quad(integrand, 0, 2000, limit=5000, epsabs=1e-12)[0] / np.pi
        assert sf(x, w) == pytest.approx(imhof, abs=1e-9)


def test_edges():
    assert sf(0.0, np.ones(2)) == 1
    assert sf(-3.0, np.ones(2)) == 1
    assert sf(1e20, np.ones(2)) == 0
    assert sf(1.0, np.zeros(3)) == 0
    assert sf(0.0, np.zeros(0)) == 1
    assert sf(2.0, np.array([1.0, 0.0])) == sf(2.0, np.array([1.0]))


def test_negative_weights_are_refused():
    with pytest.raises(InputError, match="weights and degrees must not be negative; the least is -1"):
        sf(1.0, np.array([1.0, -1.0]))
