import numpy as np
import pytest

from calibrant.planning import bench
from calibrant.planning.families import FAMILIES, MEASURED
from calibrant.planning.load import KINDS, Load
from calibrant.planning.machine import Machine
from calibrant.planning.rates import shipped


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
    assert set(bench.TRIALS) <= set(FAMILIES)


@pytest.mark.parametrize("kind", KINDS)
def test_problems_have_their_size(kind):
    y_true, y_pred = bench.problem(Load(7, 2 if kind == "binary" else 5, kind))
    assert len(y_true) == len(y_pred) == 7


def test_measuring_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(bench, "MEASURED", (FAMILIES["log loss"], FAMILIES["recalibration"]))
    monkeypatch.setitem(bench.TRIALS, "recalibration", {"n": (60, 90)})
    told = []
    rates = bench.measured(lambda *step: told.append(step))
    assert [step for step, _, _ in told][:2] == ["classes: log loss", "classes: recalibration"]
    assert told[-1][1] == told[-1][2] - 1
    assert set(rates.seconds) == {step for step, _, _ in told}
    assert all(min(found) >= 0 < max(found) for found in rates.seconds.values())
    assert rates.machine["cores"]
    assert not rates.is_shipped


def test_a_gpu_has_its_own_trials(monkeypatch):
    """Tensors on the CPU stand in for those of a GPU."""
    pytest.importorskip("torch")
    small = {"kernel error of all pairs": {"n": (60, 90)}, "kernel regression": {"n": (60, 90)}}
    small["kernel test of all pairs"] = {"n": (30, 50), "redraws": (9, 19)}
    monkeypatch.setattr(bench, "GPU_TRIALS", small)
    found = bench.measured_on_gpu("cpu")
    assert {key: len(rates) for key, rates in found.items()} == {k: len(r) for k, r in shipped().gpu_seconds.items()}
    assert all(min(rates) >= 0 < max(rates) for rates in found.values())
    monkeypatch.setattr(bench, "this_machine", lambda: Machine(2, 1e9, "fast one"))
    monkeypatch.setattr(bench, "measured_on_gpu", lambda: found)
    monkeypatch.setattr(bench, "MEASURED", (FAMILIES["log loss"],))
    assert (bench.measured().gpu_name, bench.measured().gpu_seconds) == ("fast one", found)


CASES = [
    ("binned error", Load(60_000, 8)),
    ("class-wise error", Load(20_000, 12)),
    ("kernel error of all pairs", Load(7000, 5)),
    ("kernel error by waves", Load(15_000, 8, waves=64)),
    ("test of the binned error", Load(30_000, 6, redraws=49)),
    ("kernel test of all pairs", Load(1200, 6, redraws=60)),
    ("kernel test by waves", Load(3000, 6, redraws=49, waves=48)),
    ("aggregated kernel test of all pairs", Load(700, 6, redraws=49)),
    ("kernel test on a line", Load(30_000, 2, "binary", redraws=49)),
    ("error of levels", Load(100_000, 1, "numbers")),
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
