import numpy as np
import pytest

from calibrant import KCE, SKCE, LogLoss, Mixture, Normal
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian
from calibrant.recalibration import Temperature, TemperatureBy


def test_by_the_log_loss_it_is_temperature_scaling(rng):
    p = rng.dirichlet(np.ones(3), 400)
    y = np.array([rng.choice(3, p=row) for row in p**0.5 / (p**0.5).sum(axis=1, keepdims=True)])
    w = rng.uniform(0.5, 2, 400)
    by, best = (r.fit(y, p, sample_weight=w, folds=0).map for r in (TemperatureBy(LogLoss()), Temperature()))
    assert by.temperature == pytest.approx(best.temperature, rel=2e-3)


def test_by_a_kernel_error_variances_of_forecasts_are_put_right(rng):
    """Standard deviations are half of what they should be: T is 4. The error at it is that of no other temperature."""
    loc = rng.normal(size=600)
    y, sure = loc + 2 * rng.normal(size=600), Normal(loc, 1.0)
    error = KCE(Exponential(1.0), Gaussian(1.0))
    found = TemperatureBy(error).fit(y, sure, folds=0).map
    assert found.temperature == pytest.approx(4, rel=0.25)
    values = [
        float(error(y, sure.temper(t))) for t in (0.9 * found.temperature, found.temperature, 1.1 * found.temperature)
    ]
    assert values[1] == min(values)


def test_open_length_scales_are_those_of_the_predictions_as_given(rng):
    p = rng.dirichlet(np.ones(3), 100)
    y = rng.integers(0, 3, 100)
    given = SKCE().resolved(as_categorical(p))
    assert TemperatureBy(SKCE()).fit(y, p, folds=0).map == TemperatureBy(given).fit(y, p, folds=0).map


def as_categorical(p):
    from calibrant import Categorical

    return Categorical(p)


def test_any_function_will_do_and_ends_are_told():
    fitted = TemperatureBy(lambda y, p: float(np.max(p.matrix))).fit([0, 1], [[0.9, 0.1], [0.2, 0.8]], folds=0)
    assert fitted.map.temperature == pytest.approx(16, rel=1e-3)
    assert "the error falls up to the end of the temperatures considered" in fitted.notes


def test_settings():
    with pytest.raises(InputError, match="error must be an estimator such as"):
        TemperatureBy("KCE")
    with pytest.raises(InputError, match="Mixture predictions have no temperature"):
        TemperatureBy(KCE()).fit([0.0, 1.0], Mixture([Normal([0.0, 1.0], 1.0)] * 2), folds=0)


def test_errors_without_a_value_at_any_temperature_are_refused(rng):
    def refusing(y, p):
        raise InputError("no")

    with pytest.raises(InputError, match="has no value at any temperature"):
        TemperatureBy(refusing).fit(rng.integers(0, 2, 50), rng.random(50), folds=0)
