"""Reports in MLflow where it is installed, else in what looks like it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import evaluate
from calibrant.integrations import log_report


@pytest.fixture
def rows(rng):
    p = rng.dirichlet(np.ones(3), 200)
    return np.array([rng.choice(3, p=row) for row in p]), p


def test_all_numbers_the_page_and_the_data_are_logged(rows):
    report = evaluate(*rows, advice=False, n_resamples=99)
    kept = {}
    tracker = SimpleNamespace(
        log_metrics=lambda found: kept.update(metrics=found),
        log_text=lambda text, place: kept.update({place: text}),
        log_dict=lambda data, place: kept.update({place: data}),
    )
    metrics = log_report(report, "held out", tracker)
    assert kept["metrics"] == metrics
    assert {key for key in metrics if key.count(".") == 1} == {f"held out.{n.key}" for n in report.numbers}
    for found in report.numbers:
        ends = [metrics.get(f"held out.{found.key}.{end}") for end in ("low", "high")]
        assert ends == ([None, None] if found.interval is None else [found.interval.low, found.interval.high])
    assert kept["held out.html"] == report.to_html()
    assert json.dumps(kept["held out.json"], default=str)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the database that MLflow keeps runs in
def test_a_real_run(rows, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("calibration", str(tmp_path / "artifacts")))
    with mlflow.start_run() as run:
        metrics = log_report(evaluate(*rows, advice=False, n_resamples=99))
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged == pytest.approx(metrics)
    files = {p.name for p in (tmp_path / "artifacts").rglob("*") if p.is_file()}
    assert {"calibration.html", "calibration.json"} <= files
