import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import compare, io
from calibrant._validate import InputError
from calibrant.cli.comparing import names_of

polars = pytest.importorskip("polars")
pytest.importorskip("cyclopts")

COLUMNS = ["--y-true", "y", "--y-pred", "p", "--n-resamples", "99"]


@pytest.fixture
def there(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    p = rng.random(200).round(6)
    frame = polars.DataFrame({"row": np.arange(200), "y": (rng.random(200) < p) * 1, "p": p, "site": ["u", "v"] * 100})
    frame.write_csv("a.csv")
    other = frame.with_columns(polars.Series("p", (0.3 + 0.4 * p).round(6)))
    other.drop("site").write_parquet("b.parquet")
    other.sample(fraction=1, shuffle=True, seed=1).write_csv("c.csv")
    return frame, other


def test_two_files_are_compared(run, there):
    code, out, err = run("report", "a.csv", "b.parquet", *COLUMNS, "--by", "site", "--out", "page.html")
    assert (code, err) == (0, "")
    shown = " ".join(out.replace("│", " ").split())
    assert "a is better calibrated than b, and has the lower log loss." in shown
    assert "Written to page.html" in shown
    page = Path("page.html").read_text(encoding="utf-8")
    assert "How far they lie apart" in page
    assert "By site" in page


def test_numbers_are_those_of_the_library(run, there):
    frame, other = there
    code, out, _ = run("report", "a.csv", "b.parquet", *COLUMNS, "--out", "x.json", "--format", "json", "--seed", "4")
    assert code == 0
    models = {"a": frame["p"].to_numpy(), "b": other["p"].to_numpy()}
    expected = compare(frame["y"].to_numpy(), models, n_resamples=99, rng=4)
    assert json.loads(out)["differences"] == json.loads(json.dumps(expected.differences.to_dict()))
    assert json.loads(Path("x.json").read_text(encoding="utf-8")) == json.loads(out)


def test_rows_are_aligned_by_their_names(run, there):
    code, _, err = run("report", "a.csv", "c.csv", *COLUMNS, "--out", "x.json")
    assert code == 2
    assert "the truth differs in" in err
    assert "--id" in err
    code, _, _ = run("report", "a.csv", "c.csv", *COLUMNS, "--id", "row", "--out", "c.json")
    assert code == 0
    run("report", "a.csv", "b.parquet", *COLUMNS, "--out", "b.json")
    values = [json.loads(Path(f"{name}.json").read_text())["differences"]["value_b"] for name in "bc"]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_missing_and_repeated_rows_are_refused(run, there):
    _, other = there
    other.head(150).write_csv("short.csv")
    polars.concat([other.head(199), other.head(1)]).write_csv("twice.csv")
    other.with_columns(row=polars.col("row") + 1).write_csv("moved.csv")
    for file, words in (
        ("short.csv", "short.csv lacks 50 rows of a.csv, such as '150'"),
        ("twice.csv", "--id row: '0' occurs 2 times in twice.csv"),
        ("moved.csv", "moved.csv lacks 1 row of a.csv, such as '0'"),
    ):
        code, _, err = run("report", "a.csv", file, *COLUMNS, "--id", "row")
        assert code == 2
        assert words in err
    code, _, err = run("report", "a.csv", "short.csv", *COLUMNS)
    assert (code, "short.csv has 150 rows and a.csv has 200" in err) == (2, True)


def test_gates_name_models(run, there):
    page = ["--out", "x.json"]
    code, _, err = run("report", "a.csv", "b.parquet", *COLUMNS, *page, "--fail-if", "ECE of b > 0.01")
    assert code == 1
    assert "gate failed: ECE of b" in err
    code, _, _ = run("report", "a.csv", "b.parquet", *COLUMNS, *page, "--fail-if", "pvalue of a < 0.001")
    assert code == 0
    code, _, err = run("report", "a.csv", "b.parquet", *COLUMNS, *page, "--fail-if", "ECE > 0.01")
    assert code == 2
    assert "there is no 'ECE'" in err


def test_gates_name_differences(run, there):
    page, names = ["--out", "x.json"], ("Log loss", "Root mean square calibration error")
    code, _, err = run("report", "a.csv", "b.parquet", *COLUMNS, *page, "--fail-if", f"{names[0]} of b - a > 0.001")
    assert (code, f"gate failed: {names[0]} of b - a" in err) == (1, True)
    table = json.loads(Path("x.json").read_text())["differences"]
    row = table["measure"].index(names[0])
    gates = [
        f"{names[0]} of a - b > {table['difference'][row] + 1e-9}",
        f"low {names[0]} of b - a > {1e-9 - table['high'][row]}",
        f"high {names[0]} of b - a < {-table['low'][row] - 1e-9}",
        f"pvalue {names[1]} of a - b > 1",
    ]
    for gate in gates:
        assert run("report", "a.csv", "b.parquet", *COLUMNS, *page, "--fail-if", gate)[0] == 0


def test_what_makes_no_sense_is_refused(run, there):
    assert "leave it out with one" in run("report", "a.csv", *COLUMNS, "--id", "row")[2]
    assert "a file is named twice" in run("report", "a.csv", "a.csv", *COLUMNS)[2]
    assert "several models come from files" in run("report", "a.csv", "-", *COLUMNS)[2]


def test_names():
    assert names_of([Path("a/x.csv"), Path("b/y.npz")]) == ["x", "y"]
    assert names_of([Path("a/x.csv"), Path("b/x.csv")]) == [str(Path("a/x.csv")), str(Path("b/x.csv"))]
    with pytest.raises(InputError, match="named twice"):
        names_of([Path("x.csv"), Path("x.csv")])


def test_one_file_is_reported_on_as_before(run, there, tmp_path):
    data = io.read("a.csv", y_true="y", y_pred="p")
    assert len(data.y_true) == 200
    code, out, _ = run("report", "a.csv", *COLUMNS, "--out", "one.json", "--format", "json")
    assert (code, json.loads(out)["kind"]) == (0, "report")


def test_several_files_take_one_column(run, there):
    code, _, err = run("report", "a.csv", "b.parquet", *COLUMNS, "--y-pred", "row")
    assert code == 2
    assert "several files and several --y-pred: give one file with --y-pred for each model" in err


def test_a_page_by_folds_takes_one_model(run, there):
    code, _, err = run("report", "a.csv", "b.parquet", *COLUMNS, "--fold", "site")
    assert code == 2
    assert "--fold takes one model: ask for a page on each by itself" in err
