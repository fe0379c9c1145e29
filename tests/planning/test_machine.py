from calibrant.planning import machine


def test_this_machine_has_something(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    found = machine.this_machine()
    assert found.threads >= 1
    assert 1e8 < found.memory < 1e15


def test_compiled_code_may_be_told_to_use_fewer_threads(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert machine._threads() == 1


def test_no_driver_no_question(monkeypatch):
    monkeypatch.setattr(machine, "DRIVERS", ())
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "import_module", None)  # would fail if called
    assert machine._gpu() is None


def test_a_gpu_is_named_and_a_broken_torch_passed_over(monkeypatch, tmp_path):
    class Cuda:
        is_available = staticmethod(lambda: True)
        get_device_name = staticmethod(lambda number: "fast one")

    monkeypatch.setattr(machine, "DRIVERS", (str(tmp_path),))
    monkeypatch.setattr(machine, "find_spec", lambda name: name)
    monkeypatch.setattr(machine, "import_module", lambda name: type("torch", (), {"cuda": Cuda}))
    assert machine._gpu() == "fast one"

    def broken(name):
        raise OSError("libtorch.so is missing")

    monkeypatch.setattr(machine, "import_module", broken)
    assert machine._gpu() is None


def test_systems_that_do_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "Path", lambda name: tmp_path / "nothing")
    assert machine._memory() > 1e8
    monkeypatch.delattr(machine.os, "sysconf")
    assert machine._memory() == machine.UNKNOWN
