import json
import os

import pytest

from calibrant._validate import InputError
from calibrant.planning import plan, planner

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
@pytest.mark.parametrize("budget", [0.1, 30.0, 7200.0])
def test_what_fits_is_within_the_budget_and_the_memory(sizes, budget):
    made = plan(**sizes, budget=budget, memory=16e9, threads=2)
    assert all(job.seconds <= budget and job.memory <= 16e9 and job.reason is None for job in made.jobs)
    assert all(job.seconds > budget or job.memory > 16e9 for job in made.too_large)
    assert made.fits == bool(made.jobs)
    more = plan(**sizes, budget=2 * budget, memory=16e9, threads=2)
    assert {job.job for job in made.jobs} <= {job.job for job in more.jobs}


def test_what_does_not_fit_says_why():
    made = plan(10**6, 10, budget="10min", memory="16GB", threads=2)
    assert {job.job: job.reason for job in made.too_large}["kernel error"].startswith("takes ")
    little = plan(10**6, 100, memory="3GB", threads=2)
    assert any(job.reason.startswith("needs ") for job in little.too_large)


def test_where_nothing_fits_what_it_says_works():
    for sizes in SIZES:
        nothing = plan(**sizes, budget=1e-12, memory=16e9)
        assert not nothing.fits
        assert "nothing fits" in repr(nothing)
        assert plan(**sizes, budget=nothing.notes[0].rpartition("--budget ")[2], memory=16e9).fits
    full = plan(10**6, 1000, memory="1kB")
    assert not full.fits
    assert plan(10**6, 1000, memory=full.notes[0].rpartition("--memory ")[2]).fits


def test_data_that_do_not_fit_go_in_batches_and_what_has_no_state_takes_a_sample():
    made = plan(10**7, 100, memory="8GB", budget="1h")
    assert made.engine.startswith("batches of rows")
    rows = {job.job: job.rows for job in made.jobs}
    assert rows["log loss"] == 10**7
    assert 1000 < rows["binned error"] < 10**7
    assert "drawn at random" in repr(made)
    assert plan(10**5, 100, memory="8GB").engine.startswith("this process")


def test_more_threads_take_less_time():
    slow, fast = (plan(50_000, 10, budget="1d", memory="64GB", threads=threads) for threads in (1, 64))
    assert fast.engine == "this process, 64 threads"
    times = [next(job.seconds for job in made.jobs if job.job == "kernel error") for made in (slow, fast)]
    assert times[1] < times[0] / 10


def test_how_the_report_limits_itself():
    assert "199 resamples and SKCE(block=500)" in plan(10**6, 10, memory="16GB").notes[-1]
    assert "999 resamples and SKCE()" in plan(10**4, 10, memory="16GB").notes[-1]


def test_a_plan_can_be_read_kept_and_sent():
    made = plan(10**6, 10, budget="1min", memory="16GB")
    text = repr(made)
    assert text.startswith("Plan = 1,000,000 rows of 10 classes: ")
    assert "fit into 1 min and 16 GB" in text
    assert "does not fit, takes" in text
    data = json.loads(made.to_json())
    assert (data["kind"], data["n"], data["k"], data["predictions"]) == ("plan", 10**6, 10, "classes")
    assert [job["job"] for job in data["jobs"]] == [job.job for job in made.jobs]
    assert "| report |" in made.to_markdown()
    assert "<table" in made._repr_html_()


def test_kinds_in_words():
    assert "of two classes" in repr(plan(100))
    assert "of numbers" in repr(plan(100, kind="numbers"))
    assert "ensembles of 20" in repr(plan(100, members=20))


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
        ({"n": 10, "threads": 0}, "threads must be a whole number of at least 1"),
    ],
)
def test_what_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        plan(**wrong)


def test_this_machine_has_something(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert planner._threads() >= 1
    assert 1e8 < planner._memory() < 1e15
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert planner._threads() == 1


def test_systems_that_do_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr(planner, "Path", lambda name: tmp_path / "nothing")
    assert planner._memory() > 1e8
    monkeypatch.delattr(planner.os, "sysconf")
    assert planner._memory() == planner.UNKNOWN_MEMORY_BYTES


def test_memory_where_the_system_says_nothing(tmp_path, monkeypatch):
    table = tmp_path / "meminfo"
    table.write_text("MemTotal: 8 kB\n")
    monkeypatch.setattr(planner, "Path", lambda _: table)
    assert planner._memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    table.write_text("MemTotal: 8 kB\nMemAvailable: 5 kB\n")
    assert planner._memory() == 5120
