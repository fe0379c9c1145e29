import numpy as np
import pytest
from scipy.stats import binom, kstest, norm, poisson

from calibrant import CRPS, SKCE, AggregatedTest, ExactTest, Normal, Pinball, PITError, Quantiles, coverage
from calibrant._validate import InputError
from calibrant.estimators import PIT, QuantileError, ShareBetween
from calibrant.estimators.forecast_errors.quantile_cells import CellResamples, SharesBelow
from calibrant.inference import BlockTest, PITHistogram, SpectralTest
from calibrant.plots import CoverageDisplay, FanDisplay, SpreadDisplay, WitnessDisplay

P10_50_90 = np.array([0.1, 0.5, 0.9])


def fan(rng, n, levels=P10_50_90, width=1.0):
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = rng.normal(loc, scale)
    return y, Quantiles(loc[:, None] + width * scale[:, None] * norm.ppf(levels), levels)


def test_levels_lie_between_those_of_the_quantiles_around_a_target(rng):
    y, quantiles = fan(rng, 4_000)
    u = PIT()(y, quantiles)
    for j, level in enumerate(P10_50_90):
        assert np.array_equal(u <= level, y <= quantiles.quantiles[:, j])
    assert kstest(u, "uniform").pvalue > 1e-3  # whatever lies within: those of a straight line are not uniform
    assert kstest(PIT()(y, Quantiles.joined(quantiles.values, P10_50_90)), "uniform").pvalue < 1e-3
    assert PITHistogram(n_bins=20)(y, quantiles)["observed"].max() < 0.07


def test_errors_look_at_the_levels_given_alone():
    y = np.array([-3.0, -2.0, 0.5, 0.7, 0.9, 0.95, 3.0, 4.0, 5.0, 6.0])
    quantiles = Quantiles(np.tile([-1.0, 0.8, 1.0], (10, 1)), P10_50_90)
    assert SharesBelow.of(quantiles, None)(y[None])[0].tolist() == pytest.approx([0.2, 0.4, 0.6])
    assert PITError()(y, quantiles).value == pytest.approx(0.3)
    assert PITError("kuiper")(y, quantiles).value == pytest.approx(0.4)
    squares = 0.3 * 0.1**2 + 0.4 * 0.1**2 + 0.3 * 0.3**2
    assert PITError("cramer-von-mises")(y, quantiles).value == pytest.approx(squares**0.5)
    assert QuantileError()(y, quantiles).table["level"].tolist() == P10_50_90.tolist()
    assert QuantileError()(y, quantiles).value == pytest.approx(0.5 / 3)
    assert QuantileError([0.5])(y, quantiles).value == pytest.approx(0.1)
    assert ShareBetween()(y, quantiles).value == pytest.approx(0.4)
    assert PITError()(y, quantiles).notes == (
        "judged at the levels given, 10 %, 50 %, 90 %; nothing is assumed between and beyond them",
    )
    moved = Quantiles(quantiles.values, P10_50_90, tails=(-99.0, 99.0))
    assert PITError("kuiper")(y, moved).value == PITError("kuiper")(y, quantiles).value


def test_weights_count_as_copies(rng):
    y, quantiles = fan(rng, 60)
    w = rng.integers(0, 4, 60)
    copies = np.repeat(np.arange(60), w)
    for estimator in (PITError("kuiper"), ShareBetween(), QuantileError()):
        plain = estimator(y[copies], quantiles[copies]).value
        assert estimator(y, quantiles, sample_weight=w).value == pytest.approx(plain)


def test_targets_on_a_quantile_are_put_where_they_speak_least():
    quantiles = Quantiles(np.tile([0.0, 0.0, 5.0], (10, 1)), P10_50_90)
    dry, wet = np.zeros(7), np.full(3, 6.0)
    shares = SharesBelow.of(quantiles, None)(np.concatenate([dry, wet])[None])[0]
    assert shares.tolist() == pytest.approx([0.1, 0.5, 0.7])  # zeros may be below each, or not
    assert ShareBetween()(np.concatenate([dry, wet]), quantiles).value == pytest.approx(0.7)


def test_resamples_fall_into_cells_as_often_as_promised():
    quantiles = Quantiles(np.tile([0.0, 2.0, 2.0, 3.0], (500, 1)), [0.1, 0.3, 0.6, 0.9])
    y = CellResamples.of(quantiles).sample(np.random.default_rng(0), 200).ravel()
    cells = [(y < 0).sum(), ((y > 0) & (y < 2)).sum(), (y == 2).sum(), ((y > 2) & (y < 3)).sum(), (y > 3).sum()]
    for count, chance in zip(cells, [0.1, 0.2, 0.3, 0.3, 0.1], strict=True):
        assert binom.cdf(count, y.size, chance) > 1e-4
        assert binom.sf(count, y.size, chance) > 1e-4
    part = CellResamples.of(quantiles).rows(np.array([3, 5]))
    assert part.sample(np.random.default_rng(0), 4).shape == (4, 2)


@pytest.mark.parametrize("world", ["smooth", "rain", "counts"])
def test_perfect_quantiles_are_rejected_in_one_of_twenty_sets_at_most(world):
    pvalues = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y, quantiles = fan(rng, 100)
        if world == "rain":
            y, quantiles = np.maximum(y, 0), Quantiles(np.maximum(quantiles.quantiles, 0), P10_50_90)
        if world == "counts":
            rate = rng.uniform(0.2, 5, 100)
            y, quantiles = rng.poisson(rate), Quantiles(poisson.ppf(P10_50_90, rate[:, None]), P10_50_90)
        pvalues.append(AggregatedTest(n_resamples=99)(y, quantiles, rng=seed).pvalue)
    assert np.sum(np.array(pvalues) <= 0.05) <= binom.isf(1e-3, 100, 0.05)


def test_what_whole_distributions_are_needed_for_is_refused_with_what_works(rng):
    y, quantiles = fan(rng, 30)
    for test in (ExactTest(SKCE()), ExactTest(CRPS()), AggregatedTest((SKCE(),)), SpectralTest(), BlockTest()):
        with pytest.raises(
            InputError, match=r"nothing between their levels: use ExactTest\(PITError\(\)\), or say that"
        ):
            test(y, quantiles)
    joined = Quantiles.joined(quantiles.values, quantiles.levels)
    assert ExactTest(SKCE(), 19)(y, joined).pvalue > 0
    assert ExactTest(PITError(), 19)(y, quantiles).pvalue > 0
    with pytest.raises(InputError, match=r"asks for the levels 25 %, 75 %, and these quantiles have 10 %, 50 %, 90 %"):
        coverage(y, quantiles, levels=0.5)
    assert coverage(y, joined, levels=0.5)["level"].tolist() == [0.5]
    with pytest.raises(InputError, match="Pinball asks for the levels 20 %"):
        Pinball([0.2])(y, quantiles)
    with pytest.raises(InputError, match="low and high must be two levels"):
        ShareBetween(0.1)(y, quantiles)


def test_what_is_not_said_is_taken_from_the_forecast(rng):
    y, quantiles = fan(rng, 40)
    assert coverage(y, quantiles)["level"].tolist() == [0.8]
    assert coverage(y, quantiles)["expected"] == pytest.approx([0.8])
    assert Pinball()(y, quantiles).table["level"].tolist() == P10_50_90.tolist()
    assert Pinball()(y, quantiles).value == pytest.approx(Pinball(P10_50_90)(y, quantiles).value)
    assert ShareBetween(0.1, 0.9)(y, Normal(np.zeros(40), 1.0)).value <= 1
    with pytest.raises(InputError, match="these quantiles have none"):
        coverage(y, Quantiles(quantiles.values[:, 1:], [0.5, 0.9]))


def test_pictures_show_the_intervals_that_were_forecast(rng):
    y, quantiles = fan(rng, 60)
    tables = CoverageDisplay.from_predictions(y, quantiles).tables, FanDisplay.from_predictions(y, quantiles).tables
    assert tables[0]["coverage"]["level"].tolist() == [0.8]
    assert [name for name in tables[1]["fan"] if name.startswith("low")] == ["low_0.8"]
    assert "low" not in SpreadDisplay.from_predictions(y, quantiles).tables["spread"]
    with pytest.raises(InputError, match="witness tests whole distributions"):
        WitnessDisplay.from_predictions(y, quantiles)


def test_numbers_that_need_more_say_what_they_rest_on(rng):
    y, quantiles = fan(rng, 40)
    told = "rests on straight lines between the quantiles, which were not forecast"
    assert told in CRPS()(y, quantiles).notes
    assert told in SKCE()(y, quantiles).notes
    assert told not in CRPS()(y, Quantiles.joined(quantiles.values, P10_50_90)).notes
    assert Pinball()(y, quantiles).notes == ()
