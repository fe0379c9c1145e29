import pytest

from calibrant.planning import Machine


@pytest.fixture(autouse=True)
def built_in_rates(monkeypatch, tmp_path):
    """No plan of a test depends on what was measured here before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def machine():
    return Machine(threads=2, memory=16e9)
