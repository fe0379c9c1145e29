from dataclasses import replace

import pytest

from calibrant._validate import InputError
from calibrant.planning import Machine, plan
from calibrant.planning.machine import shipped

SIZES = [
    {"n": 1000, "k": 10},
    {"n": 10**6, "k": 10},
    {"n": 10**7, "k": 1000},
    {"n": 10**6, "k": 2},
    {"n": 20_000, "kind": "numbers"},
    {"n": 5000, "members": 20},
    {"n": 1},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("budget", [0.1, 1.0, 30.0, 600.0, 7200.0])
@pytest.mark.parametrize("engine", [None, "process", "batches", "gpu", "cluster"])
def test_the_budget_and_the_memory_are_kept(sizes, budget, engine, machine):
    made = plan(**sizes, budget=budget, engine=engine, machine=machine)
    assert made.seconds <= budget
    assert made.memory <= machine.memory
    roles = [choice.role for choice in made.choices]
    assert len(roles) == len(set(roles))
    assert made.fits == bool(roles)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_larger_budget_answers_no_fewer_questions(sizes, machine):
    counts = [len(plan(**sizes, budget=budget, machine=machine).choices) for budget in (0.01, 0.1, 1.0, 60.0, 3600.0)]
    assert counts == sorted(counts)


def test_preferences(machine):
    def test_of(budget):
        made = plan(20_000, 10, budget=budget, machine=machine)
        return next(choice for choice in made.choices if choice.role == "test")

    settings = [test_of(budget).setting for budget in ("1h", "1min", "150ms")]
    assert settings[0].startswith("AggregatedTest(budget=1.2e+13)")
    assert settings[1].startswith("AggregatedTest(")
    assert settings[2].startswith("ExactTest(estimator=ECE(")
    assert len(set(settings)) == 3


def test_small_data_get_what_is_best():
    made = plan(1000, 10, machine=Machine(2, 8e9))
    assert [choice.setting for choice in made.choices] == [
        "ECE(bins=EqualMass(n_bins=15), lens=TopLabel())",
        "LogLoss()",
        "AggregatedTest()",
        "SKCE()",
        "ECE(bins=EqualMass(n_bins=15), lens=ClassWise())",
        "Default()",
        "SmoothECE(lens=TopLabel())",
        "KDE(p=1)",
    ]
    assert made.left_out == ()


def test_what_was_left_out_says_why(machine):
    made = plan(10**6, 10, budget="10min", machine=machine)
    reasons = {left.setting: left.reason for left in made.left_out}
    assert reasons["SKCE()"].startswith("takes ")
    little = plan(10**6, 100, memory="2GB", engine="process", machine=machine)
    assert any(left.reason.startswith("needs ") for left in little.left_out)


def test_where_nothing_fits_it_says_what_would(machine):
    nothing = plan(10**6, 10, budget="1ms", machine=machine)
    assert not nothing.fits
    assert "would fit into --budget" in nothing.notes[0]
    assert "nothing fits" in repr(nothing)
    full = plan(10**6, 1000, memory="1GB", engine="process", machine=machine)
    assert not full.fits
    assert "--engine batches" in full.notes[0]
    assert plan(10**6, 1000, memory="1GB", engine="batches", machine=machine).fits


def test_a_cluster_has_as_many_workers_as_it_needs(machine):
    alone, cluster = (plan(50_000, 10, budget="5min", engine=engine, machine=machine) for engine in (None, "cluster"))
    assert any("Dask cluster of" in note for note in alone.notes)
    (chosen,) = (choice for choice in cluster.choices if choice.role == "test")
    assert chosen.setting in {left.setting for left in alone.left_out}
    assert chosen.seconds <= 150


def test_more_threads_do_more(machine):
    slow, fast = (plan(50_000, 10, budget="5min", machine=Machine(threads, 64e9)) for threads in (1, 64))
    assert len(fast.left_out) < len(slow.left_out)


def test_the_report_by_itself_uses_the_same_counts(machine):
    assert "199 resamples and SKCE(block=500)" in plan(10**6, 10, machine=machine).notes[-1]
    assert "999 resamples and SKCE()" in plan(10**4, 10, machine=machine).notes[-1]


def test_built_in_rates_are_named(machine):
    assert plan(100, machine=machine).rates.startswith("built-in rates")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"n": 10, "k": 1}, "k must be at least 2 classes; got 1: kind='numbers' has none"),
        ({"n": 10, "k": 3, "kind": "binary"}, "kind='binary' has two classes; got k=3"),
        ({"n": 10, "kind": "words"}, "kind must be 'classes', 'binary', 'numbers' or 'ensemble'; got 'words'"),
        ({"n": 10, "k": 3, "kind": "classes", "members": 3}, "members go with kind='ensemble'"),
        ({"n": 10, "budget": "soon"}, "budget must be a positive duration"),
        ({"n": 10, "memory": "much"}, "memory must be a positive size"),
    ],
)
def test_what_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        plan(**wrong)


def test_whose_rates_are_used_is_told(machine):
    rates = shipped()
    with_gpu = plan(10**5, 10, budget="10min", engine="gpu", machine=machine, rates=rates)
    assert with_gpu.rates.endswith("; sums over pairs at the rates of NVIDIA H200")
    without = replace(rates, gpu_seconds={}, gpu_name=None)
    assert "None" not in plan(10**5, 10, budget="10min", engine="gpu", machine=machine, rates=without).rates


def test_one_worker_is_one_worker(machine):
    assert plan(1000, 10, budget="2h", engine="cluster", machine=machine).engine.startswith(
        "a Dask cluster of 1 worker:"
    )
