"""Doors to other libraries, with the real ones where they are installed, else with what looks like them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import CRPS, ECE, Brier, Ensemble, InputError, TopLabel, evaluate
from calibrant.integrations import as_metric, from_arviz, log_report


@pytest.fixture
def draws(rng):
    """Four chains of 25 draws for rows in a table of 3 x 2, and what was observed."""
    return rng.normal(size=(4, 25, 3, 2)), rng.normal(size=(3, 2))


@pytest.fixture
def rows(rng):
    p = rng.dirichlet(np.ones(3), 200)
    return np.array([rng.choice(3, p=row) for row in p]), p


def one_by_one(predicted, observed):
    """The same by a loop."""
    members = [[predicted[c, d, i, j] for c in range(4) for d in range(25)] for i in range(3) for j in range(2)]
    return np.array([observed[i, j] for i in range(3) for j in range(2)]), np.array(members)


class TestArviz:
    def test_draws_are_members_and_the_rest_rows(self, draws):
        predicted, observed = draws
        y_true, y_pred = from_arviz({"posterior_predictive": {"y": predicted}, "observed_data": {"y": observed}})
        expected, members = one_by_one(predicted, observed)
        np.testing.assert_array_equal(y_true, expected)
        np.testing.assert_array_equal(y_pred.members, members)
        assert CRPS()(y_true, y_pred).value == CRPS()(expected, Ensemble(members)).value

    def test_dimensions_are_read_by_name(self, draws):
        predicted, observed = draws
        turned = np.moveaxis(predicted, (0, 1), (3, 1))  # row, draw, column, chain

        class Named(np.ndarray):
            dims = ("row", "draw", "column", "chain")

        y_true, y_pred = from_arviz(
            {"posterior_predictive": {"y": turned.view(Named)}, "observed_data": {"y": observed}}
        )
        assert np.array_equal(np.sort(y_pred.members), np.sort(one_by_one(predicted, observed)[1]))
        assert np.array_equal(y_true, observed.ravel())

    def test_real_containers(self, draws):
        arviz = pytest.importorskip("arviz")
        predicted, observed = draws
        groups = {"posterior_predictive": {"y": predicted, "z": predicted}, "observed_data": {"y": observed}}
        data = arviz.from_dict(groups) if "groups" not in dir(arviz.InferenceData) else arviz.from_dict(**groups)
        y_true, y_pred = from_arviz(data)
        np.testing.assert_array_equal(y_true, observed.ravel())
        np.testing.assert_array_equal(y_pred.members, one_by_one(predicted, observed)[1])

    @pytest.mark.parametrize(
        ("data", "options", "message"),
        [
            ({"posterior": {}}, {}, "data has no group 'posterior_predictive'"),
            (3, {}, "data has no group"),
            ({"posterior_predictive": {"y": []}, "observed_data": {"z": []}}, {}, "name= is needed: .* are none"),
            (
                {"posterior_predictive": {"y": []}, "observed_data": {"y": []}},
                {"name": "z"},
                r"name='z' is not in both",
            ),
            (
                {"posterior_predictive": {"y": np.zeros((2, 5, 3))}, "observed_data": {"y": np.zeros(4)}},
                {},
                r"'y' has predictions of shape \(3,\) and observations of shape \(4,\)",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, data, options, message):
        with pytest.raises(InputError, match=message):
            from_arviz(data, **options)


class TestTracker:
    def test_all_numbers_the_page_and_the_data_are_logged(self, rows):
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

    def test_a_real_run(self, rows, tmp_path):
        mlflow = pytest.importorskip("mlflow")
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("calibration", str(tmp_path / "artifacts")))
        with mlflow.start_run() as run:
            metrics = log_report(evaluate(*rows, advice=False, n_resamples=99))
        logged = mlflow.get_run(run.info.run_id).data.metrics
        assert logged == pytest.approx(metrics)
        files = {p.name for p in (tmp_path / "artifacts").rglob("*") if p.is_file()}
        assert {"calibration.html", "calibration.json"} <= files


class TestMetric:
    def test_one_number(self, rng):
        pytest.importorskip("evaluate")
        p = rng.random(200)
        y = (rng.random(200) < p) * 1
        metric = as_metric(ECE(), "ece")
        for part in np.array_split(np.arange(200), 3):
            metric.add_batch(references=y[part], predictions=p[part])
        assert metric.compute() == {"ece": ECE()(y, p).value}

    def test_classes_weights_and_combinations(self, rows, rng):
        evaluate = pytest.importorskip("evaluate")
        y, p = rows
        weights = rng.random(200)
        metric = as_metric(ECE(lens=TopLabel()), "top", n_classes=3)
        found = metric.compute(references=y, predictions=p, sample_weight=weights)
        assert found == {"top": ECE(lens=TopLabel())(y, p, sample_weight=weights).value}
        both = evaluate.combine([as_metric(ECE(), "ece", 3), as_metric(Brier(), "brier", 3)])
        assert both.compute(references=y, predictions=p) == {"ece": ECE()(y, p).value, "brier": Brier()(y, p).value}

    def test_what_is_no_estimator_is_refused(self):
        with pytest.raises(InputError, match=r"estimator must be an estimator such as ECE\(\); got 3"):
            as_metric(3)
