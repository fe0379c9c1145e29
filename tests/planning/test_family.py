from dataclasses import replace

import pytest

from calibrant.planning.bench import trials
from calibrant.planning.families import FAMILIES, Load

ALL = [(family, kind) for family in FAMILIES.values() for kind in family.kinds]
IDS = [f"{kind}-{family.name}" for family, kind in ALL]


def some_load(family, kind):
    return replace(next(iter(trials(family, kind))), resamples=99, waves=64 if "waves" in family.name else 0, block=20)


@pytest.mark.parametrize(("family", "kind"), ALL, ids=IDS)
def test_terms_and_memory_grow_with_every_size(family, kind):
    load = some_load(family, kind)
    names = [
        "n",
        *(["k"] if kind in ("classes", "ensemble") else []),
        *(["resamples"] if "test" in family.name else []),
    ]
    names += ["waves"] if load.waves else []
    for name in names:
        larger = replace(load, **{name: 4 * getattr(load, name)})
        before, after = family.terms(load), family.terms(larger)
        if kind == "classes" and name == "k" and family.name == "recalibration":
            before, after = before[:3], after[:3]  # beyond 20 classes no matrix is tried
        assert all(a >= b for a, b in zip(after, before, strict=True))
        assert family.bytes(larger) >= family.bytes(load)
    assert family.bytes(load) > load.data_bytes


def test_the_data_are_part_of_the_memory():
    assert FAMILIES["log loss"].bytes(Load(10**6, 100)) > Load(10**6, 100).data_bytes
