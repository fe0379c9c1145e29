import time

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant import (
    CRPS,
    Bernoulli,
    Brier,
    Categorical,
    Ensemble,
    ExactTest,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
)
from calibrant._validate import InputError

Y = np.array([0.3, -1.2, 2.5])
MEMBERS = np.array([[0.0, 0.5, 1.0, 0.2], [-1.0, -1.0, 0.3, 2.0], [2.0, 3.0, 4.0, 1.0]])


def test_members_of_scoringrules():
    """Values of crps_ensemble, estimators "nrg" and "fair", scoringrules 0.10.0; properscoring 0.1 has the former."""
    score, fair = CRPS(), CRPS(fair=True)
    assert score.losses(Y, Ensemble(MEMBERS)) == pytest.approx([0.11875, 0.63125, 0.375], rel=1e-12)
    assert fair.losses(Y, Ensemble(MEMBERS)) == pytest.approx([0.05, 5 / 12, 1 / 6], rel=1e-12)


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture])
def test_it_is_the_integral_of_the_squared_difference(family, rng):
    batch = family.example(rng, 3)
    for row, y in enumerate(batch.sample(rng, 1)[0]):
        one = batch[row : row + 1]
        below = quad(lambda x, one=one: one.cdf(np.array([x]))[0] ** 2, -30, y, limit=200)[0]
        above = quad(lambda x, one=one: (1 - one.cdf(np.array([x]))[0]) ** 2, y, 30, limit=200)[0]
        assert CRPS()([y], one).value == pytest.approx(below + above, rel=1e-7)


def test_counts_by_their_steps(counts, rng):
    """A family without a closed form: sums over whole numbers."""
    batch = counts.example(rng, 20)
    y = batch.sample(rng, 1)[0]
    steps = batch.cdf(np.arange(5.0)[:, None]) - (y <= np.arange(5.0)[:, None])
    assert CRPS().losses(y, batch) == pytest.approx((steps**2).sum(axis=0), rel=1e-12)


def test_two_classes_have_their_brier_score(rng):
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    assert CRPS()(y, Categorical(p)).value == pytest.approx(Brier()(y, p).value, rel=1e-13)


class Bare(Normal):
    """A family that can only be drawn from."""

    crps = quantile = cdf = lambda self, x: NotImplemented


def test_by_draws_without_bias(rng):
    """The mean over seeds is the exact value, within five standard errors."""
    exact = Normal(rng.normal(size=30), rng.uniform(0.5, 2, 30))
    y = exact.sample(rng, 1)[0]
    bare = Bare(exact.loc, exact.scale)
    values = np.array([CRPS(n_draws=5, seed=seed)(y, bare).value for seed in range(400)])
    assert abs(values.mean() - CRPS()(y, exact).value) < 5 * values.std() / 20
    assert CRPS(n_draws=4000)(y, bare).value == pytest.approx(CRPS()(y, exact).value, abs=0.02)
    assert CRPS(seed=1)(y, bare).value == CRPS(seed=1)(y, bare).value


def test_the_fair_score_does_not_favour_narrow_ensembles(rng):
    """Five members of the right spread against five of 0.8 of it: fair scores prefer the right ones, plain ones the narrow."""
    y, members = rng.normal(size=40_000), rng.normal(size=(40_000, 5))
    right, narrow = Ensemble(members), Ensemble(0.8 * members)
    difference = CRPS(fair=True).losses(y, right) - CRPS(fair=True).losses(y, narrow)
    assert difference.mean() < -5 * difference.std() / 200
    plain = CRPS().losses(y, right) - CRPS().losses(y, narrow)
    assert plain.mean() > 5 * plain.std() / 200
    exact = CRPS()(y, Normal(np.zeros(40_000), 1.0))
    fair = CRPS(fair=True)(y, right)
    assert abs(fair.value - exact.value) < 5 * fair.standard_error


def test_the_right_forecast_scores_best(rng):
    y = rng.normal(size=20_000)
    scores = {scale: CRPS()(y, Normal(np.zeros(20_000), scale)).value for scale in (0.8, 1.0, 1.2)}
    assert min(scores, key=scores.get) == 1.0
    assert scores[1.0] == pytest.approx(1 / np.sqrt(np.pi), abs=0.02)


def test_scores_that_are_too_good_and_too_bad(rng):
    y = rng.normal(size=200)
    test = ExactTest(CRPS(), n_resamples=99, alternative="two-sided")
    assert test(y, Normal(np.zeros(200), 3.0)).pvalue <= 0.02
    assert test(y, Normal(np.zeros(200), 1 / 3)).pvalue <= 0.02
    assert test(y, Normal(np.zeros(200), 1.0)).pvalue > 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CRPS()([0], [[0.2, 0.3, 0.5]]), r"CRPS scores numbers; got Categorical predictions: use Brier\(\)"),
        (lambda: CRPS()([[0, 1]], Bernoulli([[0.2, 0.3]])), "CRPS scores numbers; got Bernoulli predictions"),
        (lambda: CRPS()([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0)), r"vectors: use EnergyScore\(\)"),
        (lambda: CRPS()([[0.0, 1.0]], Ensemble(np.zeros((1, 3, 2)))), r"vectors: use EnergyScore\(\)"),
        (lambda: CRPS(fair=True)([0.0], Normal([0.0], 1.0)), "got Normal predictions"),
        (lambda: CRPS(n_draws=1), "n_draws must be a whole number of at least 2"),
        (lambda: CRPS(seed=-1), "seed must be a whole number of at least 0"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_one_row_has_no_standard_error():
    assert CRPS()([0.0], Normal([0.0], 1.0)).standard_error is None


def test_large_ensembles_in_about_a_second(rng):
    y, members = rng.normal(size=14_600), rng.normal(size=(14_600, 50))
    start = time.perf_counter()
    CRPS(fair=True)(y, Ensemble(members))
    assert time.perf_counter() - start < 10  # a shared machine


@pytest.mark.parametrize("fair", [False, True])
def test_members_that_count_alike_are_those_of_equal_weights(fair, rng):
    """In parts of the rows, and over all pairs of members."""
    members, y = rng.normal(size=(1500, 50)), rng.normal(size=1500)
    found = CRPS(fair=fair).losses(y, Ensemble(members))
    assert found == pytest.approx(CRPS(fair=fair).losses(y, Ensemble(members, np.full(50, 0.02))), abs=1e-13)
    x = members[-1]
    pairs = np.abs(x[:, None] - x).sum() / (50 * 49 if fair else 50**2)
    assert found[-1] == pytest.approx(np.abs(x - y[-1]).mean() - pairs / 2, abs=1e-13)


def test_normals_are_scored_in_parts(rng):
    loc, scale, y = rng.normal(size=20_000), rng.random(20_000) + 0.1, rng.normal(size=20_000)
    rows = np.r_[0, 16_383, 16_384, 19_999]
    found = Normal(loc, scale).crps(y)[rows]
    assert found == pytest.approx(Normal(loc[rows], scale[rows]).crps(y[rows]), rel=1e-14)
