import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibrant import ECE, SKCE, EqualMass, ExactTest, Normal, TopLabel, __version__, cli, io
from calibrant.kernels import Exponential, Gaussian

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

DIGITS = str(io.example("digits"))
COLUMNS = ["--y-true", "digit", "--y-pred", "p_*"]


@pytest.fixture
def data():
    return io.read(DIGITS, y_true="digit", y_pred="p_*")


def test_demo_writes_a_page_and_prints_a_summary(run, tmp_path):
    code, out, err = run("demo", "--out", str(tmp_path / "demo.html"))
    assert (code, err) == (0, "")
    assert "the model is over-confident" in " ".join(out.replace("│", " ").split())
    assert "calibrant report FILE" in out
    assert "handwritten digits" in (tmp_path / "demo.html").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("options", [("--out", "a.csv"), ("--out", "b.csv"), ("--out", "x.html", "--pdf", "x.html")])
def test_a_report_is_not_written_over_what_is_read_or_twice(run, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    content = "y,p\n1,0.8\n0,0.3\n"
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(content)
    code, _, err = run("report", "a.csv", "b.csv", *options)
    assert code == 2
    assert "is in use by this very command: choose another name" in " ".join(err.split())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.csv": content, "b.csv": content}


def test_estimate_gives_the_library_s_numbers(run, data):
    code, out, _ = run(
        "estimate", DIGITS, *COLUMNS, "--estimator", "ECE(EqualMass(5), 2, TopLabel())", "--format", "json"
    )
    assert code == 0
    estimate = json.loads(out)["estimates"][0]
    assert estimate["value"] == ECE(EqualMass(5), 2, TopLabel())(data.y_true, data.y_pred).value


def test_estimate_without_a_choice_takes_the_sensible_set(run):
    _, out, _ = run("estimate", DIGITS, *COLUMNS, "--format", "json")
    assert [e["name"] for e in json.loads(out)["estimates"]] == ["ECE", "SKCE", "Brier", "LogLoss"]


def test_estimate_as_table_with_slices_and_intervals(run):
    code, out, err = run("estimate", DIGITS, *COLUMNS, "--estimator", "Brier()", "--by", "ink", "--interval")
    assert (code, err) == (0, "")
    for word in ("Brier()", "95 % interval", "heavy", "light", "medium", "low", "high"):
        assert word in out


def test_an_interval_that_does_not_hold_is_withheld_with_its_reason(run):
    """It ended at the estimate: 0.03674, 0 to 0.03674."""
    options = ["--estimator", "ICI(lens=TopLabel())", "--estimator", "ECE(lens=TopLabel())", "--interval"]
    code, out, err = run("estimate", DIGITS, *COLUMNS, *options)
    assert (code, err) == (0, "")
    assert "the bias of a fitted curve is not known" in " ".join(out.split())
    first, second = [line for line in out.splitlines() if line.startswith(("ICI(", "ECE("))][:2]
    assert " to " not in first
    assert " to " in second


def test_test_gives_the_library_s_pvalue(run, data):
    options = ["--test", "ExactTest(ECE(lens=TopLabel()), 49)", "--seed", "3", "--format", "json"]
    code, out, _ = run("test", DIGITS, *COLUMNS, *options, "--by", "ink")
    assert code == 0
    expected = ExactTest(ECE(lens=TopLabel()), 49)(data.y_true, data.y_pred, rng=3)
    assert json.loads(out)["pvalue"] == expected.pvalue
    assert json.loads(out)["slices"]["ink"]["group"] == ["heavy", "light", "medium"]


def test_test_prints_the_result(run, digits):
    code, out, _ = run("test", digits, *COLUMNS, "--n-resamples", "99", "--by", "ink")
    assert code == 0
    assert out.startswith("Not calibrated at the level 0.05.\np-value = 0.01")
    assert "by ink" in out


def test_many_rows_have_fewer_resamples_and_are_told_so(run, digits, monkeypatch):
    monkeypatch.setattr("calibrant.planning.affordable.TEST_WORK", 1)
    monkeypatch.setattr("calibrant.cli.commands.USUAL_RESAMPLES", 299)
    _, out, _ = run("test", digits, *COLUMNS)
    assert "199 resamples, as rows are many: --n-resamples 299 asks for more" in out
    assert "rows are many" not in run("test", digits, *COLUMNS, "--n-resamples", "49")[1]


def test_report_on_a_file(run, tmp_path, digits):
    page = tmp_path / "page.html"
    code, out, _ = run(
        "report", digits, *COLUMNS, "--by", "ink", "--out", str(page), "--n-resamples", "99", "--title", "Mine"
    )
    assert code == 0
    assert "Mine" in out
    assert "By ink" in page.read_text(encoding="utf-8")


def test_report_as_json_prints_nothing_else(run, tmp_path, digits):
    _, out, _ = run(
        "report", digits, *COLUMNS, "--out", str(tmp_path / "x.json"), "--n-resamples", "99", "--format", "json"
    )
    assert json.loads(out)["problem"] == "multi-class"


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("ECE > 0.01", 1),
        ("ECE > 0.5", 0),
        ("pvalue < 0.05", 1),
        ("pvalue < 0.0001", 0),
        ("Brier > 1", 0),
        ("LogLoss > 0.3", 1),
    ],
)
def test_report_gates(run, tmp_path, digits, gate, code):
    found, _, err = run(
        "report", digits, *COLUMNS, "--out", str(tmp_path / "x.json"), "--n-resamples", "99", "--fail-if", gate
    )
    assert found == code
    assert ("gate failed" in err) == bool(code)


def test_estimate_and_test_gates(run, digits):
    assert run("estimate", digits, *COLUMNS, "--fail-if", "ECE > 0.01")[0] == 1
    assert run("estimate", digits, *COLUMNS, "--fail-if", "ECE > 0.5", "--fail-if", "Brier > 0.01")[0] == 1
    assert (
        run("estimate", digits, *COLUMNS, "--estimator", "ECE(norm=2, lens=TopLabel())", "--fail-if", "ECE > 0.5")[0]
        == 0
    )
    assert run("test", digits, *COLUMNS, "--n-resamples", "99", "--fail-if", "pvalue < 0.05")[0] == 1


BAD = {
    "unknown column": (["estimate", DIGITS, "--y-true", "digt"], "has no column 'digt' (did you mean 'digit'?)"),
    "missing file": (["report", "nowhere.csv"], "there is no file 'nowhere.csv'"),
    "unknown command": (["repport", DIGITS], 'Unknown command "repport"'),
    "unknown option": (["report", DIGITS, "--bye", "x"], "Unknown option"),
    "no file": (["report"], "FILE"),
    "not a number": (["report", DIGITS, "--seed", "x"], "--seed"),
    "unknown estimator": (["estimate", DIGITS, *COLUMNS, "--estimator", "EEC()"], "(did you mean 'ECE'?)"),
    "not an estimator": (["estimate", DIGITS, *COLUMNS, "--estimator", "EqualMass(3)"], "is not an estimator"),
    "not a test": (["test", DIGITS, *COLUMNS, "--test", "ECE()"], "write 'ExactTest(ECE())'"),
    "a test as estimator": (["estimate", DIGITS, *COLUMNS, "--estimator", "ExactTest(ECE())"], "is not an estimator"),
    "a lens in a test": (
        ["test", DIGITS, *COLUMNS, "--test", "ExactTest(TopLabel())"],
        "TopLabel() is not an estimator",
    ),
    "two slicing columns": (["test", DIGITS, *COLUMNS, "--by", "ink,digit"], "--by takes one column at a time"),
    "both ways": (["test", DIGITS, *COLUMNS, "--predict", "Normal(p_0, p_1)"], "leave out --y-pred"),
    "bad gate": (["estimate", DIGITS, *COLUMNS, "--fail-if", "ECE is big"], "cannot be read: write it as"),
    "unknown gate": (["estimate", DIGITS, *COLUMNS, "--fail-if", "EEC > 1"], "there is no 'EEC'"),
    "no folder": (
        ["report", DIGITS, *COLUMNS, "--out", "no/such/folder/x.html"],
        "there is no folder 'no/such/folder'",
    ),
    "no resamples": (
        ["report", DIGITS, *COLUMNS, "--n-resamples", "0"],
        "n_resamples must be a whole number of at least 99",
    ),
    "negative seed": (["test", DIGITS, *COLUMNS, "--seed", "-1"], "rng must be a non-negative integer"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(run, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD[case]
    code, out, err = run(*arguments)
    assert code == 2
    assert out == "" or case == "unknown gate"  # known only once the numbers are
    assert err.startswith("calibrant: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_bug_shows_itself_and_uses_no_gate_s_code(run, monkeypatch):
    from calibrant.cli import commands

    monkeypatch.setattr(commands, "default_set", lambda predictions: 1 / 0)
    code, _, err = run("estimate", DIGITS, *COLUMNS)
    assert code == 70
    assert "ZeroDivisionError" in err


def test_truncated_parquet_from_the_shell(tmp_path):
    import polars

    path = tmp_path / "x.parquet"
    polars.DataFrame({"y": [0, 1], "p": [0.2, 0.9]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:60])
    result = subprocess.run([sys.executable, "-m", "calibrant", "estimate", str(path)], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("calibrant: x.parquet cannot be read as parquet")
    assert len(result.stderr.splitlines()) == 1


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "calibrant demo" in out
    assert run("--version")[1].strip() == __version__


def test_without_the_extra_the_remedy_is_named(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("calibrant.cli.") or name.split(".")[0] == "cyclopts"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    with pytest.raises(SystemExit) as left:
        cli.main(["demo"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "calibrant: the command line needs cyclopts: pip install 'calibrant[cli]'\n"


def test_names_with_brackets_are_printed_as_they_are(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,p,[bold]site\n1,0.9,[red]a\n0,0.2,<b>\n1,0.8,[red]a\n0,0.3,<b>\n")
    code, out, err = run("estimate", str(path), "--by", "[bold]site")
    assert (code, err) == (0, "")
    assert "[bold]site" in out
    assert "[red]a" in out


def test_real_networks_in_npz(network, run):
    name, y, p = network
    path = Path(__file__).parents[3] / "shared" / "data" / f"{name}.npz"
    code, out, _ = run("estimate", str(path), "--estimator", "ECE(lens=TopLabel())", "--format", "json")
    assert code == 0
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(
        ECE(lens=TopLabel())(y, p.astype(np.float64)).value, rel=1e-6
    )


def test_kernel_errors_of_regression_files(run, tmp_path, rng):
    mu, sigma = rng.normal(size=60), rng.uniform(0.5, 2, 60)
    y = mu + sigma * rng.normal(size=60)
    path = tmp_path / "forecasts.csv"
    np.savetxt(path, np.stack([y, mu, sigma], axis=1), delimiter=",", header="y,mu,sigma", comments="", fmt="%.17g")
    text = "SKCE(Exponential(1.0), Gaussian(1.0))"
    options = ["--y-true", "y", "--predict", "Normal(loc=mu, scale=sigma)", "--format", "json"]
    code, out, _ = run("estimate", str(path), "--estimator", text, *options)
    assert code == 0
    expected = SKCE(Exponential(1.0), Gaussian(1.0))(y, Normal(mu, sigma))
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(expected.value, rel=1e-12)
    assert json.loads(out)["estimates"][0]["route"] == "closed; plain"
    code, out, _ = run("test", str(path), "--n-resamples", "99", *options)
    assert code == 0
    assert json.loads(out)["pvalue"] > 0.01


def test_the_gate_of_a_test(run, tmp_path, rng):
    p = rng.random(300)
    for name, share in (("honest", p), ("boastful", 0.3 + 0.4 * p)):
        y = (rng.random(300) < share).astype(int)
        np.savetxt(
            tmp_path / f"{name}.csv", np.stack([y, p], axis=1), delimiter=",", header="y,p", comments="", fmt="%g"
        )
    command = ["--n-resamples", "99", "--gate", "--alpha", "0.02"]
    code, out, err = run("test", str(tmp_path / "honest.csv"), *command)
    assert (code, err) == (0, "")
    assert out.startswith("No evidence against calibration at the level 0.02.")
    code, out, err = run("test", str(tmp_path / "boastful.csv"), *command, "--test", "AggregatedTest(n_resamples=99)")
    assert code == 1
    assert err.startswith("gate failed: pvalue = 0.01 <= 0.02")
    assert "3 statistics" in out
    assert run("test", str(tmp_path / "boastful.csv"), "--n-resamples", "99")[0] == 0  # without a gate
    code, _, err = run("test", str(tmp_path / "honest.csv"), "--alpha", "2")
    assert (code, err) == (2, "calibrant: --alpha must lie strictly between 0 and 1; got 2.0\n")


def test_report_prints_a_pdf_where_there_is_a_browser(run, tmp_path, digits, monkeypatch):
    from calibrant.reports.render import pdf

    paper = tmp_path / "paper.pdf"
    words = ["report", digits, *COLUMNS, "--out", str(tmp_path / "x.html"), "--pdf", str(paper), "--n-resamples", "99"]
    monkeypatch.setattr(pdf, "find_browser", lambda: None)
    code, _, err = run(*words)
    assert code == 2
    assert "a PDF is printed by Chromium, Chrome or Edge, and none was found" in err
    assert not (tmp_path / "x.html").exists()  # said before the work is done
    monkeypatch.setattr(pdf, "find_browser", lambda: "browser")
    monkeypatch.setattr(pdf, "_print", lambda browser, page, paper: paper.write_bytes(page.read_bytes()))
    assert run(*words)[0] == 0
    assert paper.read_bytes() == (tmp_path / "x.html").read_bytes()


def test_comments_for_pull_requests(run, tmp_path, digits):
    code, out, err = run("estimate", digits, *COLUMNS, "--estimator", "Brier()", "--by", "ink", "--format", "markdown")
    assert (code, err) == (0, "")
    assert out.startswith("| estimator | value |")
    assert "**Brier() by ink**" in out
    code, out, _ = run("test", digits, *COLUMNS, "--n-resamples", "99", "--by", "ink", "--format", "markdown")
    assert code == 0
    assert out.startswith("### ❌ Not calibrated at the level 0.05\n")
    page = str(tmp_path / "x.md")
    code, out, _ = run("report", digits, *COLUMNS, "--n-resamples", "99", "--out", page, "--format", "markdown")
    assert code == 0
    assert out == Path(page).read_text("utf-8")


def test_gates_on_forecasts(run, tmp_path, example_files):
    command = [
        "report",
        str(example_files / "diabetes.csv"),
        "--y-true",
        "progression",
        "--predict",
        "Normal(mu, sigma)",
    ]
    options = ["--n-resamples", "99", "--out", str(tmp_path / "x.json")]
    assert run(*command, *options, "--fail-if", "CRPS > 1000", "--fail-if", "PITError > 0.9")[0] == 0
    code, _, err = run(*command, *options, "--fail-if", "CRPS > 1")
    assert (code, err.startswith("gate failed: CRPS = ")) == (1, True)
    code, _, err = run(*command, *options, "--fail-if", "crsp > 1")
    assert (code, "did you mean 'CRPS'" in err) == (2, True)


def test_an_engine_changes_no_number(run, data):
    words = ["estimate", DIGITS, *COLUMNS, "--estimator", "SKCE()", "--format", "json"]
    (_, there, _), (_, here, _) = run(*words, "--engine", "threads:2"), run(*words)
    values = [json.loads(out)["estimates"][0]["value"] for out in (there, here)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    words = ["test", DIGITS, *COLUMNS, "--test", "ExactTest(ECE(lens=TopLabel()), 99)", "--format", "json"]
    (_, there, _), (_, here, _) = run(*words, "--engine", "threads:2"), run(*words)
    assert json.loads(there)["pvalue"] == json.loads(here)["pvalue"]


def test_an_engine_that_is_not_known_is_refused(run):
    code, _, err = run("estimate", DIGITS, *COLUMNS, "--engine", "theads:2")
    assert code == 2
    assert "engine 'theads:2' is not known; known: threads:8" in " ".join(err.split())


def test_gpus_that_are_not_there_are_refused(run, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    code, _, err = run("estimate", DIGITS, *COLUMNS, "--engine", "gpus")
    assert code == 2
    assert "torch sees no GPU" in " ".join(err.split())


@pytest.mark.parametrize(
    "words",
    [
        ("report", DIGITS, *COLUMNS, "--out", "page.docx"),
        ("recalibrate", DIGITS, *COLUMNS, "--report", "page.docx"),
        ("monitor", DIGITS, *COLUMNS, "--report", "page.docx"),
    ],
    ids=lambda words: words[0],
)
def test_a_page_is_no_document_of_another_program(run, words):
    code, _, err = run(*words)
    assert code == 2
    assert f"{words[-2]} must end in .html, .pdf, .md or .json; got 'page.docx'" in " ".join(err.split())
