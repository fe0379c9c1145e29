"""A risk score from a hospital's export: semicolons, decimal commas, percentages, and rows without an outcome."""

import json

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

N = 300
rng = np.random.default_rng(3)
RISK = rng.uniform(0.02, 0.6, N).round(3)
DIED = np.where(rng.random(N) < RISK / 2, "ja", "nein")
DIED[rng.choice(N, 12, replace=False)] = "N/A"
WARD = np.array(["Süd", "Nord"])[rng.integers(0, 2, N)]


@pytest.fixture
def export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{d};{100 * r:.1f}".replace(".", ",") + f";{w}" for d, r, w in zip(DIED, RISK, WARD, strict=True)]
    (tmp_path / "export.csv").write_bytes(("verstorben;risiko;station\n" + "\n".join(rows) + "\n").encode("latin-1"))
    return tmp_path


def test_the_way_from_the_export_to_the_page(run, export):
    """Every step is what the line before said."""
    words = [
        "report",
        "export.csv",
        "--y-true",
        "verstorben",
        "--y-pred",
        "risiko",
        "--by",
        "station",
        "--n-resamples",
        "99",
    ]
    for advice, more in (
        ("--encoding latin-1", ["--encoding", "latin-1"]),
        ("first in row", ["--missing", "drop"]),
        ("--scale percent", ["--scale", "percent"]),
        ("--pos-label nein or --pos-label ja", ["--pos-label", "ja"]),
    ):
        code, _, err = run(*words)
        assert (code, err.count("\n")) == (2, 1), err
        assert advice in err
        words += more
    code, out, err = run(*words)
    assert code == 0, err
    assert "Note: column 'risiko' has decimal commas." in err
    assert "Note: 12 rows of 300 left out, without a value in 'verstorben' (12)." in err
    page = (export / "calibrant-report.html").read_text()
    assert "12 rows of 300 left out" in page
    assert "event: ja" in page
    assert "Nord" in page
    assert "Süd" in page
    assert "too high" in out


def test_the_numbers_are_those_of_the_rows_that_are_whole(run, export):
    words = [
        "--y-true",
        "verstorben",
        "--y-pred",
        "risiko",
        "--encoding",
        "latin-1",
        "--scale",
        "percent",
        "--pos-label",
        "ja",
    ]
    code, out, _ = run(
        "estimate", "export.csv", *words, "--missing", "drop", "--estimator", "CalibrationRatio()", "--format", "json"
    )
    kept = DIED != "N/A"
    assert code == 0
    expected = (DIED[kept] == "ja").sum() / RISK[kept].sum()
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(expected, rel=1e-6)
