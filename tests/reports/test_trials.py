import numpy as np
import pytest
from scipy.stats import binom

from calibrant import (
    CRPS,
    Categorical,
    Ensemble,
    Gamma,
    LogLoss,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
)
from calibrant.lab.problems import Tempered
from calibrant.recalibration.scaling import Platt
from calibrant.recalibration.temperature import Temperature
from calibrant.reports.advice import too_few
from calibrant.reports.trials import AS_THEY_ARE, Trial, Trials, candidates_for, thinned, tried


def names(predictions):
    return [type(one).__name__ for one in candidates_for(predictions)]


def test_every_kind_of_prediction_has_its_candidates():
    assert names(Categorical([0.2, 0.4])) == ["Temperature", "Platt", "Beta", "SplineScaling", "Isotonic"]
    assert names(Normal([0.0], 1.0)) == ["VarianceScaling", "VarianceScaling", "QuantileRecalibration"]
    assert names(MultivariateNormal([[0.0, 1.0]], 1.0)) == ["VarianceScaling", "VarianceScaling"]
    assert names(Ensemble([[1.0, 2.0]])) == ["Dressing", "QuantileRecalibration"]
    assert names(Ensemble([[[1.0, 2.0], [0.0, 1.0]]])) == []
    assert names(Gamma([1.0], 1.0)) == ["Temperature", "QuantileRecalibration"]
    assert names(Poisson([1.0])) == names(NegativeBinomial([1.0], 1.0)) == ["QuantileRecalibration"]


def test_scores_are_those_of_fits(rng, problem_of):
    """What `fit` says of held-out rows, the second route."""
    y, p = Tempered(2, 2.5).draw(600, rng)
    w = rng.integers(1, 4, 600).astype(float)
    trials = tried(problem_of(y, p, w))
    for trial in trials.trials[1:]:
        scores = trial.recalibrator.fit(y, p, sample_weight=w).scores
        assert trials.mean(trial) == pytest.approx(scores["after"][0], rel=1e-12)
        assert trials.change(trial, trials.unchanged) == pytest.approx((scores["change"][0], scores["error"][0]))
    assert trials.mean(trials.unchanged) == pytest.approx(LogLoss()(y, p, sample_weight=w).value, rel=1e-12)


def test_members_are_scored_for_what_they_were_drawn_from(rng, problem_of):
    members, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    trials = tried(problem_of(y, Ensemble(members)))
    assert trials.score == "CRPS"
    assert trials.mean(trials.unchanged) == pytest.approx(CRPS(fair=True)(y, Ensemble(members)).value, rel=1e-12)


def test_an_infinite_log_loss_leaves_the_choice_to_another_score(rng, problem_of):
    p = np.append(rng.random(199), 0.0)
    y = np.append((rng.random(199) < p[:-1]) * 1, 1)
    assert tried(problem_of(y, Categorical(p))).score == "Brier"


def chosen(*means_and_noise, certainty=2.0):
    """The choice among losses that differ by a mean and by noise, the first as they are."""
    rng = np.random.default_rng(0)
    base, n = rng.normal(size=400), 400
    trials = []
    for i, (mean, noise) in enumerate(means_and_noise):
        wave = noise * np.resize([1.0, -1.0], n)
        trials.append(Trial(None if i == 0 else (Temperature(), Platt())[i - 1], (), base + mean + wave))
    return Trials("log loss", tuple(trials), np.full(n, 1 / n), (), certainty).chosen.name


def test_the_simpler_of_two_that_cannot_be_told_apart_is_chosen():
    """A wave of 1 has a standard error of 0.05 over 400 rows."""
    assert chosen((0, 0), (-0.5, 1), (-0.52, 0)) == "Temperature()"
    assert chosen((0, 0), (-0.4, 1), (-0.52, 0)) == "Platt()"


def test_a_gain_needs_two_standard_errors():
    assert chosen((0, 0), (-0.09, 1), (5, 0)) == AS_THEY_ARE
    assert chosen((0, 0), (-0.11, 1), (5, 0)) == "Temperature()"
    assert chosen((0, 0), (-0.11, 1), (5, 0), certainty=2.5) == AS_THEY_ARE
    assert chosen((0, 0), (0.1, 0), (np.inf, 0)) == AS_THEY_ARE


def calibrated(name, n, rng, problem_of):
    if name == "two classes":
        p = rng.beta(0.7, 0.7, n)
        return problem_of((rng.random(n) < p) * 1, Categorical(p))
    if name == "rare events":
        p = rng.beta(1, 20, n)
        return problem_of((rng.random(n) < p) * 1, Categorical(p))
    if name == "normal":
        loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
        return problem_of(loc + scale * rng.normal(size=n), Normal(loc, scale))
    if name == "counts":
        rate = rng.uniform(0.5, 6, n)
        return problem_of(rng.poisson(rate), Poisson(rate))
    values = rng.normal(size=(n, 1)) + rng.normal(size=(n, 9))
    return problem_of(values[:, 0], Ensemble(values[:, 1:]))


@pytest.mark.parametrize("name", ["two classes", "rare events", "normal", "counts", "members"])
def test_calibrated_predictions_are_promised_nothing(name, problem_of):
    """At most one data set in twenty, and no more than 99.9 % of samples of that rate would show."""
    sets = 60
    problems = [calibrated(name, 150, np.random.default_rng([i, 7]), problem_of) for i in range(sets)]
    promised = sum(tried(one).chosen.recalibrator is not None for one in problems if too_few(one) is None)
    assert promised <= binom.ppf(0.999, sets, 0.05)


def test_a_strong_defect_is_always_seen(problem_of):
    for i in range(10):
        y, p = Tempered(2, 3.0).draw(400, np.random.default_rng(i))
        assert tried(problem_of(y, p)).chosen.recalibrator is not None


def test_large_data_are_thinned_at_random_and_weightless_rows_left_out(rng, problem_of):
    n = 40_000
    p, w = rng.random(n), (rng.random(n) < 0.9) * 1.0
    some = thinned(problem_of((rng.random(n) < p) * 1, Categorical(p), w))
    assert len(some) == 30_000
    assert some.weights.min() > 0
    assert some.predictions.probs.mean() == pytest.approx(p[w > 0].mean(), abs=0.01)
    small = problem_of([0, 1], Categorical([0.2, 0.4]))
    assert thinned(small) is small


def test_what_cannot_be_fitted_is_told(rng, problem_of):
    """Everything lies at impossible levels of a uniform-like density: no temperature."""
    y = np.array([1, 0] * 40)
    trials = tried(problem_of(y, Categorical(1.0 - y)))
    assert "Temperature() cannot be fitted: every row had probability 0" in trials.refused[0]
