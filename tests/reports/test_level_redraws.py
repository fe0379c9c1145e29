import numpy as np
import pytest

from calibrant import PIT, Ensemble, MultivariateNormal, Normal, Poisson, Uniform
from calibrant.estimators.pit_error import distance_from_uniform
from calibrant.reports.level_redraws import RedrawnLevels, SwappedLevels, redraws_of_levels


def rejections(draw, redraws, sets=400):
    """Of tests at 5 % with Kuiper's distance, against so many redraws."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(sets):
        levels, source = draw(rng)
        pool = distance_from_uniform(np.concatenate([source.sample(rng, redraws), levels[None]]), None, "kuiper")
        found += (pool >= pool[-1]).mean() <= 0.05
    return found


def test_counts_with_unlucky_shares_hold_the_level():
    """With the shares of seed 3, uniform redraws reject 17 %; 99.9 % bounds of the binomial."""

    def draw(rng, source):
        predictions = Poisson(rng.uniform(0.1, 0.5, 200))
        levels = PIT(seed=3).of(predictions.sample(rng, 1)[0], predictions)
        return levels, source(predictions)

    assert rejections(lambda rng: draw(rng, lambda p: RedrawnLevels(p, seed=3)), 39) <= 34
    assert rejections(lambda rng: draw(rng, lambda p: Uniform(np.zeros(200), np.ones(200))), 39) > 34


def test_members_that_change_places_hold_the_level():
    def draw(rng):
        values = rng.integers(0, 4, (100, 4)) * 1.0  # with ties
        levels = PIT(seed=3).of(values[:, 0], Ensemble(values[:, 1:]))
        return levels, SwappedLevels.of(values[:, 0], values[:, 1:], seed=3)

    assert rejections(draw, 39) <= 34


def test_the_outcome_in_its_own_place_has_its_level(rng):
    values = np.round(rng.normal(size=(50, 6)), 1)
    swapped = SwappedLevels.of(values[:, 0], values[:, 1:])
    assert swapped.levels[:, -1] == pytest.approx(PIT().of(values[:, 0], Ensemble(values[:, 1:])))
    drawn = swapped.sample(rng, 4000)
    assert drawn.mean(axis=0) == pytest.approx(swapped.levels.mean(axis=1), abs=4 * 0.3 / np.sqrt(4000))


def test_what_levels_are_redrawn_from(rng, problem_of):
    y = rng.normal(size=20)
    assert isinstance(redraws_of_levels(problem_of(y, Normal(y, 1.0))), Uniform)
    assert isinstance(redraws_of_levels(problem_of(y, Ensemble(rng.normal(size=(20, 3))))), SwappedLevels)
    assert isinstance(redraws_of_levels(problem_of(rng.poisson(2, 20), Poisson(np.full(20, 2.0)))), RedrawnLevels)
    vectors = MultivariateNormal(np.zeros((20, 2)), 1.0)
    assert isinstance(redraws_of_levels(problem_of(rng.normal(size=(20, 2)), vectors)), Uniform)
