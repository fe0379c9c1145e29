import numpy as np
import pytest

from calibrant.planning import bench
from calibrant.planning.families import FAMILIES, KINDS, MEASURED, Load
from calibrant.planning.machine import shipped


def test_coefficients_are_found_again():
    family = FAMILIES["kernel error of all pairs"]
    loads = [Load(n, k) for n in (500, 1000, 4000, 8000) for k in (3, 30)]
    truth = np.array([1e-2, 1e-9, 2e-9, 3e-11])
    seconds = [float(np.array(family.terms(load)) @ truth) for load in loads]
    assert bench.fitted(family, loads, seconds) == pytest.approx(truth, rel=1e-6)


def test_a_term_that_noise_hides_keeps_its_usual_rate():
    family, loads = FAMILIES["kernel regression"], [Load(1000, 3), Load(3000, 3)]
    assert bench.fitted(family, loads, [0.3, 0.3])[1:] == pytest.approx((0, 0), abs=1e-12)
    usual = (0.1, 1e-8, 1e-9)
    drawn = bench.fitted(family, loads, [0.3, 0.3], usual)
    assert 0.2 < family.terms(Load(10**5, 3))[1] * drawn[1] / 100 < 5
    truth = [float(np.array(family.terms(load)) @ (0.2, 2e-8, 3e-9)) for load in loads]
    again = bench.fitted(family, loads, truth, usual)
    assert np.array(family.terms(loads[1])) @ again == pytest.approx(truth[1], rel=0.1)


def test_noise_makes_no_coefficient_negative(rng):
    family = FAMILIES["binned error"]
    loads = list(bench.trials(family, "classes"))
    for _ in range(20):
        assert min(bench.fitted(family, loads, rng.random(len(loads)).tolist())) >= 0


def test_every_family_is_tried_at_two_sizes_at_least():
    for family in MEASURED:
        for kind in family.kinds:
            loads = list(bench.trials(family, kind))
            assert len(loads) == len(set(loads)) >= 2
            assert all(load.kind == kind for load in loads)
    assert {name.rpartition(": ")[2] for name in bench.TRIALS} <= set(FAMILIES)


def test_quick_fits_are_tried_at_sizes_that_show_what_a_row_costs():
    assert max(load.n for load in bench.trials(FAMILIES["recalibration"], "binary")) == 200_000
    assert max(load.n for load in bench.trials(FAMILIES["recalibration"], "classes")) == 5000
    assert 0.5 < shipped().predicted(FAMILIES["recalibration"], Load(10**6, 2, "binary")) < 5  # 1.5 s were measured


@pytest.mark.parametrize("kind", KINDS)
def test_problems_have_their_size(kind):
    y_true, y_pred = bench.problem(Load(7, 2 if kind == "binary" else 5, kind))
    assert len(y_true) == len(y_pred) == 7


def test_measuring_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(bench, "MEASURED", (FAMILIES["log loss"], FAMILIES["recalibration"]))
    monkeypatch.setitem(bench.TRIALS, "recalibration", {"n": (60, 90)})
    told = []
    rates = bench.measured(lambda *step: told.append(step), budget=5.0)
    assert [step for step, _, _ in told][:2] == ["classes: log loss", "classes: recalibration"]
    assert told[-1][1] == told[-1][2] - 1
    assert set(rates.seconds) == {step for step, _, _ in told}
    assert all(min(found) >= 0 < max(found) for found in rates.seconds.values())
    assert rates.machine["cores"]
    assert not rates.is_shipped


def test_families_whose_time_is_over_are_tried_at_their_smallest_load(monkeypatch):
    family = FAMILIES["log loss"]
    loads = sorted(bench.trials(family, "classes"), key=lambda load: bench.usually(family, load))
    assert len(bench.timed(family, loads, 0.0)) == 1
    assert len(bench.timed(family, loads)) == len(loads)
    clock = iter([0, 1, 2, 3, 5])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    assert len(bench.timed(family, loads, 4.0)) == 3


def test_loads_that_were_left_out_are_as_much_slower_as_the_others():
    family = FAMILIES["kernel error of all pairs"]
    loads = [Load(n, 3) for n in (500, 1000, 4000)]
    usual = [bench.usually(family, load) for load in loads]
    assert bench.completed(family, loads, [2 * usual[0], 2 * usual[1]]) == pytest.approx([2 * x for x in usual])
    assert bench.completed(family, loads, usual) == usual


def test_the_budget_is_shared_by_what_work_usually_takes(monkeypatch):
    shares = []
    monkeypatch.setattr(bench, "MEASURED", (FAMILIES["log loss"], FAMILIES["kernel regression"]))
    monkeypatch.setattr(bench, "KINDS", ("classes",))
    monkeypatch.setattr(bench, "timed", lambda family, loads, share: shares.append(share) or [0.1])
    bench.measured(budget=1000.0)
    cheap, dear = (sum(bench.usually(f, load) for load in bench.trials(f, "classes")) for f in bench.MEASURED)
    assert shares == pytest.approx([1000 * cheap / (cheap + dear), 1000], rel=1e-3)


CASES = [
    ("binned error", Load(60_000, 8)),
    ("class-wise error", Load(20_000, 12)),
    ("kernel error of all pairs", Load(7000, 5)),
    ("kernel error by waves", Load(15_000, 8, waves=64)),
    ("test of the binned error", Load(30_000, 6, resamples=49)),
    ("kernel test of all pairs", Load(1200, 6, resamples=60)),
    ("kernel test by waves", Load(3000, 6, resamples=49, waves=48)),
    ("aggregated kernel test of all pairs", Load(700, 6, resamples=49)),
    ("kernel test on a line", Load(30_000, 2, "binary", resamples=49)),
    ("PIT error", Load(100_000, 1, "numbers")),
]


@pytest.mark.study
@pytest.mark.parametrize(("name", "load"), CASES, ids=[name for name, _ in CASES])
def test_predicted_within_a_factor_of_three(name, load, capsys):
    """Of processor time, on the machine of the built-in rates; at sizes that were not tried."""
    family = FAMILIES[name]
    (found,) = bench.timed(family, [load])
    said = shipped().predicted(family, load)
    with capsys.disabled():
        print(f"\n{name}: predicted {said:.3g} s, measured {found:.3g} s")
    assert 1 / 3 < found / said < 3
