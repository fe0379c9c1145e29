import json

import pytest

from calibrant import io

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

DIGITS = [str(io.example("digits")), "--y-true", "digit", "--y-pred", "p_*"]


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
