import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from calibrant import LogLoss, Normal, io
from calibrant.recalibration import Default, Temperature, VarianceScaling, load_map
from calibrant.recalibration.base import in_order

pytest.importorskip("cyclopts")
polars = pytest.importorskip("polars")

DIGITS = str(io.example("digits"))
COLUMNS = ["--y-true", "digit", "--y-pred", "p_*"]
DIABETES = str(io.example("diabetes"))
NORMAL = ["--y-true", "progression", "--predict", "Normal(mu, sigma)"]


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Work in a folder of one's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data():
    return io.read(DIGITS, y_true="digit", y_pred="p_*")


@pytest.fixture
def calibrated(there, rng):
    """A file that is right as it is, so that any map makes it worse."""
    p = rng.beta(0.5, 0.5, 300)
    polars.DataFrame({"y": (rng.random(300) < p) * 1, "p": p}).write_csv("calibrated.csv")
    return "calibrated.csv"


def test_fit_save_and_apply_give_the_library_s_numbers(run, there, data):
    command = ["recalibrate", DIGITS, *COLUMNS, "--method", "Temperature()", "--seed", "3", "--save", "map.json"]
    code, out, err = run(*command, "--folds", "4", "--format", "json")
    assert (code, err) == (0, "")
    fitted = Temperature().fit(data.y_true, data.y_pred, folds=4, seed=3)
    shown = json.loads(out)
    assert shown["best"] == "Temperature()"
    assert shown["saved"] == "map.json"
    assert shown["recalibrations"][0]["scores"] == fitted.scores.to_dict()
    assert shown["recalibrations"][0]["is_worse"] is False
    code, out, err = run("recalibrate", DIGITS, "--y-pred", "p_*", "--apply", "map.json", "--out", "better.csv")
    assert (code, err) == (0, "")
    assert out == "Written to better.csv: 1,797 rows with better predictions in p_0 … p_9 (10 columns)\n"
    better = io.read("better.csv", y_true="digit", y_pred="p_*", by=["ink"])
    assert np.array_equal(better.y_pred.matrix, fitted(data.y_pred).matrix)
    assert np.array_equal(better.y_true, data.y_true)
    assert polars.read_csv("better.csv").columns == polars.read_csv(DIGITS).columns


def test_what_is_shown(run, there):
    code, out, err = run("recalibrate", DIGITS, *COLUMNS, "--save", "map.json", "--report", "page.html")
    assert (code, err) == (0, "")
    assert out.startswith("Default(), the usual choice for 10 classes; --method takes others\n1,797 rows of 10 classes")
    for part in (
        "5 folds, each held out once",
        "log loss",
        "Brier",
        "calibration error of the confidence",
        "if calibrated",
    ):
        assert part in out
    assert "Page written to page.html" in out
    usage = "calibrant recalibrate NEW.csv --y-pred 'p_*' --apply map.json --out BETTER.csv"
    assert out.endswith(f"Saved Default(). To apply it:\n  {usage}\n")
    assert "Recalibration of digits.csv" in (there / "page.html").read_text(encoding="utf-8")


def test_the_page_is_of_held_out_rows(run, there, data):
    run("recalibrate", DIGITS, *COLUMNS, "--report", "page.json")
    page = json.loads((there / "page.json").read_text())
    held_out = in_order(Default().fit(data.y_true, data.y_pred).held_out)
    assert page["scores"]["after"][0] == pytest.approx(LogLoss()(data.y_true, held_out.matrix).value, rel=1e-12)
    assert "fitted without it, on 4 of 5 folds" in page["origin"]


def test_the_best_of_several_methods_is_saved(run, there):
    methods = ["--method", "VectorScaling()", "--method", "Temperature()", "--method", "OneVsRest(ScalingBinning(5))"]
    code, out, _ = run("recalibrate", DIGITS, *COLUMNS, *methods, "--save", "map.json")
    assert code == 0
    table = out[out.index("held-out scores, best first") :]
    ranks = [table.index(name) for name in ("Temperature()", "VectorScaling()", "as they are")]
    assert ranks == sorted(ranks)
    assert "note: the best of 3 by these very rows: its scores are a little too good" in out
    assert "Saved Temperature()." in out
    assert type(load_map("map.json").inner).__name__ == "Tempering"


def test_a_map_that_makes_it_worse_is_not_saved(run, calibrated, there):
    command = ["recalibrate", calibrated, "--method", "HistogramBinning(100)", "--save", "map.json"]
    code, out, err = run(*command, "--report", "page.html")
    assert code == 1
    assert "held-out log loss got worse: do not use this map" in out
    assert "Saved" not in out
    assert (there / "page.html").exists()
    assert not (there / "map.json").exists()
    assert err.count("\n") == 1
    assert err.startswith("not saved: HistogramBinning(n_bins=100) makes held-out log loss worse, 0.")
    assert "standard errors. Leave the predictions as they are, try another --method" in err
    code, out, err = run(*command, "--force")
    assert (code, err) == (0, "")
    assert "Saved HistogramBinning(n_bins=100)." in out
    assert load_map("map.json").n_classes == 2


def test_refusals_as_json(run, calibrated, there):
    command = ["recalibrate", calibrated, "--method", "HistogramBinning(100)", "--format", "json"]
    code, out, err = run(*command, "--save", "map.json")
    assert code == 1
    assert json.loads(out)["saved"] is None
    assert json.loads(out)["recalibrations"][0]["is_worse"] is True
    assert err.startswith("not saved: ")
    assert run(*command)[0] == 0  # nothing was to be saved


def test_an_infinite_loss_is_refused_in_words(run, calibrated, there):
    code, out, err = run("recalibrate", calibrated, "--method", "Isotonic()", "--save", "map.json")
    assert code == 1
    assert "→ ∞, as it calls impossible what happened. Leave" in err
    assert "nan" not in out


def test_maps_replace_maps_and_nothing_else(run, there):
    command = ["recalibrate", DIGITS, *COLUMNS, "--method", "Temperature()", "--save"]
    assert run(*command, "map.json")[0] == 0
    assert run(*command, "map.json")[0] == 0
    (there / "thesis.json").write_text("{}")
    code, _, err = run(*command, "thesis.json")
    assert (code, err) == (
        2,
        "calibrant: --save 'thesis.json' exists and is no recalibration map: choose another name, or --force\n",
    )
    assert (there / "thesis.json").read_text() == "{}"
    assert run(*command, "thesis.json", "--force")[0] == 0
    assert isinstance(load_map("thesis.json").inner.temperature, float)


def test_real_predictions(run, there, rng):
    mu = rng.normal(size=200)
    frame = {"y": rng.normal(1 + mu, 3.0), "mu": mu, "sigma": np.ones(200)}
    polars.DataFrame(frame).write_parquet("train.parquet")
    columns = ["--predict", "Normal(mu, sigma)"]
    code, out, _ = run("recalibrate", "train.parquet", *columns, "--save", "map.json")
    assert code == 0
    assert out.startswith(
        "VarianceScaling(bias=True), the usual choice for Normal predictions; --method takes others\n"
    )
    assert "--predict 'Normal(mu, sigma)'" in out
    code, out, _ = run("recalibrate", "train.parquet", *columns, "--apply", "map.json", "--out", "better.jsonl")
    assert code == 0
    assert "log loss" in out  # as the file has the truth
    fitted = VarianceScaling(bias=True).fit(frame["y"], Normal(mu, frame["sigma"]))
    better = polars.read_ndjson("better.jsonl")
    assert np.array_equal(better["mu"].to_numpy(), fitted(Normal(mu, 1.0)).loc)
    assert np.array_equal(better["sigma"].to_numpy(), fitted(Normal(mu, 1.0)).scale)
    code, _, err = run("recalibrate", "train.parquet", *columns, "--report", "page.html")
    assert (code, err) == (0, "")
    assert "what intervals promise" in Path("page.html").read_text(encoding="utf-8")


def test_predictions_that_leave_their_family_have_quantiles(run, there):
    run("recalibrate", DIABETES, *NORMAL, "--method", "QuantileRecalibration()", "--save", "map.json", "--force")
    code, out, _ = run("recalibrate", DIABETES, *NORMAL, "--apply", "map.json", "--out", "b.csv", "--level", "0.5")
    assert code == 0
    assert "in q_0.5\n" in out
    assert polars.read_csv("b.csv").columns == ["progression", "mu", "sigma", "sex", "q_0.5"]


def test_ensembles_are_dressed_and_judged_by_their_ranked_score(run, there, rng):
    members = {f"m_{i}": rng.normal(size=50) for i in range(4)}
    polars.DataFrame({"y": 2 * rng.normal(size=50), **members}).write_csv("x.csv")
    command = ["recalibrate", "x.csv", "--predict", "Ensemble(members='m_*')"]
    code, out, _ = run(*command, "--save", "map.json")
    assert code == 0
    assert "Dressing(), the usual choice for Ensemble predictions" in out
    assert "CRPS" in out
    assert run(*command, "--apply", "map.json", "--out", "better.csv")[0] == 0
    assert polars.read_csv("better.csv").columns == ["y", "m_0", "m_1", "m_2", "m_3"]
    code, out, _ = run(*command, *["--method", "QuantileRecalibration()"], "--method", "Dressing()")
    assert code == 0
    assert "change of CRPS" in " ".join(out.split())


def test_columns_in_another_order_are_matched_by_name(run, there, data):
    run("recalibrate", DIGITS, *COLUMNS, "--method", "VectorScaling()", "--save", "map.json")
    frame = polars.read_csv(DIGITS)
    frame.select(reversed(frame.columns)).write_csv("turned.csv")
    for source, out in ((DIGITS, "a.csv"), ("turned.csv", "b.csv")):
        assert run("recalibrate", source, "--y-pred", "p_*", "--apply", "map.json", "--out", out)[0] == 0
    one, other = polars.read_csv("a.csv"), polars.read_csv("b.csv")
    assert other.columns == list(reversed(one.columns))
    assert one.equals(other.select(one.columns))


def test_scores_where_the_truth_is_there(run, there, data):
    run("recalibrate", DIGITS, *COLUMNS, "--method", "Temperature()", "--save", "map.json")
    command = ["recalibrate", DIGITS, *COLUMNS, "--apply", "map.json", "--out", "better.npz"]
    code, out, _ = run(*command, "--format", "json", "--report", "page.html")
    assert code == 0
    shown = json.loads(out)
    better = load_map("map.json")(data.y_pred)
    assert shown["scores"]["after"][0] == pytest.approx(LogLoss()(data.y_true, better).value, rel=1e-12)
    assert shown["columns"] == [f"p_{i}" for i in range(10)]
    assert "a fair comparison if the map was not fitted" in (there / "page.html").read_text(encoding="utf-8").lower()


def test_rows_without_a_value_are_left_out_of_maps_and_of_what_is_written(run, there):
    rows = "".join(f"{i};{'ja' if i % 3 else 'nein'};{10 + i % 70},5\n" for i in range(60))
    (there / "train.csv").write_bytes(f"größe;tot;p\n{rows}60;;50\n61;ja;\n".encode("latin-1"))
    read = ["--encoding", "latin-1", "--missing", "drop", "--scale", "percent"]
    named = ["--y-true", "tot", "--pos-label", "ja"]
    code, out, err = run(
        "recalibrate", "train.csv", *named, *read, "--method", "Platt()", "--save", "map.json", "--force"
    )
    assert code == 0, err
    usage = shlex.split(out.splitlines()[-1])[1:]
    (there / "NEW.csv").write_bytes((there / "train.csv").read_bytes())
    for more in ([], named):
        code, _, err = run(*usage, *more)
        assert code == 0, err
        assert "without a value in" in err
        ids = [line.partition(",")[0] for line in (there / "BETTER.csv").read_text().splitlines()[1:]]
        assert ids == [str(i) for i in range(61)]  # the row without a truth has a prediction


def test_a_truth_that_cannot_be_used_is_left_alone_unless_asked_for(run, there):
    (there / "x.csv").write_text("label,p\nmaybe,0.2\nno,0.9\n")
    (there / "train.csv").write_text("label,p\n" + "1,0.8\n0,0.3\n1,0.6\n0,0.5\n" * 5)
    assert run("recalibrate", "train.csv", "--method", "Temperature()", "--save", "map.json", "--force")[0] == 0
    command = ["recalibrate", "x.csv", "--apply", "map.json", "--out", "better.csv"]
    code, out, _ = run(*command)
    assert code == 0
    assert "note: no scores, as the truth cannot be used: the truth holds 'maybe', 'no'" in out
    code, _, err = run(*command, "--y-true", "label")
    assert code == 2
    assert "--pos-label" in err
    code, _, err = run(*command, "--report", "page.html")
    assert (code, err) == (2, "calibrant: --report needs the truth: say which column of x.csv has it with --y-true\n")


@pytest.fixture
def files(there, run):
    """A map of three named classes, and what may be wrong with what it meets."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    frame = polars.DataFrame({"y": ["a", "b", "c", "a"] * 10, **dict(zip(["p_a", "p_b", "p_c"], p.T, strict=True))})
    frame.write_csv("three.csv")
    assert run("recalibrate", "three.csv", "--method", "Temperature()", "--save", "map.json", "--force")[0] == 0
    frame.rename({"p_c": "p_d"}).write_csv("other.csv")
    frame.select("y", "p_a", p_b=1 - frame["p_a"]).write_csv("two.csv")
    frame.head(3).write_csv("few.csv")
    frame.with_columns(p_a=float("nan")).write_csv("nan.csv")
    frame.with_columns(y=polars.Series(["z"] * 40)).write_csv("labels.csv")
    frame.drop("p_a", "p_b", "p_c").write_csv("bare.csv")
    good = (there / "map.json").read_text()
    for name, text in {
        "cut": good[:50],
        "version": good.replace("calibrant/1", "calibrant/9"),
        "estimate": good.replace('"recalibration"', '"estimate"', 1),
        "cold": good.replace('"temperature": ', '"temperature": -'),
        "missing": good.replace('"temperature"', '"temper"'),
    }.items():
        (there / f"{name}.json").write_text(text)


APPLY = ["--apply", "map.json", "--out", "out.csv"]
BAD = {
    "wrong number of classes": (["two.csv", *APPLY], "fitted on 3 classes and y_pred has 2"),
    "other names": (["other.csv", *APPLY], "fitted on the classes 'a', 'b', 'c' and y_pred has 'd'"),
    "another family": (
        ["three.csv", "--predict", "Normal(p_a, 1)", *APPLY],
        "fitted on Categorical predictions; got Normal",
    ),
    "cut off": (["three.csv", "--apply", "cut.json", "--out", "o.csv"], "cut.json is no recalibration map"),
    "another version": (["three.csv", "--apply", "version.json", "--out", "o.csv"], "format 'calibrant/9'"),
    "another kind": (["three.csv", "--apply", "estimate.json", "--out", "o.csv"], "not written by Recalibration.save"),
    "bad number": (["three.csv", "--apply", "cold.json", "--out", "o.csv"], "temperature must be a positive number"),
    "missing field": (["three.csv", "--apply", "missing.json", "--out", "o.csv"], "Tempering has the fields"),
    "no map": (["three.csv", "--apply", "nowhere.json", "--out", "o.csv"], "nowhere.json"),
    "few rows": (["few.csv"], "folds must not exceed the number of rows; got 5 folds of 3 rows"),
    "one fold": (["three.csv", "--folds", "1"], "--folds must be a whole number of at least 2; got 1"),
    "no folds": (["three.csv", "--folds", "0"], "--folds must be a whole number of at least 2; got 0"),
    "no columns": (["bare.csv"], "bare.csv has columns y: say which with --y-pred"),
    "no truth": (["three.csv", "--y-true", "yy"], "no column 'yy' (did you mean 'y'?)"),
    "unknown method": (["three.csv", "--method", "Temprature()"], "did you mean 'Temperature'?"),
    "bad setting": (["three.csv", "--method", "MatrixScaling(-1)"], "penalty"),
    "method of two classes": (["three.csv", "--method", "Platt()"], "use OneVsRest(Platt())"),
    "method of numbers": (["three.csv", "--method", "VarianceScaling()"], "got Categorical predictions"),
    "not a number": (["nan.csv"], "has missing values in"),
    "unknown labels": (["labels.csv"], "the truth holds 'z', and no column is called after it"),
    "negative seed": (["three.csv", "--seed", "-1"], "--seed must be a whole number of at least 0; got -1"),
    "nowhere to write": (["three.csv", "--apply", "map.json"], "--apply needs --out"),
    "unknown ending": (["three.csv", "--apply", "map.json", "--out", "o.xlsx"], "cannot write .xlsx"),
    "no folder": (["three.csv", "--save", "no/where.json"], "--save 'no/where.json': there is no folder 'no'"),
    "over the data": (["three.csv", "--apply", "map.json", "--out", "./three.csv"], "--out 'three.csv' is in use"),
    "over the map": (["three.csv", "--apply", "map.json", "--out", "map.json"], "--out 'map.json' is in use"),
    "page over the data": (["three.csv", "--report", "three.csv"], "--report 'three.csv' is in use"),
    "twice the same": (["three.csv", "--save", "x.json", "--report", "x.json"], "--report 'x.json' is in use"),
    "out without a map": (["three.csv", "--out", "o.csv"], "first --save map.json, then --apply map.json --out FILE"),
    "level without a map": (["three.csv", "--level", "0.5"], "--level means nothing without --apply"),
    "method with a map": (["three.csv", *APPLY, "--method", "Platt()"], "--method means nothing with --apply"),
    "folds with a map": (["three.csv", *APPLY, "--folds", "3"], "--folds means nothing with --apply"),
    "slices": (["three.csv", "--by", "y"], "Unknown option"),
    "level of classes": (["three.csv", *APPLY, "--level", "0.5"], "Categorical predictions have no quantiles"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(run, files, there, case):
    before = {path.name: path.read_bytes() for path in there.iterdir()}
    arguments, message = BAD[case]
    code, out, err = run("recalibrate", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("calibrant: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path.name: path.read_bytes() for path in there.iterdir()} == before
