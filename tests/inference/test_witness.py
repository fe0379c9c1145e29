from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, Normal
from calibrant._validate import InputError
from calibrant.estimators import UCME, GivenLocations, OptimisedLocations, SampledLocations
from calibrant.inference import LocalErrors, Witness
from calibrant.kernels import Exponential, Gaussian


def problem(rng, n=600):
    p = rng.random(n)
    return (rng.random(n) < np.where(p > 0.7, 0.7, p)).astype(int), p


class TestWitness:
    def test_its_mean_square_is_the_mean_embedding(self, rng):
        y, p = problem(rng)
        for w in (None, rng.random(600)):
            table = Witness(Exponential(0.2), n_resamples=39)(y, p, sample_weight=w)
            expected = UCME(Exponential(0.2))(y, p, sample_weight=w).value
            assert (table["value"] ** 2).mean() == pytest.approx(expected, rel=1e-12)

    def test_it_is_beyond_chance_where_the_error_is(self, rng):
        y, p = problem(rng, 3000)
        places = GivenLocations([1, 1], [0.9, 0.3])
        table = Witness(Exponential(0.05), locations=places, n_resamples=199)(y, p)
        assert table["value"][0] < table["null_low"][0]  # fewer than predicted
        assert table["null_low"][1] < table["value"][1] < table["null_high"][1]

    def test_bands_hold_what_they_say(self):
        """Over many calibrated data sets, 95 % of the values lie within, by a binomial bound of 99.9 %."""
        rng, inside = np.random.default_rng(2), 0
        for _ in range(60):
            p = rng.random(50)
            places = GivenLocations([1], [0.5])
            table = Witness(Exponential(0.3), locations=places, n_resamples=199)(
                (rng.random(50) < p).astype(int), p, rng=rng
            )
            inside += int(table["null_low"][0] <= table["value"][0] <= table["null_high"][0])
        assert 49 <= inside <= 60

    def test_regression(self, rng):
        predictions = Normal.example(rng, 60)
        table = Witness(Exponential(1.0), Gaussian(1.0), SampledLocations(4), 39)(
            predictions.sample(rng, 1)[0], predictions
        )
        assert table.n_rows == 4

    def test_engines_change_no_digit(self, rng, monkeypatch):
        monkeypatch.setattr("calibrant.inference.monte_carlo.CHUNK", 20_000)
        y, p = problem(rng, 200)
        plain = Witness(n_resamples=60)(y, p, rng=1)
        with ThreadPoolExecutor(2) as pool:
            other = Witness(n_resamples=60)(y, p, rng=1, engine=pool)
        assert np.array_equal(plain["null_high"], other["null_high"])

    def test_bad_settings(self, rng):
        with pytest.raises(InputError, match="n_resamples must be a whole number of at least 39; got 5"):
            Witness(n_resamples=5)
        y, p = problem(rng, 40)
        with pytest.raises(InputError, match="optimised locations take no sample_weight"):
            Witness(locations=OptimisedLocations(2), n_resamples=39)(y, p, sample_weight=np.ones(40))


class TestLocalErrors:
    def test_the_mean_near_each_point_by_hand(self, rng):
        y, p = problem(rng, 80)
        w = rng.random(80)
        table = LocalErrors(lengthscale=0.1, n_points=4, n_resamples=39)(y, p, sample_weight=w)
        near = np.exp(-np.abs(table["at"][:, None] - p) / 0.1) * w
        assert table["value"] == pytest.approx((near @ (y - p)) / near.sum(axis=1), rel=1e-12)
        assert table["rows"] == pytest.approx(near.sum(axis=1) ** 2 / (near**2).sum(axis=1), rel=1e-12)

    def test_the_corner_that_is_wrong_stands_out(self, rng):
        table = LocalErrors()(*problem(rng, 4000))
        wrong = table["at"] > 0.8
        right = table["at"] < 0.6
        assert np.all(table["value"][wrong] < table["null_low"][wrong])
        assert np.mean((table["value"] < table["null_low"])[right]) < 0.3

    def test_several_classes_are_seen_by_their_confidence(self, rng):
        p = rng.dirichlet(np.ones(3), 200)
        table = LocalErrors(n_points=5, n_resamples=39)(Categorical(p).sample(rng, 1)[0], p)
        assert table.n_rows == 5

    def test_forecasts_have_a_level_and_a_spread(self, rng):
        predictions = Normal(rng.normal(size=1500), 1.0)
        too_narrow = predictions.loc + 1.5 * rng.normal(size=1500)
        table = LocalErrors(n_points=10)(too_narrow, predictions)
        spread = table["signal"] == "spread"
        assert np.all(table["value"][spread] > table["null_high"][spread])
        level = (table["value"] > table["null_high"]) | (table["value"] < table["null_low"])
        assert level[~spread].mean() <= 0.5

    def test_labels(self, rng):
        predictions = Bernoulli(rng.random((60, 2)))
        table = LocalErrors(n_points=3, n_resamples=39)(predictions.sample(rng, 1)[0], predictions)
        assert table.n_rows == 6

    def test_constant_predictions(self, rng):
        table = LocalErrors(n_points=3, n_resamples=39)(rng.integers(0, 2, 50), np.full(50, 0.5))
        assert np.all(np.isfinite(table["value"]))

    def test_bad_settings(self):
        with pytest.raises(InputError, match="n_points must be a whole number of at least 2; got 1"):
            LocalErrors(n_points=1)
        with pytest.raises(InputError, match="lengthscale must be a positive number"):
            LocalErrors(lengthscale=-1.0)
