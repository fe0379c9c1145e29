import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Normal, evaluate
from calibrant.estimators import RandomFeatureSKCE
from calibrant.inference.exact_tests.exact_test import BUDGET, within_budget
from calibrant.planning.jobs import JOBS, KINDS, SECONDS, SHARED, Load, kernel_work
from calibrant.recalibration import Recalibrator
from calibrant.results import brief

ALL = [(name, kind) for name, job in JOBS.items() for kind in job.kinds]


def load_of(n, kind):
    return Load(n, {"binary": 2, "numbers": 1}.get(kind, 10), kind)


def problem(load):
    """Targets and calibrated predictions of that many rows."""
    rng = np.random.default_rng(0)
    if load.kind == "classes":
        predictions = Categorical(rng.dirichlet(np.ones(load.k), load.n))
    elif load.kind == "binary":
        predictions = Categorical(rng.random(load.n))
    elif load.kind == "numbers":
        predictions = Normal(rng.normal(size=load.n), 1 + rng.random(load.n))
    else:
        predictions = Ensemble(rng.normal(size=(load.n, 1)) + rng.normal(size=(load.n, load.k)))
    return predictions.sample(rng, 1)[0], predictions


def test_every_kind_has_a_report_an_error_a_score_and_a_test():
    for kind in KINDS:
        names = [name for name, of in ALL if of == kind]
        assert names[0] == "report"
        for what in ("error", "test", "recalibration"):
            assert any(what in name for name in names)
        assert {"log loss", "CRPS"} & set(names)


@pytest.mark.parametrize(("name", "kind"), ALL, ids=[f"{kind}-{name}" for name, kind in ALL])
def test_more_rows_and_classes_are_more_work_and_memory(name, kind):
    job, load = JOBS[name], load_of(1000, kind)
    assert set(job.operations(load)) <= set(SECONDS)
    assert job.bytes(load) > load.data_bytes
    for larger in (replace(load, n=4000), replace(load, n=10**7), replace(load, k=20)):
        if larger.k == load.k or kind in ("classes", "ensemble"):
            assert 0 < job.seconds(load) <= job.seconds(larger)
            assert job.bytes(load) < job.bytes(larger)


@pytest.mark.parametrize(("name", "kind"), [both for both in ALL if both[0] != "report"])
def test_settings_are_what_commands_read(name, kind):
    pytest.importorskip("cyclopts")
    from calibrant.cli.settings import parse_estimator, parse_recalibrator, parse_test

    made = JOBS[name].make(load_of(1000, kind))
    is_test = "test" in name
    parse = parse_recalibrator if isinstance(made, Recalibrator) else parse_test if is_test else parse_estimator
    assert parse(brief(made)) == made


def test_threads_share_sums_of_pairs_alone():
    load = Load(1000, 3)
    for name, job in JOBS.items():
        shared = sum(SECONDS[kind] * job.operations(load).get(kind, 0.0) for kind in SHARED)
        if "classes" in job.kinds:
            assert job.seconds(load, threads=4) == pytest.approx(job.seconds(load) - 0.75 * shared), name


@pytest.mark.parametrize(
    ("load", "predictions"),
    [
        (Load(50, 4), Categorical(np.full((50, 4), 0.25))),
        (Load(50, 2, "binary"), Categorical(np.linspace(0.1, 0.9, 50))),
        (Load(50, 1, "numbers"), Normal(np.arange(50.0), 1.0)),
        (Load(50, 6, "ensemble"), Ensemble(np.random.default_rng(0).normal(size=(50, 6)))),
    ],
)
def test_plans_count_as_tests_do(load, predictions):
    from calibrant.estimators.kernel_errors.kernel_resamples import work_of_resample
    from calibrant.kernels import Exponential

    assert kernel_work(load) == work_of_resample(Exponential(1.0), predictions, 1 if load.kind == "binary" else 3)


def test_the_aggregated_test_is_counted_by_random_features_where_it_takes_them():
    job = JOBS["aggregated kernel test"]
    for n in (2000, 5000):
        load = Load(n, 10)
        made = job.make(load)
        chosen, _ = within_budget(JOBS["kernel error"].make(load), problem(load)[1], made.n_resamples, BUDGET / 3)
        is_exact = job.operations(load)["multiply"] == 3 * made.n_resamples * kernel_work(load)
        assert isinstance(chosen, RandomFeatureSKCE) != is_exact


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("binned error", Load(40_000, 10)),
        ("class-wise error", Load(40_000, 10)),
        ("log loss", Load(40_000, 10)),
        ("kernel error of blocks", Load(40_000, 10)),
        ("kernel error", Load(60_000, 2, "binary")),
        ("CRPS", Load(40_000, 20, "ensemble")),
    ],
)
def test_no_more_memory_than_said(name, load):
    """The formula is a bound, within what the median distance and small arrays take, and not a wild one."""
    job, (y_true, y_pred) = JOBS[name], problem(load)
    measure = job.make(load)
    measure(y_true[:3000], y_pred[:3000])
    tracemalloc.start()
    measure(y_true, y_pred)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = job.bytes(load) - load.data_bytes
    assert said / 10 < peak < 1.5 * said + 1.5e8


MEASURED = [
    ("report", Load(20_000, 10)),
    ("report", Load(100_000, 2, "binary")),
    ("report", Load(20_000, 1, "numbers")),
    ("binned error", Load(10**6, 10)),
    ("class-wise error", Load(200_000, 50)),
    ("log loss", Load(10**6, 10)),
    ("kernel error", Load(10**6, 2, "binary")),
    ("kernel error", Load(20_000, 10)),
    ("kernel error", Load(10_000, 1, "numbers")),
    ("kernel error of blocks", Load(100_000, 10)),
    ("kernel error by random features", Load(50_000, 10)),
    ("kernel regression", Load(4000, 10)),
    ("test of the binned error", Load(200_000, 10)),
    ("aggregated kernel test", Load(1000, 10)),
    ("aggregated kernel test", Load(5000, 10)),
    ("aggregated kernel test", Load(50_000, 2, "binary")),
    ("temperature", Load(100_000, 10)),
    ("recalibration", Load(20_000, 10)),
    ("recalibration", Load(2000, 20, "ensemble")),
    ("CRPS", Load(100_000, 20, "ensemble")),
    ("test of PIT values", Load(20_000, 20, "ensemble")),
]


@pytest.mark.study
@pytest.mark.parametrize(("name", "load"), MEASURED, ids=[f"{name}-{load.kind}-{load.n}" for name, load in MEASURED])
def test_predicted_within_a_factor_of_three(name, load, capsys):
    """Of processor time, on a machine like that of the rates."""
    made, (y_true, y_pred) = JOBS[name].make(load), problem(load)
    run = evaluate if name == "report" else made.fit if isinstance(made, Recalibrator) else made
    run(y_true[:300], y_pred[:300])
    start = time.process_time()
    run(y_true, y_pred)
    found, said = time.process_time() - start, JOBS[name].seconds(load)
    with capsys.disabled():
        print(f"\n| {name} | {load.kind}, {load.n:,}, {load.k} | {said:.2g} s | {found:.2g} s | {found / said:.2f} |")
    assert 1 / 3 < found / said < 3
