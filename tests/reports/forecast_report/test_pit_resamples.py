import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal, Poisson
from calibrant.distributions import Uniform
from calibrant.estimators import PIT
from calibrant.estimators.forecast_errors.pit_error import distance_from_uniform
from calibrant.reports.forecast_report.forecast_problem import PITOfParts, ResampledPIT, SwappedPIT, resamples_of_pit


def rejections(draw, resamples, sets=400):
    """Of tests at 5 % with Kuiper's distance, against so many resamples."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(sets):
        pit, source = draw(rng)
        pool = distance_from_uniform(np.concatenate([source.sample(rng, resamples), pit[None]]), None, "kuiper")
        found += (pool >= pool[-1]).mean() <= 0.05
    return found


def test_counts_with_unlucky_shares_hold_the_level():
    """With the shares of seed 3, uniform resamples reject 17 %; 99.9 % bounds of the binomial."""

    def draw(rng, source):
        predictions = Poisson(rng.uniform(0.1, 0.5, 200))
        pit = PIT(seed=3).of(predictions.sample(rng, 1)[0], predictions)
        return pit, source(predictions)

    assert rejections(lambda rng: draw(rng, lambda p: ResampledPIT.of(p, seed=3)), 39) <= 34
    assert rejections(lambda rng: draw(rng, lambda p: Uniform(np.zeros(200), np.ones(200))), 39) > 34


def test_members_that_change_places_hold_the_level():
    def draw(rng):
        values = rng.integers(0, 4, (100, 4)) * 1.0  # with ties
        pit = PIT(seed=3).of(values[:, 0], Ensemble(values[:, 1:]))
        return pit, SwappedPIT.of(values[:, 0], values[:, 1:], seed=3)

    assert rejections(draw, 39) <= 34


def test_the_outcome_in_its_own_place_has_its_level(rng):
    values = np.round(rng.normal(size=(50, 6)), 1)
    swapped = SwappedPIT.of(values[:, 0], values[:, 1:])
    assert swapped.pit[:, -1] == pytest.approx(PIT().of(values[:, 0], Ensemble(values[:, 1:])))
    drawn = swapped.sample(rng, 4000)
    assert drawn.mean(axis=0) == pytest.approx(swapped.pit.mean(axis=1), abs=4 * 0.3 / np.sqrt(4000))


def test_what_pit_values_are_resampled_from(rng):
    y = rng.normal(size=20)
    assert resamples_of_pit(y, Normal(y, 1.0)) is None
    assert isinstance(resamples_of_pit(y, Ensemble(rng.normal(size=(20, 3)))), SwappedPIT)
    assert isinstance(resamples_of_pit(rng.poisson(2, 20), Poisson(np.full(20, 2.0))), ResampledPIT)
    assert resamples_of_pit(rng.normal(size=(20, 2)), MultivariateNormal(np.zeros((20, 2)), 1.0)) is None


def test_resamples_of_some_rows_are_those_of_all(rng):
    """Counts that are nearly certain have the PIT values of their shares; ensembles of equal members too."""
    index = np.array([7, 2, 11])
    counts = ResampledPIT.of(Poisson(np.full(12, 1e-12)))
    members = SwappedPIT.of(np.zeros(12), np.zeros((12, 3)))
    parts = PITOfParts(((np.arange(0, 12, 2), counts.rows(np.arange(0, 12, 2))), (np.arange(1, 12, 2), None)), 12)
    for resamples in (counts, members):
        assert resamples.rows(index).sample(rng, 2) == pytest.approx(resamples.sample(rng, 2)[:, index])
    some = parts.rows(index).sample(rng, 400)
    assert some[:, 1] == pytest.approx(counts.shares[2])
    assert some[:, [0, 2]].mean() == pytest.approx(0.5, abs=4 * (1 / 12 / 800) ** 0.5)


def test_parts_are_put_in_their_rows(rng):
    low = Poisson(np.full(3, 1e-12))
    parts = [(np.array([0, 3, 5]), ResampledPIT.of(low)), (np.array([1, 2, 4]), None)]
    drawn = PITOfParts(tuple(parts), 6).sample(rng, 50)
    assert drawn[:, [0, 3, 5]] == pytest.approx(np.tile(ResampledPIT.of(low).shares, (50, 1)))
    assert drawn[:, [1, 2, 4]].std(axis=0).min() > 0.2
