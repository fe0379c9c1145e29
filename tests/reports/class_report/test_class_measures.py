import numpy as np
import pytest

from calibrant import TopLabel, compare, evaluate
from calibrant.estimators import AUC, AURC, ICI, CalibrationIntercept, CalibrationRatio, CalibrationSlope
from calibrant.io import example, read

CLINICAL = {
    "ratio": CalibrationRatio(),
    "intercept": CalibrationIntercept(),
    "slope": CalibrationSlope(),
    "ici": ICI(),
    "auc": AUC(),
}


@pytest.fixture(scope="module")
def cohort():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(-2, 1, 400)
    risk = 1 / (1 + np.exp(-log_odds))
    return (rng.random(400) < 1 / (1 + np.exp(-0.4 * log_odds))) * 1, risk


@pytest.fixture(scope="module")
def report(cohort):
    return evaluate(*cohort, n_resamples=99, rng=0)


def test_a_risk_has_what_clinical_studies_report(cohort, report):
    found = {x.key: x for x in report.numbers}
    for key, estimator in CLINICAL.items():
        own = estimator(*cohort)
        assert found[key].value == own.value, key
        assert found[key].interval == (own.confidence_interval() if own.has_interval else None), key
    assert found["ici"].withheld == "the bias of a fitted curve is not known"
    assert found["slope"].misses_ideal
    assert not found["auc"].misses_ideal


def test_the_page_shows_them_with_their_intervals(report):
    page = report.to_html()
    for x in report.numbers:
        assert x.label in page
    auc = next(x for x in report.numbers if x.key == "auc")
    assert f"95 % interval {auc.text(auc.interval.low)} to {auc.text(auc.interval.high)}" in page
    assert "no interval: the bias of a fitted curve is not known" in page
    assert "if calibrated 1</span>" in page


def test_they_are_no_part_of_the_verdict(cohort, report):
    """The aggregated test has the statistics that it had."""
    assert "of 10 statistics" in report.verdict.evidence[0]


def test_rows_without_an_event_have_no_slope_and_no_area():
    report = evaluate(np.zeros(60, dtype=int), np.linspace(0.01, 0.2, 60), n_resamples=99, rng=0)
    keys = [x.key for x in report.numbers]
    assert "ratio" in keys
    assert not {"slope", "intercept", "ici", "auc"} & set(keys)
    assert "calibrant" in report.to_html()


def test_scores_that_separate_the_classes_say_why_there_is_no_interval():
    y = np.repeat([0, 1], 40)
    report = evaluate(y, np.linspace(0.05, 0.95, 80), n_resamples=99, rng=0)
    slope = next(x for x in report.numbers if x.key == "slope")
    assert slope.value == np.inf
    assert slope.withheld == "scores separate the classes: the slope is the limit, infinite"
    assert slope.withheld in report.to_html()


def test_few_events_have_no_interval_of_the_area():
    y = np.array([1] * 3 + [0] * 60)
    report = evaluate(y, np.linspace(0.6, 0.05, 63), n_resamples=99, rng=0)
    auc = next(x for x in report.numbers if x.key == "auc")
    assert auc.interval is None
    assert auc.withheld == "of 3 events and 60 other rows; 5 of each have an interval"


def test_a_comparison_leads_with_the_scores(cohort):
    y, p = cohort
    comparison = compare(y, {"a": p, "b": p**0.5}, n_resamples=99, rng=0)
    order = list(dict.fromkeys(comparison.numbers["number"].tolist()))
    assert order[:3] == ["Log loss", "Brier score", "Calibration error"]
    assert comparison.verdict.evidence[0].startswith("Log loss")
    assert [picture.title for picture in comparison.pictures][1:3] == [
        "Log loss of every model",
        "Brier score of every model",
    ]


def test_the_picture_of_classes_has_the_order_of_their_table():
    data = read(example("digits"), y_true="digit", y_pred="p_*")
    report = evaluate(data.y_true[:600], data.y_pred[:600], n_resamples=99, rng=0, advice=False)
    table = next(section.table for section in report.sections if section.title == "Each class")
    panels = next(picture for picture in report.pictures if picture.kind == "classwise").tables["classes"]
    assert panels["name"].tolist() == table["group"][:6].tolist()


def test_the_first_caption_says_what_log_odds_are():
    data = read(example("digits"), y_true="digit", y_pred="p_*")
    report = evaluate(data.y_true[:600], data.y_pred[:600], n_resamples=99, rng=0, advice=False)
    captions = {picture.kind: picture.caption for picture in report.pictures}
    assert "log-odds" in captions["reliability"]
    assert "log-odds" not in captions["null"]


def test_where_a_risk_goes_wrong_is_told_of_risks(report):
    picture = next(picture for picture in report.pictures if picture.kind == "witness")
    assert picture.caption.startswith("By predicted probability: ")
    assert "avoured" not in picture.caption + picture.description


def test_slices_of_a_constant_spread_are_not_made(rng):
    from calibrant import Normal

    n = 300
    std = 1.458 * (1 + 2.2e-16 * rng.integers(-4, 5, n))
    report = evaluate(rng.normal(0, 1.458, n), Normal(rng.normal(size=n), std), n_resamples=99, rng=0, advice=False)
    assert "1.458 to 1.458" not in report.to_html()
    assert not [p for p in report.pictures if p.kind in ("spread", "witness")]


def test_the_picture_says_what_the_estimators_say(rng):
    p = rng.dirichlet(np.ones(4), 200)
    y = (rng.random((200, 1)) >= p.cumsum(axis=1)[:, :3]).sum(axis=1)
    pictures = {picture.kind: picture for picture in evaluate(y, p, n_resamples=99, rng=0).pictures}
    words = pictures["risk_coverage"].caption
    assert f"{100 * AURC(TopLabel())(y, p).value:.1f} %" in words
    assert f"{100 * AUC(TopLabel())(y, p).value:.1f} %" in words
    assert pictures["risk_coverage"].tables["curve"]["coverage"][-1] == 1
