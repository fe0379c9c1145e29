"""``--certify``: the same answer in every command, by the interval that is shown, and a gate."""

import json

import numpy as np
import pytest

pytest.importorskip("rich")

COLUMNS = ("--y-true", "y", "--y-pred", "p")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A thousand calibrated rows, with a column of weights and one of sites."""
    rng = np.random.default_rng(3)
    p = rng.random(1000).round(4)
    rows = np.c_[rng.random(1000) < p, p, np.r_[100.0, np.ones(999)], np.arange(1000) % 2]
    path = tmp_path_factory.mktemp("certify") / "rows.csv"
    np.savetxt(path, rows, delimiter=",", header="y,p,w,site", comments="")
    return str(path)


def commands(file, out):
    few = ("--n-resamples", "99")
    return {
        "report": ("report", file, *COLUMNS, "--out", str(out), *few),
        "test": ("test", file, *COLUMNS, *few),
        "estimate": ("estimate", file, *COLUMNS),
    }


@pytest.mark.parametrize("command", ["report", "test", "estimate"])
def test_every_command_gives_one_answer(run, file, tmp_path, command):
    words = commands(file, tmp_path / "page.html")[command]
    code, out, err = run(*words, "--certify", "0.1", "--format", "json")
    found = json.loads(out)
    certificate = found["certificate"] if command == "report" else found["certificates"][0]
    assert (code, err) == (0, "")
    assert certificate["certified"]
    assert certificate["confidence_level"] == 0.975
    estimate = json.loads(run("estimate", file, *COLUMNS, "--format", "json")[1])["estimates"][0]
    assert certificate["upper"] == estimate["interval"]["high"]  # no two limits
    assert certificate["estimate"]["interval"]["high"] == certificate["upper"]
    code, out, err = run(*words, "--certify", "0.02")
    assert code == 1
    assert "Not certified to within 2 points" in out.replace("\n", " ")
    assert "more rows" in " ".join(out.replace("│", " ").split())
    assert err == (
        "gate failed: ECE(bins=EqualMass(n_bins=15), lens=PositiveClass()) is not certified to within 2 points\n"
    )
    if command != "report":  # whose pages have tests of their own
        code, out, err = run(*words, "--certify", "0.1", "--format", "markdown")
        assert code == 0
        assert "Certified to within 10 points" in out


def test_gates_and_certificates_both_count(run, file):
    assert run("estimate", file, *COLUMNS, "--certify", "0.1", "--fail-if", "ECE > 0")[0] == 1
    assert run("estimate", file, *COLUMNS, "--certify", "0.02", "--fail-if", "ECE > 0.9")[0] == 1
    assert run("estimate", file, *COLUMNS, "--certify", "0.1", "--fail-if", "ECE > 0.9")[0] == 0


def test_estimators_that_are_named_are_certified(run, file):
    both = ("--estimator", "Brier()", "--estimator", "MonotoneECE()", "--estimator", "DebiasedECE(EqualMass(10))")
    code, out, _ = run("estimate", file, *COLUMNS, *both, "--certify", "0.05", "--format", "json")
    found = json.loads(out)["certificates"]
    assert [c["what"].split(" of")[0] for c in found] == ["mean gap", "root mean square gap"]
    assert code == 1 - all(c["certified"] for c in found)


@pytest.mark.parametrize("command", ["report", "test", "estimate"])
@pytest.mark.parametrize("margin", ["0", "1", "2", "-0.1", "nan"])
def test_margins_lie_between_0_and_1(run, file, tmp_path, command, margin):
    code, _, err = run(*commands(file, tmp_path / "page.html")[command], "--certify", margin)
    assert code == 2
    assert "--certify must lie strictly between 0 and 1, such as 0.02 for 2 points; got" in err
    assert not (tmp_path / "page.html").exists()


def test_what_cannot_be_certified_is_refused(run, file):
    code, _, err = run("estimate", file, *COLUMNS, "--estimator", "Brier()", "--certify", "0.05")
    assert code == 2
    assert "--certify 0.05: Brier() has no upper limit to certify; ECE(EqualMass(15)), DebiasedECE()" in err
    code, _, err = run("report", file, file, *COLUMNS, "--certify", "0.05")
    assert code == 2
    assert "--certify takes one model: ask it of each by itself" in err


def test_heavy_rows_tell_as_much_as_few(run, file):
    code, out, _ = run("estimate", file, *COLUMNS, "--sample-weight", "w", "--certify", "0.6", "--format", "json")
    (found,) = json.loads(out)["certificates"]
    assert found["fewest"] == pytest.approx(5 * 1000 / (1099**2 / (100**2 + 999)), abs=4)
    assert (code, found["certified"]) == (0, True)


def test_few_rows_are_a_failed_gate_and_no_error(run, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("y,p\n" + "0,0.001\n" * 100, "utf-8")
    code, out, err = run("estimate", str(path), *COLUMNS, "--certify", "0.02")
    assert code == 1
    assert "Not certified to within 2 points" in out
    assert err.startswith("gate failed: ")


@pytest.mark.parametrize("command", ["report", "test", "estimate"])
def test_rows_that_err_alike_are_not_certified(run, tmp_path, command):
    """Limits are for independent rows: a gate does not pass where the page says that they mislead."""
    rng = np.random.default_rng(0)
    text = np.repeat(np.arange(200), 5)
    p = rng.random(1000).round(4)
    y = np.repeat(rng.random(200), 5) < p
    np.savetxt(tmp_path / "rows.csv", np.c_[y, p, text], delimiter=",", header="y,p,text_id", comments="")
    words = commands(str(tmp_path / "rows.csv"), tmp_path / "page.html")[command]
    code, out, err = run(*words, "--certify", "0.2")
    said = " ".join(out.replace("│", " ").split())
    assert code == 1
    assert "Not certified to within 20 points: errors of rows are alike, and limits are for independent rows." in said
    assert "gate failed" in err
    assert "MISLEAD" in said + err
