import json
import re

import numpy as np
import pytest

from calibrant import (
    ECE,
    SKCE,
    Bernoulli,
    Brier,
    Ensemble,
    EqualMass,
    ExactTest,
    Normal,
    Poisson,
    Quantiles,
    TopLabel,
    evaluate,
)
from calibrant._validate import InputError
from calibrant.estimators import PITError
from calibrant.reports import judge
from calibrant.reports.evaluation import _installed
from calibrant.reports.render.html import to_html
from calibrant.reports.render.markdown import to_markdown
from calibrant.reports.render.notebook import to_notebook


@pytest.fixture
def problem(rng):
    p = rng.dirichlet(np.ones(3), 300)
    return (rng.random((300, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1), p


def test_numbers_are_those_of_the_plain_calls(problem):
    y, p = problem
    report = evaluate(y, p, n_resamples=199, rng=4)
    main = ExactTest(ECE(EqualMass(15), lens=TopLabel()), 199)(y, p, rng=4)
    assert report.numbers[0].value == main.statistic
    assert report.numbers[0].pvalue == pytest.approx(
        main.pvalue, abs=0.15
    )  # other resamples: of classes, not of one event
    assert [x.label for x in report.numbers][2:] == ["Brier score", "Log loss", "Kernel error (SKCE)"]
    assert report.numbers[2].interval == Brier()(y, p).confidence_interval()
    kernel = ExactTest(SKCE(), 199)(y, p, rng=4)
    assert report.numbers[4].value == kernel.statistic
    assert report.numbers[4].pvalue == kernel.pvalue
    assert report.numbers[4].interval == SKCE()(y, p).confidence_interval()


def test_the_kernel_error_of_many_rows_comes_without_a_test_and_block_by_block(problem, monkeypatch):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 1000)
    untested = evaluate(*problem, n_resamples=99)
    assert untested.numbers[4].pvalue is None
    assert untested.numbers[4].null_band is None
    assert untested.numbers[4].value == SKCE()(*problem).value
    assert "Kernel error (SKCE)" in untested.to_html()
    assert untested.to_dict()["numbers"][4]["null_band"] is None
    assert "p =" not in untested.numbers[4].line()
    assert "aggregated exact test of 9 statistics" in untested.verdict.evidence[0]
    monkeypatch.setattr("calibrant.reports.core.problem.PAIRS", 300 * 50)
    in_blocks = evaluate(*problem, n_resamples=99)
    assert in_blocks.numbers[4].value == SKCE(block=50)(*problem).value
    assert len(evaluate(*problem, sample_weight=np.ones(300), n_resamples=99).numbers) == 4  # blocks take no weights


def test_progress_is_told_of_every_step(problem):
    seen = []
    evaluate(*problem, by={"half": ["a"] * 150 + ["b"] * 150}, n_resamples=99, progress=lambda *step: seen.append(step))
    names = [step[0] for step in seen]
    assert names[:2] == ["99 resamples", "Calibration error of the confidence"]
    assert names[-4:] == ["Each class", "By half", "What to do", "Done"]
    assert "Reliability curve" in names
    done, total = [step[1] for step in seen], seen[0][2]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert {step[2] for step in seen} == {total}


def test_the_report_is_plain_data(problem):
    report = evaluate(*problem, n_resamples=99)
    data = json.loads(report.to_json())
    assert data["schema"] == "calibrant/1"
    assert data["n"] == 300
    assert len(data["pictures"][0]["curve"]["observed"]) == report.picture("reliability").tables["curve"].n_rows
    assert sum(data["pictures"][0]["histogram"]["weight"]) == 300


def test_notes_tell_of_the_data():
    p = [[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0]]
    with pytest.warns(UserWarning, match="class 0 never occurs"):
        notes = evaluate([1, 1, 1], p, n_resamples=99).notes
    assert list(notes) == [
        "Never seen in the data: 0, 2, 3.",
        "Fewer than 10 rows each: 1.",
        "100.0 % of rows are of class 1.",
        "33.3 % of the probabilities are exactly 0 or 1.",
        "1 row had probability 0 for what happened: the log loss is infinite. Where smaller probabilities than 0.125, half "
        "an event in n + 1 rows, count as that, it is 1.02.",
    ]


def test_binary_and_multi_label(rng):
    p = rng.random((100, 2))
    y = (rng.random((100, 2)) < p).astype(int)
    binary = evaluate(y[:, 0], p[:, 0], n_resamples=99)
    assert (binary.kind, binary.subject, binary.sections) == ("binary", "event: 1", ())
    labels = evaluate(y, Bernoulli(p, labels=["wet", "cold"]), sample_weight=rng.random(100), n_resamples=99)
    assert labels.kind == "multi-label"
    assert sorted(labels.sections[0].table["group"]) == ["cold", "wet"]
    tables = labels.picture("reliability").tables
    assert tables["histogram"]["weight"].sum() == pytest.approx(tables["curve"]["weight"].sum())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_rows(n):
    report = evaluate([1, 0, 1][:n], [0.6, 0.4, 0.7][:n], n_resamples=99)
    assert report.verdict.headline == f"{n} row{'s are' if n > 1 else ' is'} too few to tell."
    assert report.n == n


def test_constant_and_certain_predictions():
    y = np.array([1, 0] * 30)
    assert evaluate(y, np.full(60, 0.5), n_resamples=99).verdict.tone == "good"
    assert evaluate(y, y.astype(float), n_resamples=99).verdict.tone == "good"
    assert evaluate(1 - y, y.astype(float), n_resamples=399).verdict.tone == "bad"


def test_what_had_been_called_impossible_is_never_green(rng):
    p = np.r_[rng.random(400), 0.0]
    y = np.r_[(rng.random(400) < p[:-1]) * 1, 1]
    assert evaluate(y, p, n_resamples=399).verdict.tone == "bad"


def test_too_few_resamples_are_refused():
    with pytest.raises(InputError, match="n_resamples must be a whole number of at least 99; got 18"):
        evaluate([0, 1], [0.2, 0.9], n_resamples=18)


def test_by_takes_a_column_and_no_name_of_one():
    assert [section.title for section in evaluate([0, 1], [0.2, 0.9], by=["a", "b"]).sections] == ["By group"]
    with pytest.raises(InputError, match="by='site' names columns: give them"):
        evaluate([0, 1], [0.2, 0.9], by="site")


def test_weights_equal_repetition(rng):
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    times = rng.integers(1, 4, 80)
    one, other = (
        evaluate(y, p, sample_weight=times, n_resamples=99),
        evaluate(np.repeat(y, times), np.repeat(p, times), n_resamples=99),
    )
    assert one.numbers[0].value == pytest.approx(other.numbers[0].value, rel=1e-12)
    assert one.pictures[0].tables["curve"]["observed"] == pytest.approx(other.pictures[0].tables["curve"]["observed"])


def test_settings_repeat_the_run(problem):
    settings = evaluate(*problem, n_resamples=99, rng=7).settings
    assert settings["resamples"] == 99
    assert settings["seed"] == "7"
    assert {"calibrant", "numpy", "scipy", "numba", "python", "level"} <= set(settings)


def test_the_verdict_alone_is_that_of_the_report(problem):
    assert judge(*problem, n_resamples=99, rng=3) == evaluate(*problem, n_resamples=99, rng=3).verdict


ONE = {
    "binary": ([1], [0.7]),
    "classes": ([1], [[0.2, 0.3, 0.5]]),
    "labels": ([[1, 0]], Bernoulli([[0.3, 0.4]])),
    "numbers": ([0.3], Normal([0.0], 1.0)),
    "counts": ([2], Poisson([1.5])),
    "members": ([0.3], Ensemble([[0.0, 1.0, 2.0]])),
}


@pytest.mark.parametrize("kind", ONE)
def test_one_row_is_singular_and_has_no_empty_picture(kind):
    y, p = ONE[kind]
    report = evaluate(np.array(y), p, n_resamples=99)
    texts = [
        repr(report),
        report.to_markdown(),
        report.to_html(),
        *(picture.description for picture in report.pictures),
    ]
    for text in texts:
        words = re.sub(r"<svg.*?</svg>|<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
        assert not re.search(r"\b1 (rows|groups|points|outcomes|predictions|classes|labels)\b", words)
    assert "1 row " in texts[2]
    assert not any(picture.is_empty for picture in report.pictures)
    assert "witness" not in [picture.kind for picture in report.pictures]


def test_a_smooth_curve_needs_two_places(rng):
    titles = [x.title for x in evaluate(rng.integers(0, 2, 60), np.full(60, 0.5), n_resamples=99).pictures]
    assert "The same without groups" not in titles
    titles = [x.title for x in evaluate(rng.integers(0, 2, 60), rng.random(60), n_resamples=99).pictures]
    assert "The same without groups" in titles


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    return evaluate((rng.random(200) < p) * 1, p, n_resamples=99, advice=False)


def test_a_report_shows_itself_in_every_form(report):
    assert report.to_html() == to_html(report)
    assert report.to_markdown() == to_markdown(report)
    assert report._repr_html_() == to_notebook(report)
    assert report.verdict.headline in report.to_markdown()
    assert json.loads(report.to_json())["verdict"]["headline"] == report.verdict.headline


def fresh(rng, n, shift=0.0):
    p = rng.random(n)
    return (rng.random(n) < np.clip(p + shift, 0, 1)) * 1, p


def test_a_certificate_is_read_from_the_interval_of_the_page(rng):
    y, p = fresh(rng, 1000)
    plain = evaluate(y, p, n_resamples=99, rng=1, advice=False)
    assert plain.certificate is None
    assert plain.to_dict()["certificate"] is None
    main = plain.numbers[0]
    for margin, is_certified in ((1.01 * main.interval.high, True), (0.99 * main.interval.high, False)):
        report = evaluate(y, p, n_resamples=99, rng=1, advice=False, certify=margin)
        assert report.certificate.certified is is_certified
        assert (report.certificate.lower, report.certificate.upper) == (main.interval.low, main.interval.high)
        assert report.certificate.estimate.interval == main.interval
        said = report.verdict.evidence[0]
        assert said == report.certificate.sentence("the calibration error")
        assert main.text(main.interval.high) in said
        assert report.verdict.evidence[1:] == plain.verdict.evidence
        assert report.numbers == plain.numbers
        for text in (to_html(report), to_markdown(report), to_notebook(report), repr(report)):
            assert said.split(":")[0] in text
        assert json.loads(report.to_json())["certificate"]["certified"] is is_certified


def test_an_error_that_is_too_large_needs_no_more_rows(rng):
    report = evaluate(*fresh(rng, 600, 0.15), n_resamples=99, advice=False, certify=0.05)
    assert "and it is at least" in report.verdict.evidence[0]


@pytest.mark.parametrize(
    "predictions",
    [
        lambda y, rng: Normal(np.zeros(len(y)), 1.0),
        lambda y, rng: Ensemble(rng.standard_normal((len(y), 9))),
        lambda y, rng: Quantiles(np.tile([-1.2815515655, 0.0, 1.2815515655], (len(y), 1)), [0.1, 0.5, 0.9]),
    ],
    ids=["normal", "ensemble", "quantiles"],
)
def test_forecasts_are_certified_by_their_pit_values(predictions, rng):
    y = rng.standard_normal(300)
    forecast = predictions(y, rng)
    report = evaluate(y, forecast, n_resamples=99, advice=False, certify=0.25)
    assert report.certificate.certified
    low, high = report.numbers[0].interval
    assert low == 0
    assert high == PITError("kuiper")(y, forecast).confidence_interval().high
    off = evaluate(y + 1, forecast, n_resamples=99, advice=False, certify=0.1)
    assert "PIT error" in off.verdict.evidence[0] or "error at the levels given" in off.verdict.evidence[0]
    assert off.certificate.lower > 0.1


def test_certificates_that_cannot_be_are_refused(rng):
    y, p = fresh(rng, 100)
    for margin in (0, 1, 2, -1, float("nan"), "2 %"):
        with pytest.raises(InputError, match="certify must lie strictly between 0 and 1, such as 0.02 for 2 points"):
            evaluate(y, p, certify=margin)
    with pytest.raises(InputError, match="certify=0.1 needs an upper limit of PITError.*which has none with weights"):
        evaluate(y * 1.0, Normal(p, 1.0), certify=0.1, sample_weight=np.arange(1.0, 101.0))
    few = evaluate(y, p, n_resamples=99, certify=0.02, advice=False)
    assert few.certificate.fewest == 183
    assert not few.certificate.certified


def test_rows_that_belong_together_have_no_certificate(rng):
    p = rng.random(200)
    y = (rng.random(200) < p) * 1
    with pytest.raises(InputError, match="certify=0.1 needs an upper limit of the error.*leave clusters out"):
        evaluate(y, p, certify=0.1, clusters=np.arange(200) // 2, n_resamples=99)


def test_what_is_not_installed_is_said():
    assert _installed("no-such-distribution") == "not installed"
    assert _installed("numpy") == np.__version__
