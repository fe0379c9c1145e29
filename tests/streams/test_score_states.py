import numpy as np
import pytest

from calibrant import Brier, LogLoss, Normal
from calibrant._validate import InputError
from calibrant.estimators import ZMean
from calibrant.streams import from_dict
from calibrant.streams.score_states import ScoreState


def test_infinite_losses():
    state = ScoreState(LogLoss()).update([1, 0], [0.0, 0.5]).update([1], [0.5])
    whole = LogLoss()([1, 0, 1], [0.0, 0.5, 0.5])
    assert state.finalize() == whole
    assert state.finalize().value == np.inf
    assert state.finalize().standard_error is None


def test_a_small_spread_beside_a_large_mean_keeps_its_digits(rng):
    """Where sums of squares in double precision would have none left."""
    y = 1e9 + rng.normal(size=1000)
    predictions = Normal(np.zeros(1000), np.ones(1000))
    state = ScoreState(ZMean())
    for rows in np.array_split(np.arange(1000), 10):
        state = state.update(y[rows], predictions[rows])
    assert state.finalize().standard_error == pytest.approx(ZMean()(y, predictions).standard_error, rel=1e-9)


def test_only_scores():
    with pytest.raises(InputError, match=r"estimator must be a score such as Brier\(\); got 'Brier'"):
        ScoreState("Brier")


def test_a_score_of_ones_own():
    class Absolute(Brier):
        name = "absolute"

        def losses(self, targets, predictions):
            return np.abs(targets - predictions.probability(1))

    assert ScoreState(Absolute()).update([1, 0], [0.75, 0.5]).finalize().value == 0.375


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_is_that_of_all_rows(weighted, rng):
    p = rng.beta(0.5, 20, 400)
    y = (rng.random(400) < p).astype(int)
    w = rng.uniform(0.5, 2, 400) if weighted else None
    parts = [slice(0, 100), slice(100, 400)]
    first, second = (ScoreState(Brier()).update(y[r], p[r], sample_weight=None if w is None else w[r]) for r in parts)
    found = from_dict(first.merge(second).to_dict()).finalize()
    whole = Brier()(y, p, sample_weight=w)
    assert tuple(found.confidence_interval()) == pytest.approx(tuple(whole.confidence_interval()), rel=1e-9)
    assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-12)
