import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, ClassWise, Ensemble, MultivariateNormal, Normal, TopLabel
from calibrant._validate import InputError
from calibrant.inference.witness import event_signals, forecast_signals
from calibrant.lenses import default_lens


@pytest.mark.parametrize("lens", [TopLabel(), ClassWise()])
def test_events_average_to_zero_where_calibrated(lens, rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 5))
    drawn = predictions.sample(rng, 20_000)
    for signal in event_signals(lens, predictions):
        errors = np.stack([signal.of(y) for y in drawn])
        assert np.abs(errors.mean(axis=0)).max() < 5 * 0.5 / 20_000**0.5


def test_every_label_has_a_signal(rng):
    predictions = Bernoulli(rng.random((6, 2)), labels=["wet", "cold"])
    signals = event_signals(default_lens(predictions), predictions)
    assert [s.name for s in signals] == ["wet", "cold"]
    assert signals[1].of(np.ones((6, 2), dtype=int)) == pytest.approx(1 - predictions.probs[:, 1])


def test_forecasts_average_to_zero_where_calibrated(rng):
    predictions = Normal.example(rng, 5)
    drawn = predictions.sample(rng, 20_000)
    for signal in forecast_signals(predictions):
        errors = np.stack([signal.of(y) for y in drawn])
        assert np.abs(errors.mean(axis=0)).max() < 5 * 0.3 / 20_000**0.5


def test_signs(rng):
    level, spread = forecast_signals(Normal(np.zeros(1000), 1.0))
    assert level.of(rng.normal(1.0, 1.0, 1000)).mean() > 0.1
    assert spread.of(rng.normal(0.0, 2.0, 1000)).mean() > 0.1
    assert spread.of(rng.normal(0.0, 0.5, 1000)).mean() < -0.1


def test_families_without_a_distribution_function(rng):
    with pytest.raises(InputError, match="MultivariateNormal predictions have no distribution function"):
        forecast_signals(MultivariateNormal.example(rng, 3))
    with pytest.raises(InputError, match="Ensemble"):
        forecast_signals(Ensemble(rng.normal(size=(3, 4, 2))))
