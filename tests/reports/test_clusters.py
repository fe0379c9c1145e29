"""Pages on rows that belong together."""

import numpy as np
import pytest
from scipy.special import ndtr

from calibrant import (
    Bernoulli,
    Categorical,
    Ensemble,
    ExactTest,
    InputError,
    MultivariateNormal,
    Normal,
    PITError,
    Poisson,
    Quantiles,
    compare,
    evaluate,
)
from calibrant.estimators.base import SINGLE
from calibrant.inference.exact_tests.cluster_signs import SIGNS
from calibrant.recalibration import Platt
from calibrant.reports import before_and_after
from calibrant.reports.evaluation import Together, planned
from calibrant.results import Finding


def texts(rng, count=80, rows=5, r=0.6):
    """Calibrated answers about some texts; those about one text have a common fate, and predictions of their own."""
    text = np.repeat(np.arange(count), rows)
    z = np.sqrt(r) * rng.normal(size=count)[text] + np.sqrt(1 - r) * rng.normal(size=len(text))
    p = rng.random(len(text))
    return (ndtr(z) < p) * 1, p, text


def latent(rng, text, r=0.6):
    return np.sqrt(r) * rng.normal(size=text.max() + 1)[text] + np.sqrt(1 - r) * rng.normal(size=len(text))


def predictions_of(kind, rng, text):
    """Calibrated predictions of one kind, and their targets."""
    n, z = len(text), latent(rng, text)
    loc = rng.normal(size=n)
    if kind == "classes":
        probs = rng.dirichlet(np.ones(4), n)
        return (ndtr(z)[:, None] >= np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1), Categorical(probs)
    if kind == "labels":
        probs = rng.random((n, 3))
        return (ndtr(np.stack([z, -z, latent(rng, text)], axis=1)) < probs) * 1, Bernoulli(probs)
    if kind == "ensemble":
        return loc + z, Ensemble(loc[:, None] + rng.normal(size=(n, 8)))
    if kind == "quantiles":
        levels = np.array([0.1, 0.5, 0.9])
        return loc + z, Quantiles(Normal(loc, 1.0).quantile(levels), levels)
    if kind == "counts":
        mean = np.exp(loc + 1)
        return (ndtr(z)[:, None] > Poisson(np.repeat(mean, 40)).cdf(np.tile(np.arange(40), n)).reshape(n, 40)).sum(
            1
        ), Poisson(mean)
    if kind == "vectors":
        return np.stack([loc + z, loc + latent(rng, text)], axis=1), MultivariateNormal(
            np.stack([loc, loc], axis=1), 1.0
        )
    return loc + z, Normal(loc, 1.0)


KINDS = ("classes", "labels", "numbers", "ensemble", "quantiles", "counts", "vectors")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_prediction_has_a_page_with_clusters(rng, kind):
    text = np.repeat(np.arange(60), 4)
    y, predictions = predictions_of(kind, rng, text)
    report = evaluate(y, predictions, clusters=text, by={"site": text % 2}, n_resamples=99, rng=0)
    assert report.verdict.pvalue > 0.01
    assert "signs of 60 clusters" in report.verdict.evidence[0]
    drawn = [(picture.kind, picture.title) for picture in report.pictures]
    assert len(drawn) == len(set(drawn))
    assert report.numbers[0].pvalue is not None
    assert all(x.null_band is None for x in report.numbers)
    assert report.settings["clusters"] == 60
    assert any(section.title == "By site" for section in report.sections)
    assert not any("null_low" in section.table for section in report.sections)
    for page in (report.to_html(), report.to_markdown(), repr(report), report._repr_html_()):
        assert "signs of 60 clusters" in page
        assert "if calibrated  to" not in page


def test_rows_of_one_fate_raise_no_alarm_that_rows_alone_would(rng):
    """Errors of a text lie on one side. As independent rows they are told as miscalibration in most data sets."""
    alarms = {"alone": 0, "together": 0}
    for _ in range(4):
        y, p, text = texts(rng, 50, 16, 0.95)
        for name, clusters in (("alone", None), ("together", text)):
            verdict = evaluate(y, p, clusters=clusters, n_resamples=99, rng=0, advice=False).verdict
            alarms[name] += verdict.is_alarm
    assert alarms["alone"] >= 3
    assert alarms["together"] <= 1


def test_a_shift_is_found_and_named(rng):
    y, p, text = texts(rng, 150, 4, 0.3)
    verdict = evaluate(y, np.clip(p + 0.2, 0, 1), clusters=text, n_resamples=199, rng=0).verdict
    assert verdict.finding is Finding.TOO_HIGH


def test_numbers_are_those_of_the_plain_calls(rng):
    y, p, text = texts(rng)
    report = evaluate(y, Normal(p, 0.5), clusters=text, n_resamples=199, rng=4, advice=False)
    test = ExactTest(PITError("kuiper"), 199)(y, Normal(p, 0.5), clusters=text, rng=4)
    assert report.numbers[0].value == test.statistic
    assert report.numbers[0].pvalue == test.pvalue
    crps = next(x for x in report.numbers if x.key == "crps")
    assert crps.interval is not None
    assert crps.pvalue is None


def test_variances_are_those_of_fewer_rows(rng):
    text = np.repeat(np.arange(100), 5)
    y = np.repeat(rng.random(100) < 0.5, 5) * 1  # all of a text alike
    problem, _ = planned(y, np.full(500, 0.5), None, None, 99, 0, None, Together(text))
    assert problem.inflation == pytest.approx(5, rel=0.05)
    problem, _ = planned(y, np.full(500, 0.5), None, None, 99, 0, None)
    assert problem.inflation == 1


def test_slices_are_tested_by_the_signs_of_their_own_clusters(rng):
    """A slice that holds every cluster whose rows are off is told, also where no cluster lies in two slices."""
    y, p, text = texts(rng, 120, 5, 0.3)
    site = np.where(text % 3 == 0, "a", "b")
    report = evaluate(np.where(site == "a", 1 - y, y), p, clusters=text, by={"site": site}, n_resamples=199, rng=0)
    table = next(s for s in report.sections if s.title == "By site").table
    assert table["group"].tolist()[0] == "a"
    assert table["pvalue"][0] <= 0.01


def test_slices_of_few_clusters_are_left_out_and_told(rng):
    y, p, text = texts(rng, 40, 10)
    few = evaluate(y, p, clusters=text, by={"part": np.minimum(text // 5, 2)}, n_resamples=99, rng=0, advice=False)
    section = next(s for s in few.sections if s.title == "By part")
    assert section.table["group"].tolist() == ["2"]
    assert "2 slices with few rows or clusters are left out." in section.remark
    none = evaluate(y, p, clusters=text, by={"text": text}, n_resamples=99, rng=0, advice=False)
    assert not any(s.title == "By text" for s in none.sections) or "others" in none.sections[0].table["group"][0]


def test_rare_classes_have_no_p_value_of_their_own(rng):
    text = np.repeat(np.arange(60), 5)
    probs = np.column_stack([np.full(300, 0.01), rng.dirichlet(np.ones(3), 300) * 0.99])
    y = (rng.random((300, 1)) >= np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
    report = evaluate(y, probs, clusters=text, n_resamples=99, rng=0, advice=False)
    table = report.sections[0].table
    assert np.isnan(table["pvalue"]).tolist() == (table["group"] == "0").tolist()
    assert "Those without one are too rare in these clusters" in report.sections[0].remark
    assert "nan" not in report.to_markdown()


@pytest.mark.parametrize(
    ("count", "rate", "words"),
    [
        (8, 0.5, "8 clusters do not show what is chance; 12 or more are tested"),
        (30, 0.005, "rare events that are expected in 30 clusters are worth"),
    ],
)
def test_too_few_clusters_leave_the_numbers_without_a_verdict(rng, count, rate, words):
    text = np.repeat(np.arange(count), 20)
    p = rng.uniform(0.5, 1.5, len(text)) * rate
    y = (rng.random(len(text)) < p) * 1
    y[0] = 1
    report = evaluate(y, p, clusters=text, by={"site": text % 2}, n_resamples=99, rng=0)
    assert report.verdict.finding is Finding.TOO_FEW_ROWS
    assert report.verdict.headline == f"{count} clusters are too few to tell."
    assert words in report.verdict.evidence[0]
    assert report.verdict.pvalue is None
    assert all(x.pvalue is None for x in report.numbers)
    assert report.advice.reason == "too few rows"
    assert not report.sections
    report.to_html()
    evaluate(
        rng.normal(size=len(text)),
        Normal(np.zeros(len(text)), 1.0),
        clusters=np.arange(len(text)) // 60,
        n_resamples=99,
    ).to_html()


def test_every_row_its_own_cluster_is_no_cluster(rng):
    y, p, _ = texts(rng)
    options = {"n_resamples": 99, "rng": 0, "advice": False}
    alone, same = evaluate(y, p, **options), evaluate(y, p, clusters=np.arange(400), **options)
    assert same.numbers == alone.numbers
    assert same.notes[0] == same.verdict.evidence[0] == f"{SINGLE[:1].upper()}{SINGLE[1:]}."


def test_rows_that_err_alike_are_told_where_every_row_is_said_to_be_its_own_cluster(rng):
    y, p, text = texts(rng, 80, 5, 0.9)
    found = evaluate(y, p, clusters=np.arange(400), columns={"text_id": text}, n_resamples=99, rng=0, advice=False)
    assert any(said.startswith("Rows with the same text_id err alike") for said in found.verdict.evidence)


def test_what_is_told(rng):
    y, p, text = texts(rng, 80, 5, 0.9)
    notes = evaluate(y, p, clusters=text, n_resamples=99, rng=0, advice=False).notes
    assert any(note.startswith("400 rows in 80 clusters") for note in notes)
    assert any(note.startswith("Errors are alike within clusters") for note in notes)
    assert f"p-values come from {SIGNS.format(count=80)}." in notes


def test_times_and_blocks_make_clusters(rng):
    y, p, _ = texts(rng, 100, 5, 0.9)
    order = rng.permutation(500)
    ordered = evaluate(y, p, block=5, n_resamples=99, rng=0, advice=False)
    assert ordered.settings["clusters"] == 100
    assert ordered.notes[0].startswith("In the order of time, errors have a correlation of +0.")
    shuffled = evaluate(y[order], p[order], time=np.arange(500)[order], block=5, n_resamples=99, rng=0, advice=False)
    assert shuffled.verdict.pvalue == pytest.approx(ordered.verdict.pvalue, abs=0.15)
    found = evaluate(y[order], p[order], time=np.arange(500)[order], n_resamples=99, rng=0, advice=False)
    assert found.settings["clusters"] < 100  # blocks are longer than the memory


@pytest.mark.parametrize(("more", "name"), [({"time": np.arange(400)}, "time"), ({"block": 5}, "block")])
def test_what_belongs_together_is_said_once(rng, more, name):
    y, p, text = texts(rng)
    with pytest.raises(InputError, match=f"clusters and {name} both say which rows belong together: leave one out"):
        evaluate(y, p, clusters=text, **more)


def test_held_out_rows_are_held_out_with_their_clusters(rng):
    y, p, text = texts(rng, 60, 5)
    fit = Platt().fit(y, np.clip(p**2, 0.01, 0.99), clusters=text)
    assert all(len(np.intersect1d(text[part.rows], np.delete(text, part.rows))) == 0 for part in fit.held_out)
    alone = Platt().fit(y, np.clip(p**2, 0.01, 0.99))
    assert fit.map == alone.map
    report = evaluate(y, np.clip(p**3, 0.01, 0.99), clusters=text, n_resamples=99, rng=0)
    assert any("without it and its cluster" in sentence for sentence in report.advice.sentences)
    assert report.advice.candidates is not None
    assert "null_low" not in report.advice.candidates


def test_the_standard_error_of_a_change_is_that_of_clusters(rng):
    y, p, text = texts(rng, 60, 5)
    p = np.clip(p, 0.01, 0.99)
    fit = Platt().fit(y, p, clusters=text)
    after = np.empty(300)
    for part in fit.held_out:
        after[part.rows] = part.predictions.probs[:, 1]
    change = -np.log(np.where(y == 1, after, 1 - after)) + np.log(np.where(y == 1, p, 1 - p))
    sums = [(change - change.mean())[text == c].sum() for c in range(60)]
    assert fit.scores["error"][0] == pytest.approx(np.sqrt(60 / 59 * np.sum(np.square(sums))) / 300, rel=1e-9)


def test_pages_before_and_after_take_clusters(rng):
    y, p, text = texts(rng, 60, 5)
    p = np.clip(p**3, 0.01, 0.99)
    fit = Platt().fit(y, p, clusters=text)
    page = before_and_after(y, p, fit.held_out, clusters=text, n_resamples=99, rng=0)
    assert page.after.error.null_band is None
    assert "by random signs of clusters" in page.verdict.evidence[1]
    assert any(note.startswith("300 rows in 60 clusters") for note in page.notes)
    page.to_html()


def test_models_are_compared_by_sums_over_clusters(rng):
    y, p, text = texts(rng, 80, 5)
    models = {"a": np.clip(p, 0.01, 0.99), "b": np.clip(0.3 + 0.4 * p, 0.01, 0.99)}
    result = compare(y, models, clusters=text, by={"half": text % 2}, n_resamples=99, rng=0)
    assert set(result.differences["measure"]) == {"Log loss", "Brier score"}
    assert any(note.startswith("Calibration errors of models are not compared") for note in result.notes)
    alone = compare(y, models, n_resamples=99, rng=0)
    widths = [r.differences["high"][0] - r.differences["low"][0] for r in (alone, result)]
    assert widths[0] != widths[1]
    assert result.reports["a"].settings["clusters"] == 80
    assert len(result.sections) == 1
    result.to_html()


def test_columns_are_looked_through_for_clusters(rng):
    text = np.repeat(np.arange(60), 5)
    p, z = rng.random(300), rng.normal(size=60)[text]
    y = (ndtr(0.9**0.5 * z + 0.1**0.5 * rng.normal(size=300)) < p) * 1
    quick = {"n_resamples": 99, "rng": 0, "advice": False}
    report = evaluate(y, p, columns={"text": text, "user": rng.permutation(300)}, **quick)
    assert report.verdict.evidence[0].startswith("Rows with the same text err alike")
    assert report.notes[0] == report.verdict.evidence[0]
    told = evaluate(y, p, by={"text": text}, **quick)
    assert told.notes[0] == report.notes[0]
    assert not any("err alike" in note for note in evaluate(y, p, clusters=text, columns={"text": text}, **quick).notes)
    with pytest.raises(InputError, match=r"columns\['text'\] has 2 rows and y_true has 300"):
        evaluate(y, p, columns={"text": [1, 2]}, **quick)


def test_comparisons_tell_of_rows_that_belong_together(rng):
    text = np.repeat(np.arange(60), 5)
    p, z = rng.random(300), rng.normal(size=60)[text]
    y = (ndtr(0.9**0.5 * z + 0.1**0.5 * rng.normal(size=300)) < p) * 1
    page = compare(y, {"a": p, "b": p**2}, columns={"text": text}, n_resamples=99, rng=0)
    assert page.verdict.evidence[0].startswith("Rows with the same text err alike")
    assert page.notes[0] == page.verdict.evidence[0]
    page = compare(y, {"a": p, "b": p**2}, columns={"text": text}, clusters=text, n_resamples=99, rng=0)
    assert not any("err alike" in said for said in (*page.verdict.evidence, *page.notes))


def test_reasons_on_pages_are_not_written_in_python(rng):
    y, p, text = texts(rng)
    for page in (
        evaluate(y, p, clusters=text, n_resamples=99),
        evaluate(p, Normal(p, 0.1), clusters=text, n_resamples=99),
    ):
        reasons = {x.withheld for x in page.numbers if x.withheld is not None}
        assert "rows of a cluster depend on each other, and no limits are known that allow for it" in reasons
        assert not any("(...)" in reason for reason in reasons)
