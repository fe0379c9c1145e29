import pytest

from calibrant.planning.families import KINDS, Load, kernel_work
from calibrant.planning.options import roles


def options(load, name):
    return next(role.options for role in roles(load) if role.name == name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 1000, 10**8])
def test_every_kind_has_an_error_a_score_and_a_test(kind, n):
    asked = roles(Load(n, 2 if kind == "binary" else 10, kind))
    assert [role.name for role in asked[:3]] == ["calibration error", "score", "test"]
    for role in asked:
        assert all(kind in option.family.kinds for option in role.options)
        assert all(option.text for option in role.options)


def test_exact_before_waves_and_many_waves_before_few():
    tests = options(Load(10_000, 10), "test")
    assert tests[0].text.startswith("AggregatedTest(budget=")
    waves = [option.load.waves for option in tests if option.load.resamples == 999 and option.load.waves]
    assert waves == sorted(waves, reverse=True)
    assert [option.load.resamples for option in tests][-3:] == [999, 199, 99]


def test_waves_only_where_they_are_cheaper():
    for load in (Load(100, 10), Load(10**5, 10), Load(100, 1, "numbers")):
        for option in options(load, "test"):
            if option.load.waves:
                assert kernel_work(option.load) < kernel_work(load)


def test_blocks_as_the_report_takes_them():
    assert "SKCE(block=500)" in [option.text for option in options(Load(10**6, 10), "kernel error")]
    assert all(option.load.block < 50 for option in options(Load(50, 10), "kernel error"))
