"""Rows that belong together, on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from calibrant import AggregatedTest, Brier, evaluate, io

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


@pytest.fixture
def answers(tmp_path):
    """Answers to four questions each about sixty texts, in a file whose rows are not sorted by text."""
    rng = np.random.default_rng(5)
    text = np.repeat(np.arange(60), 4)
    z = 0.9**0.5 * rng.normal(size=60)[text] + 0.1**0.5 * rng.normal(size=240)
    p = rng.uniform(0.05, 0.95, 240)
    path, order = tmp_path / "answers.csv", rng.permutation(240)
    lines = [
        f"{int(ndtr(z[i]) < p[i])},{p[i]:.6f},text {text[i]},2024-01-{1 + text[i] % 28:02},{text[i] % 2}" for i in order
    ]
    path.write_text("\n".join(["y_true,p,text_id,day,model", *lines]) + "\n")
    return str(path)


def loaded(path):
    return io.read(path, clusters="text_id", time="day")


def test_the_numbers_are_the_library_s(run, answers):
    data = loaded(answers)
    out = run("test", answers, "--clusters", "text_id", "--n-resamples", "99", "--format", "json")[1]
    expected = AggregatedTest(n_resamples=99)(data.y_true, data.y_pred, clusters=data.clusters, rng=0)
    assert json.loads(out)["pvalue"] == expected.pvalue
    out = run(
        "estimate", answers, "--clusters", "text_id", "--estimator", "Brier()", "--by", "model", "--format", "json"
    )[1]
    found = json.loads(out)["estimates"][0]
    interval = Brier()(data.y_true, data.y_pred, clusters=data.clusters).confidence_interval()
    assert found["interval"]["low"] == interval.low
    assert len(json.loads(out)["slices"]) == 1


def test_a_report_says_that_rows_belong_together(run, answers, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = run("report", answers, "--clusters", "text_id", "--n-resamples", "99", "--out", str(page))
    assert (code, err) == (0, "")
    assert "signs of 60 clusters" in " ".join(out.replace("│", " ").split())
    assert "if calibrated" not in out  # of signs there is no band
    assert "240 rows in 60 clusters" in page.read_text("utf-8")
    data = loaded(answers)
    report = evaluate(data.y_true, data.y_pred, clusters=data.clusters, n_resamples=99, rng=0)
    out = run(
        "report", answers, "--clusters", "text_id", "--n-resamples", "99", "--out", str(page), "--format", "json"
    )[1]
    assert json.loads(out)["verdict"]["pvalue"] == report.verdict.pvalue


def test_blocks_in_time_are_chosen_and_told(run, answers, tmp_path):
    code, out, err = run("test", answers, "--time", "day", "--block", "2", "--n-resamples", "99")
    assert code == 0
    assert "signs of 14 clusters" in out
    assert "blocks of 2 steps in time are taken to belong together" in " ".join(err.split())
    run("report", answers, "--time", "day", "--block", "2", "--n-resamples", "99", "--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text("utf-8")
    assert (
        page.count("blocks of 2 steps in time are taken to belong together, and different blocks to be independent.<")
        == 1
    )
    assert "signs of" in run("test", answers, "--block", "4", "--n-resamples", "99")[1]


def test_models_are_compared_with_clusters(run, answers, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(Path(answers).read_text())
    page = tmp_path / "page.json"
    assert (
        run("report", answers, str(other), "--clusters", "text_id", "--n-resamples", "99", "--out", str(page))[0] == 0
    )
    assert any(note.startswith("240 rows in 60 clusters") for note in json.loads(page.read_text())["notes"])


def test_maps_are_judged_on_clusters_they_have_not_seen(run, answers, tmp_path):
    page = tmp_path / "page.html"
    run("recalibrate", answers, "--clusters", "text_id", "--method", "Platt()", "--report", str(page))
    assert "fitted without it and its cluster" in page.read_text("utf-8")


def test_the_advice_says_the_clusters_again(run, tmp_path):
    rng = np.random.default_rng(0)
    text, p = np.repeat(np.arange(100), 4), rng.uniform(0.02, 0.98, 400)
    lines = [f"{int(rng.random() < q**3)},{q:.4f},t{c}" for q, c in zip(p, text, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["y_true,p,text", *lines]))
    out = run(
        "report",
        str(tmp_path / "a.csv"),
        "--clusters",
        "text",
        "--n-resamples",
        "99",
        "--out",
        str(tmp_path / "a.html"),
    )[1]
    assert "--clusters text --method" in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clusters", "text"], "--clusters: answers.csv has no column 'text' (did you mean 'text_id'?)"),
        (["--time", "dya"], "--time: answers.csv has no column 'dya' (did you mean 'day'?)"),
        (["--clusters", "model"], "clusters has 2 different labels, and AggregatedTest needs at least 12"),
        (
            ["--clusters", "text_id", "--time", "day"],
            "--clusters and --time both say which rows belong together: leave one out",
        ),
        (["--clusters", "text_id", "--block", "3"], "--clusters and --block both say which rows belong together"),
        (["--time", "text_id"], "time must be numbers or dates such as 2024-05-31"),
        (["--block", "0"], "block must be a whole number of at least 1; got 0"),
    ],
)
def test_what_cannot_be_used_is_refused(run, answers, options, words):
    code, _, err = run("test", answers, *options)
    assert code == 2
    assert words in " ".join(err.split())


def test_missing_labels_are_refused(run, tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("y_true,p,id\n1,0.5,a\n0,0.4,\n")
    code, _, err = run("test", str(path), "--clusters", "id")
    assert code == 2
    assert (
        "column 'id' has missing values in 1 of 2 rows, first in row 2: leave such rows out with --missing drop"
        in " ".join(err.split())
    )


@pytest.mark.parametrize("words", [["monitor", "--clusters", "text_id"], ["simulate", "--time", "day"]], ids=" ".join)
def test_commands_without_clusters_name_those_that_take_them(run, answers, words):
    code, _, err = run(words[0], answers, *words[1:])
    assert code == 2
    assert "report, estimate, test and recalibrate take --clusters, --time and --block" in " ".join(err.split())


def test_an_option_without_its_column_is_told_as_such(run, answers):
    assert "Rows are taken to be independent" not in run("test", answers, "--clusters")[2]


def test_what_nobody_said_is_told_beside_the_verdict(run, answers, tmp_path):
    """In the panel of the terminal, on the page, and by commands without a page; not where it was said."""
    page = tmp_path / "page.json"
    said = "Rows with the same text_id err alike (correlation +0."
    quick = ["--n-resamples", "99"]
    out = " ".join(run("report", answers, *quick, "--out", str(page))[1].replace("│", " ").split())
    assert said in out.partition("All tests together")[0]
    assert json.loads(page.read_text())["notes"][0].startswith(said)
    for command in (["test", *quick], ["estimate"]):
        assert said in " ".join(run(command[0], answers, *command[1:])[2].split())
        assert "Rows with the same" not in run(command[0], answers, *command[1:], "--clusters", "text_id")[2]


@pytest.fixture
def cross_validated(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 240)
    lines = [f"{int(rng.random() < p[i])},{p[i]:.4f},fold {i % 4},all,{i}" for i in range(240)]
    (tmp_path / "cv.csv").write_text("\n".join(["y_true,p,part,one,row", *lines]))
    return str(tmp_path / "cv.csv")


def test_cross_validated_predictions(run, cross_validated, tmp_path):
    page, quick = tmp_path / "page.json", ["--n-resamples", "99"]
    code, out, _ = run("report", cross_validated, "--fold", "part", *quick, "--out", str(page))
    assert code == 0
    assert "Predictions come from 4 models" in " ".join(out.replace("│", " ").split())
    data = io.read(cross_validated, fold="part")
    expected = evaluate(data.y_true, data.y_pred, folds=data.folds, n_resamples=99, rng=0)
    assert json.loads(page.read_text())["verdict"]["pvalue"] == expected.verdict.pvalue


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "--fold", "one"], "folds has the label 'all' in all 240 rows"),
        (["report", "--fold", "row"], "folds has 240 different labels in 240 rows"),
        (["report", "--fold", "prat"], "--fold: cv.csv has no column 'prat' (did you mean 'part'?)"),
        (["report", "--fold", "part", "--by", "one"], "--fold cuts the rows by the models that predicted them"),
        (["report", "--fold", "part", "--certify", "0.1"], "leave out --by, and --certify, which is about one model"),
        (["test", "--fold", "part"], "judged by report, which takes --fold"),
        (["report", "--clusters", "one"], "--clusters one has the label 'all' in all 240 rows"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_folds_and_clusters_that_cannot_be_used(run, cross_validated, tmp_path, words, said):
    out = ["--out", str(tmp_path / "a.html")] if words[0] == "report" else []
    code, _, err = run(words[0], cross_validated, *words[1:], *out)
    assert code == 2
    assert said in " ".join(err.split())


def test_every_row_its_own_cluster_is_told(run, cross_validated):
    code, out, _ = run("test", cross_validated, "--clusters", "row", "--n-resamples", "99")
    assert code == 0
    assert "every row is a cluster of its own: rows are taken as independent" in " ".join(out.split())
