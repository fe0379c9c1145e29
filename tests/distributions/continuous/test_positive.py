import numpy as np
import pytest

from calibrant import Gamma, LogNormal
from calibrant._validate import InputError
from calibrant.distributions import as_positive_targets
from calibrant.distributions.continuous.positive import MIN_DRAW, log_of_positive


@pytest.mark.parametrize("batch", [Gamma([1.0, 2.0, 3.0], 1.0), LogNormal([1.0, 2.0, 3.0], 1.0)], ids=repr)
@pytest.mark.parametrize("bad", [0.0, -2.5])
def test_targets_are_positive(batch, bad):
    message = f"y_true must be positive, as zero cannot happen under {type(batch).__name__} predictions; found {bad:g} in row 2"
    with pytest.raises(InputError, match=message):
        batch.as_targets([1.0, 2.0, bad])
    assert batch.as_targets([1.0, 2.0, MIN_DRAW])[2] == MIN_DRAW
    y = np.array([1.0, 2.0, 3.0])
    assert as_positive_targets(batch, y) is y


@pytest.mark.parametrize("batch", [Gamma([0.5, 1.0, 3.0], 1.0), LogNormal([1.0, 2.0, 3.0], 1.0)], ids=repr)
def test_what_is_not_positive_cannot_happen(batch):
    for y in (np.zeros(3), np.full(3, -1.0)):
        assert np.all(batch.log_prob(y) == -np.inf)
        assert np.all(batch.cdf(y) == 0)
        assert batch.crps(y - 1) - batch.crps(y) == pytest.approx(np.ones(3))


@pytest.mark.parametrize("batch", [Gamma([1e-4], 1.0), LogNormal([-2000.0], 1.0), LogNormal([2000.0], 1.0)], ids=repr)
def test_draws_are_targets_however_small_or_large(batch, rng):
    draws = batch.sample(rng, 500)
    assert draws.min() > 0
    assert np.isfinite(draws).all()


def test_logarithms():
    assert log_of_positive(np.array([-1.0, 0.0, 1.0])).tolist() == [-np.inf, -np.inf, 0.0]
