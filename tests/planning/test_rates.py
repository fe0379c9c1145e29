import json
from dataclasses import replace

import pytest

from calibrant.planning.families import FAMILIES, Load
from calibrant.planning.machine import Rates, current, kept, key_of, shipped


def test_the_model_is_a_sum_of_rates_times_terms():
    family, load = FAMILIES["binned error"], Load(1024, 3)
    rates = Rates({key_of(family, load): (1.0, 2.0, 3.0)}, {}, "by hand")
    assert rates.predicted(family, load) == 1 + 2 * 1024 * 3 + 3 * 1024 * 10


def test_threads_share_what_can_be_shared():
    load = Load(1000, 3)
    pairs, bins = FAMILIES["kernel error of all pairs"], FAMILIES["binned error"]
    assert shipped().predicted(pairs, load, 4) == pytest.approx(shipped().predicted(pairs, load) / 4)
    assert shipped().predicted(bins, load, 4) == shipped().predicted(bins, load)


@pytest.mark.parametrize(("family", "kind"), [(f, kind) for f in FAMILIES.values() for kind in f.kinds])
def test_built_in_rates_are_positive_and_more_rows_take_longer(family, kind):
    load = Load(10**6, 10, kind, resamples=99, waves=64 if "waves" in family.name else 0, block=50)
    assert 0 < shipped().predicted(family, load) <= shipped().predicted(family, replace(load, n=10**7))


def test_what_was_measured_is_kept_and_used():
    assert current() == shipped()
    twice = replace(shipped(), seconds={key: tuple(2 * x for x in rates) for key, rates in shipped().seconds.items()})
    path = twice.save()
    assert path == kept()
    assert current().seconds == twice.seconds
    assert str(path) in current().source
    assert not current().is_shipped
    assert json.loads(path.read_text())["machine"]["cores"] == "2"


@pytest.mark.parametrize("text", ["{", "[]", '{"seconds": {"a": [1]}, "machine": {}}', '{"seconds": 3}'])
def test_a_broken_or_old_file_is_passed_over(text):
    path = shipped().save()
    path.write_text(text)
    assert current() == shipped()


def test_rates_of_a_gpu_are_kept_or_built_in():
    family, load = FAMILIES["kernel error of all pairs"], Load(1000, 3)
    key, other = key_of(family, load), replace(shipped(), gpu_name="fast one")
    doubled = {name: tuple(2 * x for x in rates) for name, rates in shipped().gpu_seconds.items()}
    replace(other, gpu_seconds=doubled).save()
    assert current().gpu_name == "fast one"
    assert current().gpu_seconds[key] == doubled[key]
    assert current().predicted(family, load, 8, on_gpu=True) == 2 * shipped().predicted(family, load, on_gpu=True)
    replace(other, gpu_seconds={}, gpu_name=None).save()
    assert "gpu" not in json.loads(kept().read_text())
    assert (current().gpu_name, current().gpu_seconds) == (shipped().gpu_name, shipped().gpu_seconds)
    assert not current().is_shipped
