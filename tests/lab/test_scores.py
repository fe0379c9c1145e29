from dataclasses import dataclass
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import binom, kstest

from calibrant import ECE, SKCE, Brier, ClassWise, DebiasedECE, EqualMass, PositiveClass, Sweep, TopLabel
from calibrant._validate import InputError
from calibrant.kernels import Exponential
from calibrant.lab import GLM, BetaScores, EmpiricalScores, LogisticCurve, Power, Scores, ScoreWorld, Shifted, tce
from studies.roelofs.fits import FITS

CONFIDENT = BetaScores(2.8, 0.05)


def moments(a, b):
    """``E f^i (1 - f)^j``."""
    return lambda i, j: np.exp(betaln(a + i, b + j) - betaln(a, b))


@pytest.mark.parametrize(
    "scores", [CONFIDENT, BetaScores(), BetaScores(0.3, 4.0), BetaScores(500, 700), BetaScores(3, 0.01)]
)
@pytest.mark.parametrize(("b0", "b1"), [(-0.24, 0.3), (-0.01, 1.5)])
def test_the_error_of_power_laws_has_a_closed_form(scores, b0, b1):
    """``E (c (1-f)^b1 - (1-f))^2`` and ``E (c f^b1 - f)^2`` in beta functions."""
    e, c = moments(scores.alpha, scores.beta), np.exp(b0)
    flip = e(0, 2) - 2 * c * e(0, 1 + b1) + c**2 * e(0, 2 * b1)
    plain = e(2, 0) - 2 * c * e(1 + b1, 0) + c**2 * e(2 * b1, 0)
    assert tce(ScoreWorld(scores, GLM("logflip", "logflip", b0, b1))) == pytest.approx(flip**0.5, rel=1e-9)
    assert tce(ScoreWorld(scores, GLM("log", "log", b0, b1))) == pytest.approx(plain**0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "squared", "absolute"),
    [
        ("resnet110_c10", 10.7087, 5.8371),
        ("resnet110_SD_c10", 9.5308, 4.8868),
        ("resnet_wide32_c10", 10.1265, 5.6238),
        ("densenet40_c10", 10.3720, 5.9001),
        ("resnet110_c100", 20.3663, 15.3063),
        ("resnet110_SD_c100", 18.5189, 13.0714),
        ("resnet_wide32_c100", 21.2611, 14.7498),
        ("densenet40_c100", 23.3589, 16.4372),
        ("resnet152_imgnet", 8.6045, 6.7438),
        ("densenet161_imgnet", 5.4678, 4.9288),
    ],
)
def test_known_errors_of_ten_networks(name, squared, absolute):
    world = FITS[name].world(printed=True)
    assert 100 * tce(world, 2) == pytest.approx(squared, abs=5.01e-5)
    assert 100 * tce(world, 1) == pytest.approx(absolute, abs=5.01e-5)


@pytest.mark.parametrize(
    ("alpha", "beta", "b0", "b1", "norm"),
    [(2.1714, 0.0394, -0.27, -0.35, 1), (2.8, 0.05, 0.9, -0.2, 1), (2.8, 0.05, 0.9, -0.2, 3), (0.6, 1.4, 2.0, 1.0, 2)],
)
def test_quadrature_agrees_with_another_in_many_digits(alpha, beta, b0, b1, norm):
    """Over ``w = (1 - f)^beta``, where the density has no singularity at one; the second case crosses the diagonal."""
    with mp.workdps(30):
        a, b = mp.mpf(alpha), mp.mpf(beta)

        def integrand(w):
            rest = w ** (1 / b)
            t = 1 / (1 + mp.e ** (-(b0 + b1 * mp.log(rest))))
            return abs(t - 1 + rest) ** norm * (1 - rest) ** (a - 1) / b / mp.beta(a, b)

        def gap(z):
            return 1 / (1 + mp.e ** (-(b0 - b1 * z))) - 1 + mp.e**-z  # at 1 - f = e^-z

        grid = [mp.mpf(i) / 20 for i in range(1, 801)]
        changes = [mp.findroot(gap, (x, y), "anderson") for x, y in pairwise(grid) if gap(x) * gap(y) < 0]
        inner = [mp.e ** (-b * z) for z in [*changes, *map(mp.mpf, ("1e-3", "0.1", 1, 5, 20, 100))]]
        expected = float(mp.quad(integrand, sorted([mp.mpf(0), *inner, mp.mpf(1)])) ** (mp.mpf(1) / norm))
    world = ScoreWorld(BetaScores(alpha, beta), GLM("logit", "logflip", b0, b1))
    assert tce(world, norm) == pytest.approx(expected, rel=1e-8)


def test_errors_by_hand():
    uniform = BetaScores()
    assert tce(ScoreWorld(uniform, Power(3))) == pytest.approx((1 / 3 - 2 / 5 + 1 / 7) ** 0.5, rel=1e-10)
    assert tce(ScoreWorld(uniform, Power(3)), 1) == pytest.approx(1 / 4, rel=1e-10)
    assert tce(ScoreWorld(uniform, Power(2)), np.inf) == pytest.approx(1 / 4, rel=1e-10)
    assert tce(ScoreWorld(uniform, Shifted(0.02)), 1) == pytest.approx(0.0198, rel=1e-8)
    assert tce(ScoreWorld(uniform, LogisticCurve(0, 0)), 1) == pytest.approx(1 / 4, rel=1e-8)  # crosses at one half
    assert tce(ScoreWorld(CONFIDENT)) == 0


@pytest.mark.parametrize(
    ("curve", "expected"),
    [(GLM("logit", "logit", 0.3, 0.4), 0.1373), (GLM("logit", "logit", 1, 4), 0.1311), (Shifted(0.02), 0.0188)],
)
def test_the_binary_worlds_of_berta_et_al(curve, expected):
    """Their truths are means over 100,000 draws, hence three digits."""
    assert tce(ScoreWorld(BetaScores(0.5, 0.5), curve), 1) == pytest.approx(expected, abs=6e-4)


@dataclass(frozen=True)
class Root(Scores):
    def quantile(self, u):
        return np.sqrt(u)  # beta-distributed with 2 and 1


@pytest.mark.parametrize("norm", [1, 2, 4, np.inf])
def test_a_quantile_function_is_enough(norm):
    expected = tce(ScoreWorld(BetaScores(2, 1), Power(3)), norm)
    assert tce(ScoreWorld(Root(), Power(3)), norm) == pytest.approx(expected, rel=1e-7)
    assert kstest(Root().draw(np.random.default_rng(1), 2000), "beta", (2, 1)).pvalue > 1e-3


def test_own_scores_are_averaged_and_drawn_again():
    own = EmpiricalScores([0.5, 0.1, 0.9, 0.5])
    world = ScoreWorld(own, Power(2))
    gaps = np.array([0.09, 0.25, 0.25, 0.09])
    assert tce(world) == pytest.approx(np.mean(gaps**2) ** 0.5, rel=1e-14)
    assert tce(world, 1) == pytest.approx(gaps.mean(), rel=1e-14)
    assert tce(world, np.inf) == pytest.approx(0.25, rel=1e-14)
    drawn = own.draw(np.random.default_rng(0), 8000)
    for score, share in ((0.1, 0.25), (0.5, 0.5), (0.9, 0.25)):
        low, high = binom.interval(0.9999, 8000, share)
        assert low <= np.sum(drawn == score) <= high
    assert own.quantile(np.array([0.0, 0.3, 0.7, 1.0])).tolist() == [0.1, 0.5, 0.5, 0.9]


def test_names_tell_own_scores_apart():
    a, b = (repr(EmpiricalScores(np.linspace(0, 1, 1000) ** d)) for d in (1, 2))
    assert a.startswith("EmpiricalScores(1,000 scores, ")
    assert a != b
    assert a == repr(EmpiricalScores(np.linspace(0, 1, 1000)[::-1]))  # rows in another order
    assert (
        ScoreWorld(CONFIDENT, Power(2)).name
        == "ScoreWorld(scores=BetaScores(alpha=2.8, beta=0.05), curve=Power(degree=2))"
    )


@pytest.mark.parametrize("scores", [CONFIDENT, BetaScores(0.5, 0.5), BetaScores(4, 2)])
def test_draws_follow_the_quantile_function(scores):
    drawn = scores.draw(np.random.default_rng(2), 20_000)
    levels = np.linspace(0.05, 0.95, 10)
    for level, q in zip(levels, scores.quantile(levels), strict=True):
        if q < 1:
            low, high = binom.interval(0.9999, 20_000, level)
            assert low <= np.sum(drawn <= q) <= high


def test_a_sixth_of_confident_scores_is_certain():
    y, p = ScoreWorld(CONFIDENT, GLM("logflip", "logflip", -0.24, 0.3)).draw(20_000, np.random.default_rng(3))
    assert 0.14 < np.mean(p.probs == 1) < 0.20
    assert np.all(y[p.probs == 1] == 1)


@pytest.mark.parametrize("curve", [Power(2), GLM("logit", "logit", -0.88, 0.49), Shifted(0.1)], ids=repr)
def test_events_happen_as_often_as_the_curve_says(curve):
    y, p = ScoreWorld(BetaScores(2, 1), curve).draw(40_000, np.random.default_rng(4))
    for part in np.array_split(np.argsort(p.probs), 8):
        expected = curve(p.probs[part])
        spread = np.sqrt(np.sum(expected * (1 - expected)))
        assert abs(y[part].sum() - expected.sum()) < 4.5 * spread + 1e-9


@pytest.mark.parametrize("norm", [1, 2])
def test_what_binned_errors_stand_for(norm):
    world = ScoreWorld(CONFIDENT, GLM("logflip", "logflip", -0.24, 0.3))
    truth = tce(world, norm)
    for estimator in (ECE(norm=norm), ECE(Sweep(), norm, PositiveClass(), True), DebiasedECE(norm=norm)):
        assert world.truth(estimator) == truth
    assert world.truth(ECE(lens=TopLabel())) is None
    assert world.truth(DebiasedECE(lens=ClassWise())) is None
    assert ScoreWorld(CONFIDENT).truth(DebiasedECE(lens=ClassWise())) == 0


def test_equal_mass_errors_of_many_rows_are_near_their_truth():
    world = ScoreWorld(CONFIDENT, GLM("logflip", "logflip", -0.24, 0.3))
    data = world.draw(400_000, np.random.default_rng(5))
    assert ECE(EqualMass(200), norm=2)(*data).value == pytest.approx(tce(world), abs=0.003)
    assert ECE(EqualMass(200), norm=1)(*data).value == pytest.approx(tce(world, 1), abs=0.002)


def test_other_truths_are_those_of_every_world():
    world = ScoreWorld(BetaScores(2, 1), Power(2))
    data = world.draw(100_000, np.random.default_rng(6))
    for estimator, block in ((Brier(), Brier()), (SKCE(Exponential(0.5)), SKCE(Exponential(0.5), block=200))):
        found = block(*data)
        assert abs(found.value - world.truth(estimator)) < 4 * found.standard_error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BetaScores(0, 1), "alpha must be a positive number; got 0"),
        (lambda: BetaScores(1, np.inf), "beta must be a positive number; got inf"),
        (lambda: EmpiricalScores([0.2, 1.2]), r"scores must lie in \[0, 1\]; found 1.2"),
        (lambda: EmpiricalScores([[0.2, 0.8]]), r"scores must be one probability per row; got shape \(1, 2\)"),
        (lambda: ScoreWorld(0.5), r"scores must be a distribution such as BetaScores\(\) .*; got 0.5"),
        (lambda: ScoreWorld(BetaScores(), np.sqrt), r"curve must be a TrueCurve such as Diagonal\(\)"),
        (lambda: tce(ScoreWorld(BetaScores(), Power(2)), 0.5), "norm must be a number of at least 1, or inf; got 0.5"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()
