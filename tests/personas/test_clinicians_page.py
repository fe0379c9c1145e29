"""A clinician with a spreadsheet of a hospital: semicolons, decimal commas, patients without an outcome, and a page for colleagues."""

import json
import shlex

import numpy as np
import pytest

from calibrant.recalibration import load_map

for library in ("cyclopts", "polars", "matplotlib", "jinja2"):
    pytest.importorskip(library)


@pytest.fixture
def cohort(tmp_path):
    """600 patients as a spreadsheet saves them; twelve have no outcome, and risks are too low by 0.8 on the log-odds."""
    rng = np.random.default_rng(1)
    log_odds = rng.normal(-2.2, 1, 600)
    died = rng.random(600) < 1 / (1 + np.exp(-log_odds - 0.8))
    lines = ["patient;ward;died;risk"]
    for i in range(600):
        outcome = "" if i % 50 == 7 else "yes" if died[i] else "no"
        risk = f"{1 / (1 + np.exp(-log_odds[i])):.4f}".replace(".", ",")
        lines.append(f"{i};{'north' if i % 3 else 'south'};{outcome};{risk}")
    (tmp_path / "cohort.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


LINE = "calibrant report cohort.csv --y-true died --y-pred risk --pos-label yes --by ward --n-resamples 99"


def test_the_file_is_read_when_the_options_that_it_is_told_are_given(cohort, typed):
    code, said = typed(f"{LINE} --out page.html")
    assert code == 2
    assert "--missing drop" in said
    code, said = typed(f"{LINE} --missing drop --out page.html")
    assert code == 0, said
    assert "they are too low" in said
    assert "12 rows of 600 left out" in said
    page = (cohort / "page.html").read_text("utf-8")
    assert "588 rows" in page
    assert "12 rows of 600 left out" in page


def test_the_page_has_what_clinical_studies_report(cohort, typed):
    code, said = typed(f"{LINE} --missing drop --out page.json")
    assert code == 0, said
    numbers = {x["key"]: x for x in json.loads((cohort / "page.json").read_text("utf-8"))["numbers"]}
    ratio, intercept, slope, ici, auc = (numbers[key] for key in ("ratio", "intercept", "slope", "ici", "auc"))
    assert ratio["interval"]["low"] > 1.2
    assert 0.2 < intercept["interval"]["low"] < 0.8 < intercept["interval"]["high"] < 1.2
    assert slope["interval"]["low"] < 1 < slope["interval"]["high"]
    assert auc["interval"]["low"] < auc["value"] < auc["interval"]["high"] < 1
    assert ici["interval"] is None
    assert ici["withheld"] == "the bias of a fitted curve is not known"
    for words in ("Observed over expected", "Calibration slope", "ICI", "AUC"):
        assert words in said


def test_the_advice_of_the_page_works_when_pasted(cohort, typed):
    code, said = typed(f"{LINE} --missing drop --out page.json")
    assert code == 0, said
    command = json.loads((cohort / "page.json").read_text("utf-8"))["advice"]["command"]
    code, said = typed(command)
    assert code == 0, said
    words = shlex.split(command)
    load_map(words[words.index("--save") + 1])
