"""A data scientist with a forest and labels that are words, in a notebook: what is shown, and what is said when it goes wrong."""

import json
import re
import subprocess
import sys

import pytest

for library in ("ipykernel", "nbclient", "sklearn", "pandas", "matplotlib"):
    pytest.importorskip(library)

RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(code) for code in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""

CELLS = {
    "a forest": """
        import numpy as np, pandas as pd
        from sklearn.datasets import make_classification
        from sklearn.ensemble import RandomForestClassifier
        numbers, event = make_classification(2000, 20, flip_y=0.3, random_state=0)
        X = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(20)]).assign(site=np.where(np.arange(2000) % 3, "north", "south"))
        y = pd.Series(np.array(["stays", "leaves"])[event], name="customer")
        features = list(X.columns[:20])
        forest = RandomForestClassifier(40, random_state=0).fit(X[features][:1000], y[:1000])
        P = forest.predict_proba(X[features][1000:])""",
    "names are missing": "from calibrant import ECE, EqualMass, evaluate, plots\nECE()(y[1000:], P)",
    "names": "error = ECE()(y[1000:], P, labels=forest.classes_, pos_label='leaves')\nerror",
    "a number": "print(f'{error:.1%}', round(error, 2), error > 0.05)",
    "wrong setting": "ECE(n_bins=10)",
    "right setting": "ECE(bins=EqualMass(10))(y[1000:], pd.DataFrame(P, columns=forest.classes_), pos_label='leaves').table.to_pandas()",
    "frame": "pd.DataFrame(error.table)[['predicted', 'observed']].round(2)",
    "picture": "plots.reliability(y[1000:], P, labels=forest.classes_, pos_label='leaves');",
    "their picture": """
        from sklearn.calibration import CalibrationDisplay
        CalibrationDisplay.from_estimator(forest, X[features][1000:], y[1000:]);""",
    "report": """
        from calibrant.sklearn import RecalibratedClassifier, evaluate_model, neg_l1_calibration_error
        report = evaluate_model(forest, X[features][1000:], y[1000:], by=X[["site"]][1000:], pos_label="leaves", n_resamples=199)
        report""",
    "repair": """
        better = RecalibratedClassifier(forest).fit(X[features][:1000], y[:1000])
        print(evaluate_model(better, X[features][1000:], y[1000:], n_resamples=199, advice=False).verdict.headline)""",
    "scores": """
        from sklearn.model_selection import cross_val_score
        print(cross_val_score(forest, X[features], y, scoring=neg_l1_calibration_error, cv=3).round(2))""",
}


@pytest.fixture(scope="module")
def notebook():
    cells = ["\n".join(line.removeprefix(8 * " ") for line in code.strip().splitlines()) for code in CELLS.values()]
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(cells), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(CELLS, json.loads(done.stdout.splitlines()[-1]), strict=True))


def read(outputs):
    """What a person reads of a cell: what is printed and shown, as text."""
    parts = [o["text"] if o["output_type"] == "stream" else o.get("data", {}).get("text/plain", "") for o in outputs]
    return "\n".join("".join(part) for part in parts)


def pictures(outputs):
    return sum("image/png" in o.get("data", {}) for o in outputs)


def page(outputs):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", "".join(outputs[-1]["data"]["text/html"])))


def test_nothing_else_goes_wrong(notebook):
    wrong = {name for name, outputs in notebook.items() if any(o["output_type"] == "error" for o in outputs)}
    assert wrong == {"names are missing", "wrong setting"}
    assert not [o["text"] for outputs in notebook.values() for o in outputs if o.get("name") == "stderr"]


def test_missing_names_are_asked_for_and_the_remedy_works(notebook):
    (error,) = notebook["names are missing"]
    assert error["ename"] == "InputError"
    assert "labels=model.classes_" in error["evalue"]
    assert "positive class (leaves)" in read(notebook["names"])
    assert "positive class (leaves)" in page(notebook["names"])


def test_a_result_is_a_number(notebook):
    percent, rounded, larger = read(notebook["a number"]).split()
    assert re.fullmatch(r"\d+\.\d%", percent)
    assert (float(rounded), larger) == (pytest.approx(float(percent[:-1]) / 100, abs=0.006), "True")


def test_bins_are_spelt_for_her_and_tables_are_frames(notebook):
    (error,) = notebook["wrong setting"]
    assert error["evalue"].startswith("ECE takes no n_bins: write bins=EqualWidth(10), or bins=EqualMass(10)")
    shown = read(notebook["right setting"])
    assert shown.splitlines()[0].split() == ["lower", "upper", "weight", "predicted", "observed", "gap"]
    assert read(notebook["frame"]).splitlines()[0].split() == ["predicted", "observed"]


def test_pictures_are_shown_hers_and_theirs(notebook):
    assert [pictures(notebook[name]) for name in ("picture", "their picture")] == [1, 1]


def test_the_report_says_what_is_wrong_and_where(notebook):
    shown = page(notebook["report"])
    assert "Do not take these probabilities at face value: they are too " in shown
    assert "1,000 rows · binary · event: leaves" in shown
    assert "Calibration of RandomForestClassifier" in shown
    assert "By site" in shown


def test_the_wrapped_forest_can_be_believed(notebook):
    assert read(notebook["repair"]).strip() == "These probabilities agree with what happened."


def test_the_scorer_takes_words(notebook):
    scores = [float(text) for text in re.findall(r"-?\d\.\d*", read(notebook["scores"]))]
    assert len(scores) == 3
    assert all(-0.3 < score < 0 for score in scores)
