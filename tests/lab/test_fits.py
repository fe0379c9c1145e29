import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betainc, polygamma, psi
from scipy.stats import beta as beta_distribution
from scipy.stats import binom, chi2

from calibrant import Categorical, ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.lab import GLM, BetaScores, EmpiricalScores, Power, ScoreWorld, fit_curves, fit_scores, fit_world, tce
from calibrant.lab.fits import PAIRS, Likelihood, _log_tail
from calibrant.lab.score_worlds import on_scale
from studies.roelofs.fits import FITS

NAMES = [f"{link}_{transform}_{free}" for link, transform in PAIRS for free in ("b0_b1", "b1", "b0")]


@pytest.mark.parametrize(("alpha", "beta"), [(2, 3), (0.5, 0.5), (30, 2)])
def test_the_beta_fit_is_scipys(alpha, beta):
    scores = np.random.default_rng(1).beta(alpha, beta, 2000)
    fitted = fit_scores(scores)
    expected = beta_distribution.fit(scores, floc=0, fscale=1)[:2]
    assert (fitted.alpha, fitted.beta) == pytest.approx(expected, rel=1e-5)
    total = psi(fitted.alpha + fitted.beta)  # the likelihood equations
    assert psi(fitted.alpha) - total == pytest.approx(np.mean(np.log(scores)), rel=1e-6)
    assert psi(fitted.beta) - total == pytest.approx(np.mean(np.log1p(-scores)), rel=1e-6)


@pytest.mark.parametrize(("alpha", "beta"), [(2.7752, 0.0478), (1.1359, 0.2069), (0.02, 3.0)])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_beta_parameters_are_recovered_though_scores_are_rounded(alpha, beta, kind):
    """The mean of 60 fits lies within 4.5 standard errors of the truth, which are no larger than 3 % of it."""
    truth, n, fits = np.array([alpha, beta]), 4000, 60
    found = []
    for seed in range(fits):
        fitted = fit_scores(BetaScores(alpha, beta).draw(np.random.default_rng(seed), n).astype(kind))
        found.append([fitted.alpha, fitted.beta])
    error = np.std(found, axis=0, ddof=1) / fits**0.5
    assert np.all(
        np.abs(np.mean(found, axis=0) - truth) < 4.5 * error + [0.004 * alpha, 0.004 * beta]
    )  # bias of order 1/n
    assert np.all(error < 0.03 * truth)


def test_the_spread_of_beta_fits_is_fishers():
    """Without rounding: the variances are those of the inverse information."""
    found = [fit_scores(BetaScores(2, 3).draw(np.random.default_rng(s), 1000)) for s in range(200)]
    common = polygamma(1, 5)
    information = 1000 * (np.diag(polygamma(1, [2, 3])) - common)
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    spread = np.std([[f.alpha, f.beta] for f in found], axis=0, ddof=1)
    assert spread == pytest.approx(expected, rel=0.2)  # 200 fits: four standard errors


def test_rounded_decimals_need_their_resolution():
    scores = BetaScores(3, 0.5).draw(np.random.default_rng(2), 20_000).round(2)
    coarse = fit_scores(scores, resolution=0.005)
    assert (coarse.alpha, coarse.beta) == pytest.approx((3, 0.5), rel=0.05)
    assert fit_scores(scores).beta < 0.3


@pytest.mark.parametrize(("x", "a", "b"), [(0.005, 0.3, 2.0), (1e-15, 0.05, 2.8), (0.2, 3.0, 0.4), (1e-3, 5.0, 12.0)])
def test_the_chance_of_an_end(x, a, b):
    assert _log_tail(x, a, b) == pytest.approx(np.log(betainc(a, b, x)), rel=1e-10)
    assert np.isfinite(_log_tail(1e-308, 30.0, 2.0))


def test_twelve_models_by_their_published_names():
    table = fit_curves(*ScoreWorld(BetaScores(2, 1), Power(2)).draw(500, np.random.default_rng(3)))
    assert sorted(table["model"]) == sorted(NAMES)
    assert np.all(np.diff(table["aic"]) >= 0)
    free = [name.count("b") for name in table["model"]]
    assert table["aic"] == pytest.approx(2 * np.array(free) - 2 * table["log_likelihood"])
    for row in table.rows():
        assert ((row["b0"] == 0) == row["model"].endswith("_b1") and not row["model"].endswith("b0_b1")) or row[
            "b0"
        ] <= 0
        assert (row["b1"] == 0) == row["model"].endswith("_b0")
    constants = [row["log_likelihood"] for row in table.rows() if row["model"].endswith("_b0")]
    assert len(set(constants)) == 1  # the same curve four times


@pytest.mark.parametrize(
    "curve",
    [
        GLM("logit", "logit", -0.88, 0.49),
        GLM("logit", "logflip", -0.27, -0.35),
        GLM("logflip", "logflip", -0.24, 0.3),
        GLM("log", "log", -0.1, 1.5),
    ],
    ids=lambda c: f"{c.link}_{c.transform}",
)
def test_likelihoods_are_those_of_the_curves(curve):
    """Each row of the table, put back into a curve, gives its likelihood; no other parameters give more."""
    y, p = ScoreWorld(BetaScores(1.1, 0.3), curve).draw(2000, np.random.default_rng(4))
    f = np.clip(p.probs, 1e-300, 1 - 8 * np.finfo(float).eps)

    def likelihood(b, link, transform):
        t = GLM(link, transform, *b)(f)
        with np.errstate(divide="ignore"):
            return np.sum(np.log(np.where(y, t, 1 - t)))

    for row in fit_curves(y, p).rows():
        link, transform, free = row["model"].split("_", 2)
        b = np.array([row["b0"], row["b1"]])
        assert row["log_likelihood"] == pytest.approx(likelihood(b, link, transform), rel=1e-9)
        if free == "b0_b1":
            best = minimize(lambda b, *pair: -likelihood(b, *pair), b, (link, transform), method="Nelder-Mead")
            assert -best.fun <= row["log_likelihood"] + 1e-4


@pytest.mark.parametrize("name", FITS)
def test_curves_of_ten_networks_are_found_again(name):
    """The model that made 30,000 rows is the best, or within the 2 of a parameter too many; its parameters are near."""
    fit = FITS[name]
    y, p = fit.world(printed=True).draw(30_000, np.random.default_rng(5))
    table = fit_curves(y, p)
    free = [1] if fit.b0 == 0 else [0, 1]
    row = next(row for row in table.rows() if row["model"] == fit.model + ("_b1" if fit.b0 == 0 else "_b0_b1"))
    assert row["aic"] - table["aic"][0] <= 2
    link, transform = fit.model.split("_")
    f = np.minimum(p.probs, 1 - 8 * np.finfo(float).eps)
    found = np.array([row["b0"], row["b1"]])
    information = -Likelihood(link, y == 1, on_scale(transform, f, 1 - f))._derivatives(found)[1][np.ix_(free, free)]
    miss = (found - [fit.b0, fit.b1])[free]
    assert miss @ information @ miss < chi2.ppf(0.9999, len(free))
    assert np.sqrt(np.linalg.inv(information)[-1, -1]) < 0.03 * abs(fit.b1)


def test_parameters_of_a_curve_within_their_standard_errors():
    """Of 60 fits: the mean within 4.5 standard errors, the spread as the curvature of the likelihood says."""
    world, n = ScoreWorld(BetaScores(2, 1), GLM("logit", "logit", -0.5, 0.6)), 2000
    found = []
    for seed in range(60):
        rows = fit_curves(*world.draw(n, np.random.default_rng(seed))).rows()
        found.append(next((r["b0"], r["b1"]) for r in rows if r["model"] == "logit_logit_b0_b1"))
    f = BetaScores(2, 1).quantile((np.arange(100_000) + 0.5) / 100_000)
    t, p = np.log(f / (1 - f)), world.curve(f)
    x = np.stack([np.ones_like(t), t])
    expected = np.sqrt(np.diag(np.linalg.inv((x * (p * (1 - p))) @ x.T / len(f) * n)))
    spread = np.std(found, axis=0, ddof=1)
    assert spread == pytest.approx(expected, rel=0.37)  # four standard errors of a spread from 60
    assert np.all(np.abs(np.mean(found, axis=0) - [-0.5, 0.6]) < 4.5 * expected / 60**0.5 + 0.004)


def test_the_right_model_is_selected():
    """Two parameters that are needed: nearly always. One that is not needed: at most as often as AIC allows."""
    needed = ScoreWorld(BetaScores(1.1, 0.2), GLM("logflip", "logflip", -0.3, 0.6))
    best = [fit_curves(*needed.draw(5000, np.random.default_rng(s)))["model"][0] for s in range(30)]
    assert best.count("logflip_logflip_b0_b1") >= 27
    sparse = ScoreWorld(BetaScores(0.6, 0.6), GLM("logit", "logit", 0.0, 0.5))
    best = [fit_curves(*sparse.draw(3000, np.random.default_rng(s)))["model"][0] for s in range(60)]
    assert best.count("logit_logit_b1") + best.count("logit_logit_b0_b1") >= 57
    assert best.count("logit_logit_b0_b1") <= binom.ppf(0.9999, 60, chi2.sf(2, 1))


def test_a_world_like_the_data():
    world = FITS["resnet_wide32_c100"].world()
    fitted = fit_world(*world.draw(20_000, np.random.default_rng(6)))
    assert fitted.curve.link == fitted.curve.transform == "logflip"
    assert fitted.scores.beta == pytest.approx(0.065, rel=0.03)
    assert tce(fitted) == pytest.approx(tce(world), rel=0.03)


def test_a_world_of_own_scores():
    y, p = ScoreWorld(BetaScores(2, 2), Power(2)).draw(5000, np.random.default_rng(7))
    own = ScoreWorld(EmpiricalScores(p.probs), fit_world(y, p).curve)
    assert tce(own, 1) == pytest.approx(np.mean(p.probs - p.probs**2), abs=0.02)


def test_through_a_lens(rng):
    p = rng.dirichlet(np.ones(3), 3000)
    y = Categorical(p).temper(2.0).sample(rng, 1)[0]
    confidence, hit = p.max(axis=1), y == p.argmax(axis=1)
    assert fit_world(y, p, lens=TopLabel()) == fit_world(hit, confidence)
    assert fit_curves(y, p, lens=TopLabel())["aic"].tolist() == fit_curves(hit, confidence)["aic"].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fit_world([1, 1, 1], [0.2, 0.5, 0.7]),
            "y_true must hold both outcomes to fit a curve; all 3 rows have the same",
        ),
        (
            lambda: fit_curves([0, 1, 2], np.eye(3), lens=ClassWise()),
            r"lens must look at a single event, such as TopLabel\(\); ClassWise\(\) looks at 3",
        ),
        (
            lambda: fit_scores([0.0, 1.0, 1.0]),
            r"scores must have two or more different values between 0 and 1 .*; got \[0. 1.\]",
        ),
        (lambda: fit_scores([0.3, 0.3]), "scores must have two or more different values between 0 and 1"),
        (lambda: fit_scores([0.3, 0.4], resolution=0.5), "resolution must lie strictly between 0 and 0.5; got 0.5"),
        (lambda: fit_scores([0.3, 1.4]), r"scores must lie in \[0, 1\]; found 1.4"),
    ],
)
def test_input_is_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()
