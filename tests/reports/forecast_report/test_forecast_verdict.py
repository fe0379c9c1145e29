import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from calibrant import Ensemble, Normal, Quantiles, evaluate
from calibrant.reports import judge
from calibrant.reports.core.problem import FoundSlice
from calibrant.reports.forecast_report.forecast_verdict import Lean, WeightedPIT, fault_of_forecasts


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e8)


@pytest.mark.parametrize(
    ("shift", "scale", "words"),
    [
        (0.0, 1.0, "These forecasts agree with what happened."),
        (0.6, 1.0, "they are too low."),
        (-0.6, 1.0, "they are too high."),
        (0.0, 2.0, "they are too narrow."),
        (0.0, 0.5, "they are too wide."),
    ],
)
def test_the_way_forecasts_err_is_named(shift, scale, words, rng):
    loc = rng.normal(size=400)
    verdict = judge(loc + shift + scale * rng.normal(size=400), Normal(loc, 1.0), n_resamples=99)
    assert verdict.headline.endswith(words)


def test_calibrated_forecasts_raise_few_alarms():
    """At most 5 % of 40 data sets, by its binomial bound."""
    rng, alarms = np.random.default_rng(4), 0
    for i in range(40):
        loc, scale = rng.normal(size=60), rng.uniform(0.5, 2, 60)
        alarms += judge(loc + scale * rng.normal(size=60), Normal(loc, scale), n_resamples=99, rng=i).is_alarm
    assert alarms <= 8  # 99.9 % of a binomial distribution with mean 2


def test_perfect_ensembles_raise_few_alarms():
    """Few members that lie close by chance are no fault: quarters by the members' spread alone would alarm each time."""
    rng, alarms = np.random.default_rng(5), 0
    for i in range(60):
        values = rng.normal(size=(300, 4))
        alarms += judge(values[:, 0], Ensemble(values[:, 1:]), n_resamples=99, rng=i).is_alarm
    assert alarms <= 10


def test_spreads_that_say_nothing_are_found(rng):
    loc, scale = rng.normal(size=600), rng.uniform(0.4, 2.5, 600)
    verdict = judge(loc + 1.3 * rng.normal(size=600), Normal(loc, scale), n_resamples=99)
    assert verdict.finding == "local"
    assert "they are too narrow where the predicted spread is 0.4" in verdict.headline
    assert "and too wide elsewhere" in verdict.headline


def test_a_small_error_is_called_so(rng, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 0)
    monkeypatch.setattr("calibrant.reports.forecast_report.forecast_verdict.LITTLE", 0.09)
    loc = rng.normal(size=10_000)
    verdict = judge(loc + 1.05 * rng.normal(size=10_000), Normal(loc, 1.0), n_resamples=99)
    assert (verdict.tone, verdict.finding) == ("good", "too narrow")
    assert "nearly right: they are too narrow, but by little" in verdict.headline


def test_errors_that_cancel(rng):
    u = np.concatenate([rng.uniform(0, 0.4, 500), rng.uniform(0.6, 1, 500)])
    assert fault_of_forecasts(WeightedPIT(u), ()).words == "they are too narrow"
    even = (np.arange(1000) + 0.5) / 1000
    assert fault_of_forecasts(WeightedPIT(even), ()).words == "they are wrong in places, and right on average"


def test_both_ways_are_named_the_worse_one_first():
    z = ndtri((np.arange(1000) + 0.5) / 1000)
    assert fault_of_forecasts(WeightedPIT(ndtr(0.9 * z + 1)), ()).words == "they are too low and too wide"
    assert fault_of_forecasts(WeightedPIT(ndtr(3 * z - 0.5)), ()).words == "they are too narrow and too high"


def test_a_wide_spread_shifts_by_chance():
    """Levels of outcomes three times as far out: their mean is three times as uncertain."""
    z = 3 * ndtri((np.arange(400) + 0.5) / 400) + 0.3
    assert Lean.of(WeightedPIT(ndtr(z))).height == pytest.approx(2.0, abs=0.1)
    assert Lean.of(WeightedPIT(ndtr(z))).ways() == ["too narrow"]


def test_where_it_is_clearest_is_said():
    z = ndtri((np.arange(400) + 0.5) / 400)
    large = FoundSlice("predicted spread", "large", np.arange(1, 400, 2), 0.9, 0.5, 0.4, 0.001)
    fault = fault_of_forecasts(WeightedPIT(ndtr(np.where(np.arange(400) % 2, 2.5, 1.5) * z)), (), large)
    assert fault.where == (
        "Clearest where the predicted spread is large: central 90 % intervals held 49.0 % of outcomes; error 40.0 %.",
    )


@pytest.mark.parametrize("seed", [2, 7, 9])
def test_what_is_clearest_is_the_first_row_of_the_table(seed):
    rng = np.random.default_rng(seed)
    loc = rng.normal(size=600)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = Quantiles(loc[:, None] + 1.2 * ndtri(levels), levels)
    report = evaluate(loc + 2 * rng.normal(size=600), quantiles, n_resamples=99, advice=False)
    (first,) = (x for x in report.sections if x.title == "By middle quantile")
    said = [x for x in report.verdict.evidence if x.startswith("Clearest where")]
    assert said[0].startswith(f"Clearest where the middle quantile is {first.table['group'][0]}: ")
