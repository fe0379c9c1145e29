import json

import numpy as np
import pytest

from calibrant import CRPS, Ensemble, Gamma, MultivariateNormal, Normal, Poisson, Quantiles, evaluate
from calibrant.reports.forecast_report.forecast_outline import forecast_pictures, outline_of_forecasts


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e9)


def drawn(rng, n=120):
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc, scale, loc + scale * rng.normal(size=n)


@pytest.mark.parametrize(
    ("make", "labels", "pictures"),
    [
        (lambda rng, m, s: Normal(m, s), ["CRPS", "Log loss"], ["coverage", "fan", "spread", "witness"]),
        (lambda rng, m, s: Normal(m, 1.0), ["CRPS", "Log loss"], ["coverage", "fan"]),
        (
            lambda rng, m, s: Ensemble(m[:, None] + rng.normal(size=(120, 9))),
            ["CRPS"],
            ["coverage", "fan", "spread"],
        ),
        (
            lambda rng, m, s: Quantiles.joined(Normal(m, s).quantile(np.arange(1, 20) / 20), np.arange(1, 20) / 20),
            ["CRPS", "Log loss"],
            ["coverage", "fan", "spread", "witness"],
        ),
    ],
    ids=["normal", "one width", "ensemble", "quantiles"],
)
def test_every_family_has_its_numbers_and_pictures(make, labels, pictures, rng):
    loc, scale, y = drawn(rng)
    report = evaluate(y, make(rng, loc, scale), n_resamples=99, advice=False)
    assert [x.label for x in report.numbers][:3] == [
        "PIT error",
        "Within the central 90 %",
        "Kernel error (SKCE)",
    ]
    assert [x.label for x in report.numbers][3:] == labels
    assert [picture.kind for picture in report.pictures] == ["pit_histogram", "pit_curve", *pictures, "null"]
    assert "<svg" in report.to_html()


def test_counts_and_positive_numbers(rng):
    rate = rng.uniform(0.5, 6, 100)
    report = evaluate(rng.poisson(rate), Poisson(rate), n_resamples=99)
    assert (report.kind, report.subject) == ("counts", "Poisson")
    assert evaluate(rng.gamma(2.0, 1.0, 100), Gamma(np.full(100, 2.0), 1.0), n_resamples=99).kind == "numbers"


def test_vectors_are_shown_by_coordinate(rng):
    y = rng.normal(size=(150, 2)) * [1.0, 3.0]
    report = evaluate(y, MultivariateNormal(np.zeros((150, 2)), 1.0), n_resamples=199)
    assert report.kind == "vectors of 2"
    section = report.sections[0]
    assert section.title == "Each coordinate"
    assert section.table["group"].tolist() == ["coordinate 1", "coordinate 0"]
    assert section.table["pvalue"][0] < 0.05 < section.table["pvalue"][1]
    assert [x.label for x in report.numbers][-2:] == ["Energy score", "Log loss"]


def test_numbers_are_those_of_plain_calls(rng):
    loc, scale, y = drawn(rng)
    report = evaluate(y, Normal(loc, scale), n_resamples=99)
    assert report.numbers[3].value == CRPS()(y, Normal(loc, scale)).value
    assert json.loads(report.to_json())["pictures"][0]["kind"] == "pit_histogram"


def test_slices_say_where_it_is_wrong(rng):
    loc, scale, y = drawn(rng, 600)
    site = np.repeat(["a", "b"], 300)
    report = evaluate(
        np.where(site == "a", y, loc + 4 * (y - loc)), Normal(loc, scale), by={"site": site}, n_resamples=199
    )
    assert [section.title for section in report.sections] == ["By predicted spread", "By predicted mean", "By site"]
    table = report.sections[2].table
    assert table["group"].tolist() == ["b", "a"]
    assert table["pvalue"][0] < 0.05 < table["pvalue"][1]
    assert table["happened"][0] < 0.6


def test_time_series_are_warned_of(rng):
    z = np.repeat(rng.normal(size=60), 5)
    notes = evaluate(z, Normal(np.zeros(300), 1.0), n_resamples=99).notes
    assert "MISLEAD" in notes[0]


def test_members_are_draws(rng):
    values = rng.normal(size=(300, 8))
    report = evaluate(values[:, 0], Ensemble(values[:, 1:]), n_resamples=99)
    assert report.verdict.tone == "good"
    assert report.numbers[3].pvalue is None
    assert "Members are taken as draws" in report.notes[0]


def test_weights_equal_repetition(rng):
    loc, scale, y = drawn(rng, 200)
    times = rng.integers(0, 4, 200)
    rows = np.repeat(np.arange(200), times)
    one = evaluate(2 * y, Normal(loc, scale), sample_weight=times, n_resamples=99)
    other = evaluate(2 * y[rows], Normal(loc[rows], scale[rows]), n_resamples=99)
    for a, b in zip(one.numbers, other.numbers, strict=True):
        if "SKCE" not in a.estimator:  # which compares different rows, and repeated ones are the same
            assert a.value == pytest.approx(b.value, rel=1e-9)
    for kind in ("pit_histogram", "coverage", "spread"):
        found, expected = (report.picture(kind).tables[kind]["observed"] for report in (one, other))
        assert found == pytest.approx(expected, rel=1e-9)
    assert one.verdict.headline == other.verdict.headline
    assert "Weights are unequal" in one.notes[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda rng, n: (rng.poisson(3.0, n), Poisson(rng.uniform(2, 4, n))),
        lambda rng, n: (rng.normal(size=n), Ensemble(rng.normal(size=(n, 7)))),
        lambda rng, n: (rng.normal(size=(n, 2)), MultivariateNormal(np.zeros((n, 2)), 1.0)),
    ],
    ids=["counts", "members", "vectors"],
)
def test_every_family_takes_weights(make, rng):
    y, predictions = make(rng, 120)
    w = np.where(np.arange(120) < 60, 0.0, rng.uniform(0.5, 2, 120))
    report = evaluate(y, predictions, sample_weight=w, n_resamples=99, advice=False)
    assert all(np.isfinite(x.value) for x in report.numbers)
    assert report.numbers[-1].value == pytest.approx(
        evaluate(y[60:], predictions[60:], sample_weight=w[60:], n_resamples=99, advice=False).numbers[-1].value,
        rel=0.1,
    )


def test_weights_decide_which_way_forecasts_err(rng):
    """One half too low, the other too high: as the weights say."""
    y = np.repeat([1.0, -1.0], 60) + rng.normal(size=120)
    w = np.repeat([1.0, 0.01], 60)
    for weights, word in ((w, "too low"), (w[::-1], "too high")):
        assert word in evaluate(y, Normal(np.zeros(120), 1.0), sample_weight=weights, n_resamples=99).verdict.headline


def test_quarters_are_those_of_rows_with_weight(rng):
    scale = np.linspace(0.5, 2, 200)
    w = (np.arange(200) >= 50) * 1.0
    report = evaluate(scale * rng.normal(size=200), Normal(np.zeros(200), scale), sample_weight=w, n_resamples=99)
    section = next(section for section in report.sections if section.title == "By predicted spread")
    assert sorted(section.table["rows"]) == [37, 37, 38, 38]
    assert min(section.table["group"]).startswith("0.87")  # where rows with weight begin


@pytest.mark.parametrize("n", [2, 5])
def test_a_handful_of_rows(n, rng):
    scale = np.arange(1.0, n + 1)
    report = evaluate(scale * rng.normal(size=n), Normal(np.zeros(n), scale), n_resamples=99)
    assert f"{n} row{'s are' if n > 1 else ' is'} too few to tell." == report.verdict.headline


@pytest.fixture(autouse=True)
def quick_of_forecast_pictures(monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1e7)


def made(problem):
    evidence = outline_of_forecasts(problem, {}).gather[1]()
    return {picture.kind: picture for picture in (make(evidence) for _, make in forecast_pictures(problem))}


def test_descriptions_say_what_is_seen(rng, problem_of):
    loc, scale = rng.normal(size=400), rng.uniform(0.5, 2, 400)
    pictures = made(problem_of(loc + 2 * scale * rng.normal(size=400), Normal(loc, scale)))
    assert list(pictures) == ["pit_histogram", "pit_curve", "coverage", "fan", "spread", "witness", "null"]
    assert "where 10.0 % are expected" in pictures["pit_histogram"].description
    assert "intervals that promise 90.0 % held 5" in pictures["coverage"].description
    assert "where 3 are expected" in pictures["fan"].description
    assert "where the spread is 0.5" in pictures["spread"].description
    assert "outcomes below than expected" in pictures["pit_curve"].description
    assert "0.0 % of resamples as much or more" in pictures["null"].description


def test_members_are_few(rng, problem_of):
    values = rng.normal(size=(100, 6))
    pictures = made(problem_of(values[:, 0], Ensemble(values[:, 1:])))
    assert "few members" in pictures["fan"].caption
    assert "few members" in pictures["spread"].caption
    assert "are expected" not in pictures["fan"].description


def test_vectors_have_levels_alone(rng, problem_of):
    problem = problem_of(rng.normal(size=(60, 2)), MultivariateNormal(np.zeros((60, 2)), 1.0))
    assert list(made(problem)) == ["pit_histogram", "pit_curve", "null"]
