import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant import Monitor, Normal, Pinball, Quantiles, compare, evaluate
from calibrant.recalibration import QuantileRecalibration
from calibrant.reports import judge
from calibrant.reports.evaluation import planned
from calibrant.reports.forecast_report.forecast_outline import histogram_of

P10_50_90 = np.array([0.1, 0.5, 0.9])
TWENTIETHS = np.arange(1, 20) / 20


def fan(seed, n, levels=P10_50_90, width=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = rng.normal(loc, scale)
    return y, Quantiles(loc[:, None] + scale[:, None] * (width * norm.ppf(levels) + shift), levels)


@pytest.mark.parametrize("levels", [P10_50_90, TWENTIETHS], ids=["three", "nineteen"])
def test_perfect_quantiles_are_believed(levels):
    alarms = sum(judge(*fan(seed, 300, levels), n_resamples=99, rng=seed).is_alarm for seed in range(40))
    assert alarms <= binom.isf(1e-3, 40, 0.05)


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"width": 0.7}, "too narrow"),
        ({"width": 1.5}, "too wide"),
        ({"shift": 0.4}, "too high"),
        ({"shift": -0.4}, "too low"),
    ],
)
@pytest.mark.parametrize("levels", [P10_50_90, TWENTIETHS], ids=["three", "nineteen"])
def test_wrong_quantiles_are_named(settings, finding, levels):
    assert judge(*fan(1, 300, levels, **settings), n_resamples=99).finding == finding


def test_the_report_says_what_it_rests_on():
    y, quantiles = fan(0, 400, width=0.6)
    report = evaluate(y, quantiles, n_resamples=99)
    assert report.subject == "Quantiles at 10 %, 50 %, 90 %"
    told = "Judged at the levels given, 10 %, 50 %, 90 %; nothing is assumed between and beyond them."
    assert told in report.verdict.evidence
    assert told in report.notes
    labels = ["Error at the levels given", "Between the 10 % and 90 % quantiles", "Pinball loss"]
    assert [x.label for x in report.numbers] == labels
    assert [x.pvalue is None for x in report.numbers] == [False, False, True]
    assert [picture.kind for picture in report.pictures] == ["pit_histogram", "coverage", "fan", "null", "before_after"]
    cells = report.picture("pit_histogram").tables["pit_histogram"]
    assert cells["upper"].tolist() == [0.1, 0.5, 0.9, 1.0]
    below = (y[:, None] < quantiles.quantiles).mean(axis=0)
    assert np.cumsum(cells["observed"])[:-1] == pytest.approx(below)
    table = report.sections[0].table
    order = [P10_50_90.tolist().index(predicted) for predicted in table["claimed"]]
    assert table["happened"] == pytest.approx(below[order])
    assert f"{100 * (below[2] - below[0]):.1f} % of outcomes lie between the 10 % and 90 % quantiles" in " ".join(
        report.verdict.evidence
    )
    assert "Share of rows over share promised" in report.to_html()
    assert "pinball loss" in report.advice.headline


def test_bands_of_cells_hold_all_at_once():
    inside = 0
    for seed in range(200):
        y, quantiles = fan(seed, 150)
        problem, _ = planned(y, quantiles, None, None, 99, None, None)
        cells = histogram_of(problem.pit).tables["pit_histogram"]
        inside += bool(np.all((cells["observed"] >= cells["low"]) & (cells["observed"] <= cells["high"])))
    assert inside >= binom.ppf(1e-3, 200, 0.95)


def test_recalibrated_quantiles_have_the_same_levels_and_lower_loss_on_new_rows():
    y, quantiles = fan(0, 2_000, width=0.6)
    fitted = QuantileRecalibration().fit(y, quantiles)
    assert fitted.scores["score"].tolist() == ["pinball"]
    assert fitted.scores["change"][0] < 0
    new_y, new = fan(1, 5_000, width=0.6)
    better = fitted(new)
    assert isinstance(better, Quantiles)
    assert better.levels.tolist() == P10_50_90.tolist()
    assert Pinball()(new_y, better).value < Pinball()(new_y, new).value
    assert (new_y[:, None] < better.quantiles).mean(axis=0) == pytest.approx(P10_50_90, abs=0.03)


def test_models_are_compared_at_the_levels_they_share():
    y, quantiles = fan(0, 300, width=0.6)
    loc = quantiles.quantiles[:, 1]
    found = compare(y, {"fan": quantiles, "normal": Normal(loc, 1.0)}, n_resamples=99)
    assert found.differences["measure"].tolist() == ["Pinball loss", "Root mean square PIT error"]
    assert found.differences["value_a"][0] == pytest.approx(Pinball()(y, quantiles).value)
    assert found.differences["value_b"][0] == pytest.approx(Pinball(P10_50_90)(y, Normal(loc, 1.0)).value)


def test_monitors_bet_on_the_cells():
    quiet, alarmed = (Monitor().update(*fan(0, 1_000, width=width)) for width in (1.0, 0.7))
    assert quiet.alarm is None
    assert alarmed.alarm.words == "forecasts are too narrow"
    assert Monitor.from_dict(alarmed.to_dict()).log_evalue == pytest.approx(alarmed.log_evalue)
    y, quantiles = fan(2, 1_000)
    rain = Monitor().update(np.maximum(y, 0), Quantiles(np.maximum(quantiles.quantiles, 0), P10_50_90))
    assert rain.alarm is None
