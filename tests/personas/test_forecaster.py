"""A forecaster with quantiles that cross, an ensemble with a line per member, counts, intervals, and days that are alike."""

import json
import shlex

import numpy as np
import pytest

from calibrant.recalibration import load_map

for library in ("cyclopts", "polars", "matplotlib", "jinja2"):
    pytest.importorskip(library)


def written(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """The files of a service: demand by quantiles, temperature by an ensemble, cases by a rate, prices by intervals."""
    rng = np.random.default_rng(0)
    load = 40 + 10 * np.sin(np.arange(300) / 4)
    fan = load[:, None] + np.array([-1.3, 0.0, 1.3])
    fan[7, :2] = fan[7, 1::-1]
    written(tmp_path / "demand.csv", "load,q_0.1,q_0.5,q_0.9", zip(load + rng.normal(size=300), *fan.T, strict=True))
    lines = []
    for day in range(200):
        mean, seen = 5 * rng.normal(), 0.0
        seen = round(mean + rng.normal(), 3)
        lines += [(f"d{day:03d}", f"s{day % 2}", k, round(mean + 0.5 * rng.normal(), 3), seen) for k in range(8)]
    written(tmp_path / "temperature.csv", "day,station,member,value,observed", lines)
    rate = rng.uniform(2, 8, 250)
    written(tmp_path / "cases.csv", "cases,rate", zip(rng.poisson(rate), rate, strict=True))
    price = 50 + 5 * rng.normal(size=250)
    truth = price + 4 * rng.normal(size=250)
    written(tmp_path / "prices.csv", "price,low,high", zip(truth, price - 3, price + 3, strict=True))
    noise = np.zeros(700)
    for i in range(1, 700):
        noise[i] = 0.6 * noise[i - 1] + 0.8 * rng.normal()
    days = np.datetime64("2024-01-01") + np.arange(700)
    written(tmp_path / "series.csv", "day,y,mu,sigma", zip(days, noise, np.zeros(700), np.ones(700), strict=True))
    return tmp_path


def test_quantiles_that_cross_name_the_option_that_sorts_them(folder, typed):
    line = 'calibrant report demand.csv --y-true load --predict "Quantiles(q_*)" --n-resamples 99 --out demand.html'
    code, said = typed(line)
    assert code == 2
    assert "quantiles cross in 1 row, first in row 8" in said
    assert "--rearrange sorts them" in said
    code, said = typed(f"{line} --rearrange")
    assert code == 0
    assert "quantiles crossed in 1 row of 300, and were sorted" in said
    assert "These forecasts agree with what happened." in said
    assert "Judged at the levels given, 10 %, 50 %, 90 %" in (folder / "demand.html").read_text("utf-8")


def test_an_ensemble_with_a_line_a_member(folder, typed):
    line = 'calibrant report temperature.csv --y-true observed --predict "Ensemble(value)" --n-resamples 99 --out page.json'
    code, said = typed(f"{line} --forecast-id day --by station")
    assert code == 0, said
    assert "Do not take these forecasts at face value: they are too narrow." in said
    page = json.loads((folder / "page.json").read_text("utf-8"))
    assert page["n"] == 200
    advice = page["advice"]["command"]
    assert "--forecast-id day" in advice
    code, said = typed(advice)
    assert code == 0, said
    words = shlex.split(advice)
    load_map(words[words.index("--save") + 1])


def test_counts_and_intervals(folder, typed):
    code, said = typed(
        'calibrant report cases.csv --y-true cases --predict "Poisson(rate)" --n-resamples 99 --out c.html'
    )
    assert code == 0
    assert "These forecasts agree with what happened." in said
    line = (
        'calibrant report prices.csv --y-true price --predict "Interval(low, high, {})" --n-resamples 99 --out p.html'
    )
    code, said = typed(line.format(90))
    assert code == 2
    assert "level must lie strictly between 0 and 1; got 90" in said
    code, said = typed(line.format(0.9))
    assert code == 0
    assert "they are too narrow" in said
    assert "lie between the 5 % and 95 % quantiles, instead of 90.0 %" in said


def test_quantiles_with_a_line_each(folder, typed):
    """As forecasting hubs write them, in any order of levels."""
    columns = np.genfromtxt(folder / "demand.csv", delimiter=",", skip_header=1)
    lines = [
        (i, level, row[1 + k], row[0])
        for i, row in enumerate(np.column_stack([columns[:, :1], np.sort(columns[:, 1:], axis=1)]))
        for k, level in ((2, 0.9), (0, 0.1), (1, 0.5))
    ]
    written(folder / "hub.csv", "hour,quantile,value,load", lines)
    line = 'calibrant estimate {} --y-true load --predict "{}" --estimator "Pinball" --format json'
    code, said = typed(line.format("hub.csv", "Quantiles(value)"))
    assert code == 2
    assert "--predict 'Quantiles(value, level)' and --forecast-id with the columns that they share" in said
    code, said = typed(line.format("hub.csv --forecast-id hour", "Quantiles(value)"))
    assert code == 2
    assert "say which column holds the levels, Quantiles(value, level)" in said
    found = [
        json.JSONDecoder().raw_decode(said)[0]["estimates"][0]["value"]
        for code, said in (
            typed(line.format("hub.csv --forecast-id hour", "Quantiles(value, quantile)")),
            typed(line.format("demand.csv --rearrange", "Quantiles(q_*)")),
        )
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_who_names_no_family_is_told_of_them(folder, typed):
    code, said = typed("calibrant report demand.csv --y-true load")
    assert code == 2
    assert "'load' holds numbers such as" in said
    assert "--predict 'Normal(mean, sd)', 'Quantiles(q_*)' or 'Ensemble(m_*)'" in said
    code, said = typed('calibrant report prices.csv --y-true price --predict "Interval(low, high)"')
    assert code == 2
    assert "Interval takes low, high, level: level is missing" in said
    code, said = typed('calibrant report temperature.csv --y-true observed --predict "Ensemble(value)"')
    assert code == 2
    assert "--forecast-id with the columns that they share" in said


def test_days_that_are_alike_are_tested_in_blocks(folder, typed):
    """The forecast is calibrated, and its errors last some days: rows that are taken as independent would alarm."""
    line = 'calibrant test series.csv --y-true y --predict "Normal(mu, sigma)" --n-resamples 199'
    code, said = typed(f"{line} --time day")
    assert code == 0, said
    assert "block" in said
