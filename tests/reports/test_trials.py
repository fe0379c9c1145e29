from dataclasses import replace

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
from calibrant._validate import InputError
from calibrant.distributions import Uniform
from calibrant.lab import Tempered
from calibrant.recalibration import Platt, SplineScaling, Temperature
from calibrant.recalibration.base import FLOORED
from calibrant.reports.advice import too_few
from calibrant.reports.trials import AS_THEY_ARE, Trial, Trials, candidates_for, thinned, tried


def names(predictions):
    return [type(one).__name__ for one in candidates_for(predictions)]


def test_every_kind_of_prediction_has_its_candidates():
    assert names(Categorical([0.2, 0.4])) == [
        *("Intercept", "Temperature", "Platt", "BetaScaling", "SplineScaling", "Isotonic"),
    ]
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


def test_an_infinite_log_loss_is_floored_and_told(rng, problem_of):
    p = np.append(rng.random(199), 0.0)
    y = np.append((rng.random(199) < p[:-1]) * 1, 1)
    trials = tried(problem_of(y, Categorical(p)))
    assert trials.score == FLOORED
    assert trials.unchanged.losses[-1] == pytest.approx(np.log(402))  # half an event in 201 rows
    assert trials.notes[0].startswith("1 row had probability 0 for what happened")
    assert all(np.isfinite(trials.change(trial, trials.unchanged)).all() for trial in trials.trials)


def trials_of(*means_and_noise, score="log loss"):
    """Losses that differ by a mean and by noise: of predictions as they are, of a simple, a less simple and a flexible map."""
    rng = np.random.default_rng(0)
    base, n = rng.normal(size=400), 400
    kinds = ((None, 0), (Temperature(), 1), (Platt(), 2), (SplineScaling(), None))
    found = [
        Trial(kind, (), base + mean + noise * np.resize([1.0, -1.0], n), numbers)
        for (kind, numbers), (mean, noise) in zip(kinds, means_and_noise, strict=False)
    ]
    return Trials(score, tuple(found), np.full(n, 1 / n))


def test_a_number_of_a_map_costs_half_a_nat():
    """Of 400 rows, 1/800 on average."""
    assert trials_of((0, 0), (-0.5, 1), (-0.501, 0)).best.name == "Temperature()"
    assert trials_of((0, 0), (-0.5, 1), (-0.502, 0)).best.name == "Platt()"
    assert trials_of((0, 0), (-0.5, 1), (-0.501, 0), score="CRPS").best.name == "Platt()"  # no nats


def test_a_flexible_map_must_be_better_than_a_simple_one_by_two_standard_errors():
    """A wave of 1 has a standard error of 0.05 over 400 rows."""
    assert trials_of((0, 0), (-0.5, 0), (5, 0), (-0.59, 1)).best.name == "Temperature()"
    assert trials_of((0, 0), (-0.5, 0), (5, 0), (-0.61, 1)).best.recalibrator == SplineScaling()
    only = trials_of((0, 0), (-0.5, 0))
    assert replace(only, trials=(only.trials[0], replace(only.trials[1], numbers=None))).best.name == "Temperature()"


def test_a_gain_needs_as_many_standard_errors_as_are_asked_for():
    small = trials_of((0, 0), (-0.09, 1), (5, 0))
    assert [small.chosen(needed).name for needed in (0, 1, 2)] == ["Temperature()", "Temperature()", AS_THEY_ARE]
    for worse in (0.1, 0.0, np.inf):
        assert trials_of((0, 0), (worse, 0), (np.inf, 0)).chosen(0).name == AS_THEY_ARE


def test_a_gain_is_certain_by_its_spread_or_by_its_likelihood():
    """400 rows: 3 nats are 0.0075 on average."""
    small, likely, far = (
        trials_of((0, 0), (mean, noise)) for mean, noise in ((-0.007, 1), (-0.008, 1), (-0.005, 0.04))
    )
    assert not small.is_certain(small.best)
    assert likely.is_certain(likely.best)
    assert not likely.is_certain(likely.best, 20)
    assert far.is_certain(far.best)
    other = trials_of((0, 0), (-0.008, 1), score="CRPS")
    assert not other.is_certain(other.best)


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
def test_calibrated_predictions_seldom_gain_for_certain(name, problem_of):
    """At most one data set in twenty, and no more than 99.9 % of samples of that rate would show."""
    sets = 60
    problems = [calibrated(name, 150, np.random.default_rng([i, 7]), problem_of) for i in range(sets)]
    trials = [tried(one) for one in problems if too_few(one) is None]
    promised = sum(one.is_certain(one.best) for one in trials)
    assert promised <= binom.ppf(0.999, sets, 0.05)


def test_a_strong_defect_is_always_seen(problem_of):
    for i in range(10):
        y, p = Tempered(2, 3.0).draw(400, np.random.default_rng(i))
        assert (trials := tried(problem_of(y, p))).is_certain(trials.best)


def test_large_data_are_thinned_at_random_and_weightless_rows_left_out(rng, problem_of):
    n = 40_000
    p, w = rng.random(n), (rng.random(n) < 0.9) * 1.0
    some = thinned(problem_of((rng.random(n) < p) * 1, Categorical(p), w))
    assert len(some) == 30_000
    assert some.weights.min() > 0
    assert some.predictions.probs.mean() == pytest.approx(p[w > 0].mean(), abs=0.01)
    small = problem_of([0, 1], Categorical([0.2, 0.4]))
    assert thinned(small) is small


def test_certainties_that_are_always_wrong_can_be_learned_from(problem_of):
    y = np.array([1, 0] * 40)
    trials = tried(problem_of(y, Categorical(1.0 - y)))
    assert trials.refused == ()
    assert trials.is_certain(trials.best)


def test_what_cannot_be_fitted_is_told(rng, monkeypatch, problem_of):
    class Refusing(Temperature):
        def find_near(self, *_):
            raise InputError("not these rows")

    monkeypatch.setattr("calibrant.reports.trials.candidates_for", lambda _: (Temperature(), Refusing()))
    p = rng.random(300)
    found = tried(problem_of((rng.random(300) < p**2) * 1, Categorical(p)))
    assert len(found.trials) == 2
    assert len(found.refused) == 1
    assert found.refused[0].endswith("cannot be fitted: not these rows")


def test_forecasts_that_called_outcomes_impossible_are_judged_by_another_score(rng, problem_of):
    forecast = Uniform(np.zeros(300), 1.0)
    found = tried(problem_of(2 * rng.random(300), forecast))
    assert found.score == "CRPS"
