import json
import re
import sys

import pytest

from calibrant import io

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

DIGITS = [str(io.example("digits")), "--y-true", "digit", "--y-pred", "p_*"]


def test_reproducing_a_study(run, monkeypatch, tmp_path):
    from calibrant.lab.papers import estimator_error

    few = estimator_error.study.__kwdefaults__ | {"sizes": (4,)}
    monkeypatch.setattr(estimator_error.study, "__kwdefaults__", few)
    code, out, _ = run("reproduce", "estimator-error", "--data-sets", "100")
    assert code == 0
    assert "largest difference: " in out
    code, out, _ = run("reproduce", "estimator-error", "--data-sets", "100", "--format", "json")
    assert code == 0
    assert len(json.loads(out)["error_z"]) == 16
    folders = ["--out", str(tmp_path / "docs"), "--keep", str(tmp_path)]
    again = run("reproduce", "estimator-error", "--data-sets", "100", "--format", "json", *folders, "--workers", "2")
    assert again[:2] == (0, out)
    page = (tmp_path / "docs" / "estimator-error.md").read_text()
    assert page.startswith("# Errors and variances")
    assert page.count("| uncalibrated |") == 8
    assert (tmp_path / "docs" / "estimator-error.svg").read_text().startswith("<?xml")
    monkeypatch.setattr(estimator_error, "_repeat", pytest.fail)  # all cells were kept
    assert run("reproduce", "estimator-error", "--data-sets", "100", "--format", "json", *folders)[:2] == (0, out)
    monkeypatch.undo()
    monkeypatch.setattr(estimator_error.study, "__kwdefaults__", few)
    monkeypatch.setattr(estimator_error, "BOUND", 0.01)
    assert run("reproduce", "estimator-error", "--data-sets", "100")[0] == 1
    code, _, err = run("reproduce", "estimator-error", "--data-sets", "3")
    assert (code, err) == (2, "calibrant: --data-sets must be a whole number of at least 100; got 3\n")


def test_the_papers_keep_to_one_contract():
    from calibrant.lab.papers import (
        berta,
        berta_coverage,
        estimator_error,
        popordanoska,
        rejection_rates,
        roelofs,
        widmann,
    )

    for paper in (berta, berta_coverage, estimator_error, popordanoska, rejection_rates, roelofs, widmann):
        assert {"seed", "engine", "folder"} <= set(paper.study.__kwdefaults__)
        assert paper.BOUND > 3 or (paper.BOUND >= 1 and paper.UNIT.startswith("parts"))
        assert callable(paper.summary)
        assert callable(paper.figure)


def test_sections_of_a_page(run, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from calibrant.lab.papers import widmann

    few = {"iterations": (10,), "n_resamples": 99, "published_resamples": 999, "exact_resamples": 99}
    monkeypatch.setattr(widmann.study, "__kwdefaults__", widmann.study.__kwdefaults__ | few)
    code, out, err = run("reproduce", "widmann", "--out", str(tmp_path))
    assert (code, err) == (1, "")  # after ten iterations no curve has turned
    assert "largest difference: " in out
    assert "iteration = 10" in out
    page = (tmp_path / "widmann.md").read_text()
    assert page.startswith("# Calibration of regressions")
    assert page.count("\n## ") == 5
    for name in ("widmann", "widmann-figure-12", "widmann-figure-1", "widmann-ensembles"):
        assert f"]({name}.svg)" in page
        assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")
    assert {path.stem for path in tmp_path.glob("*.svg")} == set(re.findall(r"\]\((.*)\.svg\)", page))


def test_a_study_with_data_of_its_own_takes_no_number_of_them(run):
    code, _, err = run("reproduce", "widmann", "--data-sets", "500")
    expected = "calibrant: --data-sets goes with simulations, and widmann has data of its own; leave it out\n"
    assert (code, err) == (2, expected)


def test_without_torch_networks_are_not_trained(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run("reproduce", "widmann")
    assert (code, err) == (2, "calibrant: training networks needs torch: pip install 'calibrant[torch]'\n")


def test_simulating_data_like_a_file(run):
    options = ["--data-sets", "20", "--size", "200", "--estimator", "ECE(bins=Sweep(), norm=2)"]
    code, out, err = run("simulate", *DIGITS, *options)
    assert (code, err) == (0, "")
    assert "Data like these: ScoreWorld(scores=BetaScores(alpha=2.5" in out
    assert "ECE(bins=Sweep(), norm=2)" in out
    code, out, _ = run("simulate", *DIGITS, *options, "--format", "json", "--workers", "2")
    data = json.loads(out)
    assert code == 0
    assert data["curves"]["model"][0] == "logflip_logflip_b0_b1"
    assert data["bias"]["n"] == [200]
    assert abs(data["bias"]["bias"][0]) < 0.05
    assert data == json.loads(run("simulate", *DIGITS, *options, "--format", "json")[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data-sets", "1"], "--data-sets must be a whole number of at least 10; got 1"),
        (["--size", "1"], "--size must be a whole number of at least 2; got 1"),
        (["--workers", "0"], "--workers must be a whole number of at least 1; got 0"),
        (["--estimator", "ECEE()"], "there is no 'ECEE'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(run, options, message):
    code, out, err = run("simulate", *DIGITS, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_one_outcome_alone_cannot_be_fitted(run, tmp_path):
    path = tmp_path / "ones.csv"
    path.write_text("y,p\n1,0.5\n1,0.7\n1,0.9\n")
    code, _, err = run("simulate", str(path), "--y-true", "y", "--y-pred", "p")
    assert code == 2
    assert "y_true must hold both outcomes" in err
