import pickle

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, ExactTest, Normal, ReliabilityCurve, SmoothECE, Sweep, Variational
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import KolmogorovSmirnov
from calibrant.lenses import Exceeds, Within, exceeds, within


@pytest.fixture
def problem(rng):
    forecast = Normal(rng.normal(size=200), rng.uniform(0.5, 2, 200))
    return forecast.sample(rng, 1)[0], forecast


def test_probabilities_are_those_of_the_draws(problem, rng):
    _, forecast = problem
    draws = forecast.sample(rng, 20_000)
    for lens, seen in ((Exceeds(0.3), draws > 0.3), (Within(-1, 0.5), (draws >= -1) & (draws <= 0.5))):
        (event,) = lens.events(forecast)
        assert np.array_equal(event.observed(draws), seen)
        assert np.all(np.abs(event.probability - seen.mean(axis=0)) < 5 * np.sqrt(0.25 / 20_000))


def test_values_with_a_probability_of_their_own(counts):
    """Two of five coins: P(Y > 2) leaves the 2 out, P(2 <= Y <= 3) has both ends in."""
    forecast, coin = counts([0.5]), np.array([1, 5, 10, 10, 5, 1]) / 32
    assert Exceeds(2).events(forecast)[0].probability == pytest.approx(coin[3:].sum())
    assert Within(2, 3).events(forecast)[0].probability == pytest.approx(coin[2:4].sum())
    assert Within(2, 2).events(forecast)[0].probability == pytest.approx(coin[2])
    assert Exceeds(2).events(forecast)[0].observed(np.array([[2], [3]])).tolist() == [[False], [True]]
    assert Within(2, 3).events(forecast)[0].observed(np.array([[1], [2], [3], [4]])).ravel().tolist() == [0, 1, 1, 0]


def test_the_problem_of_an_event_is_one_of_classes(problem):
    y, forecast = problem
    observed, predicted = Exceeds(0.0)(y, forecast)
    assert isinstance(predicted, Categorical)
    assert np.array_equal(observed, y > 0)
    assert ECE(lens=Exceeds(0.0))(y, forecast).value == ECE()(observed, predicted).value
    several, labels = Exceeds((0.0, 1.0))(y, forecast)
    assert labels.labels == ("> 0", "> 1")
    assert np.array_equal(several, np.stack([y > 0, y > 1], axis=1))


@pytest.mark.parametrize(
    "estimator",
    [
        ECE(lens=Exceeds(0.0)),
        ECE(EqualMass(5), norm=2, lens=Exceeds((-0.5, 0.0, 1.0))),
        ECE(Sweep(), lens=Exceeds((-0.5, 1.0))),
        KolmogorovSmirnov(Within(-1, 1)),
        SmoothECE(lens=Exceeds(0.2)),
    ],
    ids=repr,
)
def test_errors_of_events_conform(estimator, problem):
    check_estimator(estimator, *problem)
    assert pickle.loads(pickle.dumps(estimator)) == estimator


def test_tools_for_classes_take_events_of_numbers(problem):
    y, forecast = problem
    result = ExactTest(ECE(lens=Exceeds(0.0)), n_resamples=99)(y, forecast)
    assert result.pvalue > 0.05
    assert result.estimate.lens == "exceeds 0"
    assert ECE(lens=Within(-1, 1))(y, forecast).lens == "within -1 to 1"
    too_sure = Normal(forecast.loc, forecast.scale / 4)
    assert ExactTest(ECE(lens=Exceeds(0.0)), n_resamples=99)(y, too_sure).pvalue == 0.01
    observed, predicted = Exceeds(0.0)(y, too_sure)
    curve = ReliabilityCurve(EqualMass(4), lens=Exceeds(0.0), n_resamples=99)(y, too_sure)
    same = ReliabilityCurve(EqualMass(4), n_resamples=99)(observed, predicted)
    assert all(np.array_equal(curve[column], same[column]) for column in ("predicted", "observed", "low", "high"))
    assert Variational()(observed, predicted).value > 0.02


def test_a_threshold_a_row(problem, rng):
    y, forecast = problem
    t = rng.normal(size=200)
    observed, predicted = exceeds(y, forecast, t)
    assert np.array_equal(observed, y > t)
    assert predicted.probs == pytest.approx(1 - forecast.cdf(t))
    inside, predicted = within(y, forecast, t, t + 1)
    assert np.array_equal(inside, (y >= t) & (y <= t + 1))
    assert predicted.probs == pytest.approx(forecast.cdf(t + 1) - forecast.cdf(t))
    for same in (exceeds(y, forecast, 0.5), exceeds(y, forecast, np.float32(0.5)), exceeds(y, forecast, [0.5] * 200)):
        assert np.array_equal(same[1].probs, Exceeds(0.5)(y, forecast)[1].probs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, f: Exceeds(np.nan), "thresholds has NaN or infinite values"),
        (lambda y, f: Exceeds(()), "thresholds is empty"),
        (lambda y, f: Exceeds("a"), "thresholds must hold real numbers"),
        (lambda y, f: Exceeds([[1.0, 2.0]]), r"thresholds must be a number or a list of numbers; got shape \(1, 2\)"),
        (lambda y, f: Within(2, 1), "low must not exceed high; got 2 and 1"),
        (lambda y, f: Within([0.0, 1.0], 3), "low has 2 rows and y_true has 1"),
        (lambda y, f: exceeds(y, f, [0.0, 1.0]), "threshold has 2 rows and y_true has 200"),
        (lambda y, f: exceeds(y, f, np.full(200, np.inf)), "threshold has NaN or infinite values"),
        (
            lambda y, f: within(y, f, 0.0, np.linspace(1, -1, 200)),
            "low must not exceed high; in row 100 it is 0 and high",
        ),
        (lambda y, f: Exceeds(0.5)([0, 1], [0.2, 0.3]), "which Categorical predictions do not have"),
        (lambda y, f: ECE()(y, f), r"have no events; give a lens such as Exceeds\(0.0\)"),
    ],
)
def test_what_is_refused(call, message, problem):
    with pytest.raises(InputError, match=message):
        call(*problem)


def test_one_row_is_enough():
    observed, predicted = Exceeds(0.0)([1.0], Normal([0.0], 1.0))
    assert (observed.tolist(), predicted.probs.tolist()) == ([1], [0.5])
