from dataclasses import replace

import pytest

from calibrant._validate import InputError
from calibrant.planning import Machine
from calibrant.planning.families import FAMILIES, Load
from calibrant.planning.machine import shipped
from calibrant.planning.options import MAX_WORKERS, Option, Place, Quote, place_for, roles, workers_for

LOAD = Load(10**6, 10, resamples=99)


def test_batches_where_data_do_not_fit_and_a_gpu_for_what_it_sums(machine):
    with_gpu = replace(machine, gpu="fast one")
    assert place_for(Load(10**6, 10), machine, 16e9, None).name == "process"
    assert place_for(Load(10**7, 1000), with_gpu, 16e9, None).name == "batches"
    assert place_for(Load(10**6, 10), with_gpu, 16e9, None).name == "gpu"
    assert place_for(Load(10**6, 1, "numbers"), with_gpu, 16e9, None).name == "gpu"
    assert place_for(Load(10**6, 2, "binary"), with_gpu, 16e9, None).name == "process"
    assert place_for(Load(10**6, 10), machine, 16e9, "cluster").name == "cluster"
    with pytest.raises(InputError, match="engine must be one of process, batches, gpu, cluster; got 'spark'"):
        place_for(LOAD, machine, 16e9, "spark")


def test_batches_hold_few_rows_and_what_has_no_state_takes_a_sample(machine):
    load = Load(10**8, 100)
    place = Place("batches", machine, 16e9)
    for role in place.offered(roles(load)):
        for option in role.options:
            quote = place.quoted(option, shipped())
            assert option.load.n == (10**8 if option.family.has_state else place.batch(load))
            if option.family.has_state:
                assert quote.memory < 16e9


def test_what_engines_change(machine):
    pairs, bins = (Option(FAMILIES[name], LOAD) for name in ("kernel test of all pairs", "binned error"))
    here, gpu, cluster = (
        Place(name, machine, 16e9, workers) for name, workers in (("process", 1), ("gpu", 1), ("cluster", 8))
    )
    slow = here.quoted(pairs, shipped()).seconds
    assert gpu.quoted(pairs, shipped()).seconds < slow / 10
    assert gpu.quoted(bins, shipped()).seconds == here.quoted(bins, shipped()).seconds
    error = Option(FAMILIES["kernel error of all pairs"], Load(10**6, 10))
    assert 0.5 < gpu.quoted(error, shipped()).seconds < 2  # an NVIDIA H200 takes 0.96 s
    assert cluster.quoted(error, shipped()).seconds == pytest.approx(here.quoted(error, shipped()).seconds / 8)
    assert cluster.quoted(pairs, shipped()).seconds == pytest.approx(slow / 8)
    alone = replace(bins, load=replace(LOAD, resamples=0))
    assert cluster.quoted(alone, shipped()).seconds == here.quoted(alone, shipped()).seconds


def test_workers():
    test, estimate = Option(FAMILIES["kernel test of all pairs"], LOAD), Option(FAMILIES["log loss"], Load(10, 3))
    assert workers_for([Quote(test, 95.0, 0.0)], 10.0) == (Quote(test, 95.0, 0.0), 10)
    assert workers_for([Quote(test, 1.0, 0.0)], 10.0)[1] == 1
    assert workers_for([Quote(estimate, 95.0, 0.0)], 10.0) is None
    long, short = Quote(test, 1e9, 0.0), Quote(test, 10.0 * MAX_WORKERS, 0.0)
    assert workers_for([long, short], 10.0) == (short, MAX_WORKERS)


def test_places_in_words(machine):
    assert Place("process", Machine(1, 1e9), 1e9).words == "this process, 1 thread"
    assert "cluster of 12 workers" in Place("cluster", machine, 1e9, 12).words
    assert "none found here" in Place("gpu", machine, 1e9).words
