import json
from dataclasses import replace

import pytest

from calibrant.cli.doctor import diagnose

pytest.importorskip("cyclopts")

from calibrant.cli import doctor


@pytest.fixture(scope="module")
def found():
    return diagnose()


def test_what_a_well_one_is_told(run, monkeypatch, found):
    monkeypatch.setattr(doctor, "diagnose", lambda: found)
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    for words in ("Libraries", "✓ numpy", "Self-test", "✓ binned error", "0.266666666667", "All is well.", " ms"):
        assert words in out
    code, out, _ = run("doctor", "--format", "json")
    assert (code, json.loads(out)["is_well"]) == (0, True)


def test_code_1_where_something_is_wrong(run, monkeypatch, found):
    wrong = replace(found.checks[0], value=0.0)
    failed = replace(found.checks[1], problem="ImportError: gone")
    monkeypatch.setattr(doctor, "diagnose", lambda: replace(found, checks=(wrong, failed)))
    code, out, _ = run("doctor")
    assert code == 1
    assert "✗ binned error" in out
    assert "0.0, and should be 0.2666" in out
    assert "ImportError: gone" in out
    assert "please report" in out
    code, out, _ = run("doctor", "--format", "json")
    assert (code, json.loads(out)["is_well"]) == (1, False)


def test_loops_that_are_not_compiled_are_told(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert doctor._numba().detail == "switched off by NUMBA_DISABLE_JIT: pair sums take ten thousand times as long"


def test_numpy_that_does_not_say_what_multiplies_matrices(monkeypatch):
    monkeypatch.setattr("numpy.show_config", lambda mode: {})
    assert doctor._blas().detail == "NumPy does not say which"


def test_the_processor_of_an_apple_machine_is_named(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert "Apple GPU" in doctor._torch().detail
