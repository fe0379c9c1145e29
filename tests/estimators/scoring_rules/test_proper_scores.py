import numpy as np
import pytest

from calibrant import Brier, Categorical, LogLoss
from calibrant._validate import InputError


def test_brier_of_two_and_of_more_classes():
    assert Brier()([1, 0], [0.8, 0.4]).value == pytest.approx((0.04 + 0.16) / 2, rel=1e-14)
    assert Brier()([2], [[0.5, 0.3, 0.2]]).value == pytest.approx(0.25 + 0.09 + 0.64, rel=1e-14)


def test_scores_of_scikit_learn(rng):
    metrics = pytest.importorskip("sklearn.metrics")
    p = rng.dirichlet(np.ones(3), 100)
    y = rng.integers(0, 3, 100)
    w = rng.random(100)
    assert LogLoss()(y, p, sample_weight=w).value == pytest.approx(metrics.log_loss(y, p, sample_weight=w), rel=1e-13)
    hit = (y == 1).astype(int)
    theirs = metrics.brier_score_loss(hit, p[:, 1], sample_weight=w)
    assert Brier()(hit, p[:, 1], sample_weight=w).value == pytest.approx(theirs, rel=1e-13)


def test_an_impossible_event_costs_infinitely_much():
    result = LogLoss()([1, 0], [0.0, 0.5])
    assert result.value == np.inf
    assert result.standard_error is None


def test_standard_error_is_that_of_a_mean(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    result = Brier()(y, p)
    assert result.standard_error == pytest.approx(np.std((p - y) ** 2, ddof=1) / 20, rel=1e-12)
    assert Brier()([1], [0.5]).standard_error is None


def test_brier_needs_classes():
    class Other(Categorical):
        squared_error = None

    with pytest.raises(InputError, match="Brier needs class probabilities; got Other"):
        Brier()([1], Other([0.5]))


@pytest.mark.parametrize("score", [Brier(), LogLoss()])
@pytest.mark.parametrize("weighted", [False, True])
def test_resamples_of_two_classes_have_the_losses_of_each_alone(score, weighted, rng):
    predictions = Categorical(np.append(rng.random(300), [0.0, 1.0]))
    weights = rng.random(302) if weighted else None
    w = np.ones(302) if weights is None else weights
    drawn = predictions.sample(rng, 5)
    drawn[0, -2:] = [1, 0]  # impossible ones
    means = score.given(predictions, weights)(drawn)
    np.testing.assert_allclose(means, score.losses(drawn, predictions) @ w / w.sum(), rtol=1e-14)
    assert np.isfinite(means).tolist() == [isinstance(score, Brier), True, True, True, True]
