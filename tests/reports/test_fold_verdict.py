"""Pages on cross-validated predictions."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from calibrant import AggregatedTest, Brier, InputError, Normal, evaluate
from calibrant.inference import holm
from calibrant.reports.core.folds import DEPENDENT
from calibrant.results import Finding

QUICK = {"n_resamples": 199, "rng": 0, "advice": False}
FOLD = np.arange(600) % 3


def problem(rng, wrong=None, n=600):
    x = rng.normal(size=n)
    return (rng.random(n) < expit(x)) * 1, expit(np.where(FOLD[:n] == wrong, 4.0, 1.0) * x)


def test_the_verdict_is_that_of_single_folds(rng):
    y, p = problem(rng, wrong=2)
    report = evaluate(y, p, folds=FOLD, **QUICK)
    alone = [evaluate(y[k == FOLD], p[k == FOLD], **QUICK) for k in range(3)]
    pvalues = [part.verdict.pvalue for part in alone]
    assert report.verdict.pvalue == pytest.approx(holm(pvalues).min())
    assert (report.verdict.tone, report.verdict.finding) == ("bad", Finding.OVER_CONFIDENT)
    assert report.verdict.headline == f"1 model of 3 is not calibrated. Fold 2: {alone[2].verdict.headline}"
    table = report.sections[0].table
    assert table["group"].tolist()[0] == "2"
    assert sorted(table["error"]) == pytest.approx(sorted(part.numbers[0].value for part in alone))
    assert table["interval_high"][0] == alone[2].numbers[0].interval.high
    assert table["pvalue_alone"][0] == pvalues[2]


def test_all_rows_together_have_numbers_and_nothing_else(rng):
    y, p = problem(rng)
    report, pooled = evaluate(y, p, folds=FOLD, **QUICK), evaluate(y, p, **QUICK)
    assert report.verdict.headline == "The predictions of all 3 models agree with what happened."
    assert [x.value for x in report.numbers] == pytest.approx([x.value for x in pooled.numbers])
    assert all(x.interval is None and x.pvalue is None and x.null_band is None for x in report.numbers)
    assert {x.withheld for x in report.numbers} == {DEPENDENT}
    assert report.settings["folds"] == 3
    assert "Cross-validated predictions of 3 folds" in report.notes[0]
    assert "95 % interval" in report.to_html()


def test_numbers_have_folds_too(rng):
    loc = rng.normal(size=300)
    report = evaluate(
        loc + np.where(FOLD[:300] == 1, 3, 1) * rng.normal(size=300), Normal(loc, 1.0), folds=FOLD[:300], **QUICK
    )
    assert report.verdict.headline.startswith("1 model of 3 is not calibrated. Fold 1: ")
    assert [row["pvalue"] <= 0.05 for row in report.sections[0].table.rows()] == [True, False, False]


def test_few_rows_are_said_to_be_few(rng):
    y, p = problem(rng, n=90)
    report = evaluate(y, p, folds=FOLD[:90], **QUICK)
    assert report.verdict.finding is Finding.TOO_FEW_ROWS
    assert report.verdict.headline == "None of 3 models is seen to be miscalibrated; 3 folds have too few rows to tell."


def test_rows_without_weight_and_clusters(rng):
    y, p = problem(rng)
    weights = np.where(np.arange(600) < 90, 0.0, 1.0)
    text = np.arange(600) // 5
    report = evaluate(y, p, folds=FOLD, sample_weight=weights, clusters=text, **QUICK)
    assert sum(report.sections[0].table["rows"]) == 510
    assert any(note.startswith("102 clusters have rows in several folds") for note in report.notes)
    whole = evaluate(y, p, folds=text % 3, clusters=text, **QUICK)
    assert not any("in several folds" in note for note in whole.notes)


@pytest.mark.parametrize(
    ("folds", "more", "words"),
    [
        (np.zeros(600), {}, "folds has the label 0.0 in all 600 rows.*leave it out if one model made all predictions"),
        (FOLD[:10], {}, "folds has 10 rows and y_true has 600"),
        (
            np.where(FOLD == 1, np.nan, FOLD),
            {},
            "folds has 200 missing labels, first in row 1: name the fold of each row",
        ),
        (np.arange(600), {}, "folds has 600 different labels in 600 rows.*cross-validate with fewer folds"),
        (FOLD, {"by": FOLD}, "by and folds both cut the rows: leave by out"),
        (FOLD, {"certify": 0.05}, "certify=0.05 is about one model"),
    ],
)
def test_what_is_refused(rng, folds, more, words):
    y, p = problem(rng)
    with pytest.raises(InputError, match=words):
        evaluate(y, p, folds=folds, **QUICK, **more)


def test_no_band_is_drawn_and_none_is_spoken_of(rng):
    y, p = problem(rng)
    assert "band" not in evaluate(y, p, folds=FOLD, **QUICK).picture("reliability").caption
    assert "leaves the band" in evaluate(y, p, **QUICK).picture("reliability").caption


@pytest.mark.study
def test_all_rows_together_have_no_level():
    """Each model chooses one of five features on its training rows, and is calibrated, whichever it chooses."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    test, pooled, single, missed = AggregatedTest(n_resamples=99), 0, 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x, fold, p, truth = rng.normal(size=(500, 5)), np.arange(500) % 5, np.empty(500), 0.0
        y = (rng.random(500) < expit(0.5 * x.sum(axis=1))) * 1
        for k in range(5):
            seen = fold != k
            chosen = np.argmax([abs(np.corrcoef(x[seen, j], y[seen])[0, 1]) for j in range(5)])
            p[fold == k] = expit(0.5 * x[fold == k, chosen, None] + nodes) @ weights / weights.sum()
        one = expit(0.5 * nodes[:, None] + nodes) @ weights / weights.sum()
        truth = float((one * (1 - one)) @ weights / weights.sum())
        pooled += test(y, p, rng=0).pvalue <= 0.05
        single += 5 * min(test(y[fold == k], p[fold == k], rng=0).pvalue for k in range(5)) <= 0.05
        low, high = Brier()(y, p).confidence_interval()
        missed += not low <= truth <= high
    print(f"all rows {pooled / 400:.3f}, single folds {single / 400:.3f}, Brier score missed {missed / 400:.3f}")
    assert single <= binom.ppf(0.999, 400, 0.05)
    assert pooled > binom.ppf(0.999, 400, 0.05)
