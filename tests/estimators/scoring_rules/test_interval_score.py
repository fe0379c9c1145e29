import numpy as np
import pytest

from calibrant import CRPS, Ensemble, Normal, Pinball, Quantiles
from calibrant._validate import InputError
from calibrant.estimators import IntervalScore


def test_scores_of_scoringrules():
    """Values of interval_score(y, mean - s, mean + s, alpha=0.2), scoringrules 0.10.0."""
    y, mean, s = np.array([0.3, -1.2, 2.5]), np.array([0.1, 0.4, -0.2]), np.array([0.5, 1.5, 2.0])
    ends = Ensemble(np.stack([mean - s, mean + s], axis=1))
    assert IntervalScore(0.8).losses(y, ends) == pytest.approx([1.0, 4.0, 11.0], rel=1e-12)


def test_it_is_the_pinball_loss_of_both_ends(rng):
    batch = Normal.example(rng, 40)
    y = 2 * batch.sample(rng, 1)[0]
    both = Pinball([0.05, 0.95]).losses(y, batch)
    assert IntervalScore(0.9).losses(y, batch) == pytest.approx(both * 2 * 2 / 0.1)


def test_the_right_spread_scores_best(rng):
    y = rng.normal(size=20_000)
    scores = {s: IntervalScore()(y, Normal(np.zeros(20_000), s)).value for s in (0.8, 1.0, 1.2)}
    assert min(scores, key=scores.get) == 1.0


def test_what_is_refused():
    for level in (0, 1, 90, np.nan):
        with pytest.raises(InputError, match="level must lie strictly between 0 and 1"):
            IntervalScore(level)
    with pytest.raises(InputError, match="IntervalScore needs quantiles, which Categorical predictions do not have"):
        IntervalScore()([0, 1], [0.2, 0.4])


def test_quantiles_are_taken_as_they_are():
    """No line is drawn between them, and no note says so, as it does of scores that need all levels."""
    fan = Quantiles([[-1.0, 0, 2], [0, 1, 3]], [0.05, 0.5, 0.95])
    notes = {estimator: estimator([0.5, 1.0], fan).notes for estimator in (IntervalScore(0.9), CRPS())}
    assert notes[IntervalScore(0.9)] == ()
    assert any("straight lines" in note for note in notes[CRPS()])
