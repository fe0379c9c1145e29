import time

import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.estimators import PIT
from calibrant.inference import PITHistogram
from calibrant.inference.pit_bands import histogram_coverage


def outside(table):
    return (table["observed"] < table["low"]) | (table["observed"] > table["high"])


def test_shares_of_levels(rng):
    batch = Normal.example(rng, 300)
    y = batch.sample(rng, 1)[0]
    table = PITHistogram(n_bins=5)(y, batch)
    assert table["observed"] == pytest.approx(np.histogram(PIT()(y, batch), 5, (0, 1))[0] / 300)
    assert table["lower"].tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert table["upper"][-1] == 1


@pytest.mark.parametrize("n", [50, 500])
def test_calibrated_forecasts_stay_inside_together(n, counts):
    """Numbers and counts, 400 data sets each: the exact chance, within binomial bounds."""
    rng = np.random.default_rng(3)
    histogram = PITHistogram()
    for family in (Normal, counts):
        tables = []
        for _ in range(400):
            batch = family.example(rng, n)
            tables.append(PITHistogram(seed=int(rng.integers(1 << 30)))(batch.sample(rng, 1)[0], batch))
        inside = np.mean([not outside(table).any() for table in tables])
        low, high = (round(tables[0][end][0] * n) for end in ("low", "high"))
        exact = histogram_coverage(low, high, n, histogram.n_bins)
        assert abs(inside - exact) < 4 * np.sqrt(exact * (1 - exact) / 400)


def test_shapes_say_what_is_wrong(rng):
    y = rng.normal(size=2_000)
    sure, timid, low = (
        PITHistogram()(y, Normal(np.full(2_000, m), s)) for m, s in ((0.0, 0.6), (0.0, 1.6), (-0.5, 1.0))
    )
    assert np.all(sure["observed"][[0, -1]] > sure["high"][0])  # a U
    assert np.all(timid["observed"][[0, -1]] < timid["low"][0])  # a hump
    assert low["observed"][0] < low["low"][0] < low["high"][0] < low["observed"][-1]  # a slope


def test_counts_without_randomness(counts, rng):
    """The mean of many randomised histograms."""
    batch = counts.example(rng, 60)
    y = batch.sample(rng, 1)[0]
    exact = PITHistogram(randomise=False)(y, batch)["observed"]
    drawn = np.stack([PITHistogram(seed=seed)(y, batch)["observed"] for seed in range(400)])
    assert np.all(np.abs(drawn.mean(axis=0) - exact) < 5 * drawn.std(axis=0) / 20 + 1e-12)
    assert exact.sum() == pytest.approx(1)


def test_vectors_by_their_preranks(rng):
    batch = MultivariateNormal.example(rng, 400)
    y = batch.sample(rng, 1)[0]
    assert not outside(PITHistogram(level=0.999, prerank="average")(y, batch)).any()
    assert outside(PITHistogram(prerank="band")(batch.mean + 2 * (y - batch.mean), batch)).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PITHistogram(1), "n_bins must be a whole number of at least 2"),
        (lambda: PITHistogram(level=95), "level must lie strictly between 0 and 1; got 95"),
        (lambda: PITHistogram(prerank="x"), "prerank must be"),
        (lambda: PITHistogram()([0, 1], [0.2, 0.4]), "PITHistogram needs a distribution function, which Categorical"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_one_row():
    table = PITHistogram(4)([0.1], Normal([0.0], 1.0))
    assert table["observed"].tolist() == [0, 0, 1, 0]
    assert not outside(table).any()


def test_large_ensembles_in_about_a_second(rng):
    y, batch = rng.normal(size=14_600), Ensemble(rng.normal(size=(14_600, 50)))
    start = time.perf_counter()
    assert not outside(PITHistogram(51)(y, batch)).any()
    assert time.perf_counter() - start < 10  # a shared machine


def test_weights_are_shares_and_widen_the_band(rng):
    batch = Normal.example(rng, 400)
    y = batch.sample(rng, 1)[0]
    weights = rng.integers(0, 4, 400)
    table = PITHistogram(n_bins=5)(y, batch, sample_weight=weights)
    expected = np.histogram(PIT()(y, batch), 5, (0, 1), weights=weights)[0] / weights.sum()
    assert table["observed"] == pytest.approx(expected)
    rows = round(weights.sum() ** 2 / (weights**2).sum())
    assert table["high"] == pytest.approx(PITHistogram(n_bins=5)(y[:rows], batch[:rows])["high"])


def test_weighted_bands_hold_about_their_level(rng):
    """400 calibrated data sets with random weights: 95 % within four standard errors, and a little more for whole numbers."""
    inside = []
    for _ in range(400):
        y = Normal(np.zeros(300), 1.0).sample(rng, 1)[0]
        table = PITHistogram()(y, Normal(np.zeros(300), 1.0), sample_weight=rng.gamma(4, size=300))
        inside.append(not outside(table).any())
    assert 0.95 - 4 * np.sqrt(0.05 * 0.95 / 400) < np.mean(inside) <= 1
