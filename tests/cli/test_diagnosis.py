import json
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from calibrant.cli import doctor as diagnosis
from calibrant.results import jsonable

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    return diagnosis.diagnose()


def test_all_is_well_here(found):
    assert found.is_well
    assert [aid.name for aid in found.aids] == ["numba", "BLAS", "torch", "triton", "jax", "browser"]
    assert found.versions["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    data = json.loads(json.dumps(jsonable(found)))
    assert data["is_well"] is True
    assert data["libraries"]["numpy"]["version"]


def test_a_wrong_value_or_a_missing_library_is_not_well(found):
    wrong = replace(found.checks[0], value=0.0)
    assert not replace(found, checks=(wrong, *found.checks[1:])).is_well
    assert not replace(found, libraries=(diagnosis.Library("numpy", None, "calibrant"),)).is_well
    assert replace(found, libraries=(diagnosis.Library("jax", None, "jax"),)).is_well


def test_every_library_is_brought_by_what_is_said():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {f"calibrant[{name}]": needs for name, needs in project["optional-dependencies"].items()}
    for source, needs in {"calibrant": project["dependencies"], **extras}.items():
        names = {re.split(r"[<>=\[; ]", need)[0].lower() for need in needs}
        said = {name.lower() for name, where in diagnosis.LIBRARIES.items() if where == source}
        if source in diagnosis.LIBRARIES.values():
            assert said == names


def test_broken_libraries_are_told_not_raised(monkeypatch):
    def broken(name):
        raise OSError("libtorch.so is missing")

    monkeypatch.setattr(diagnosis, "import_module", broken)
    monkeypatch.setattr(diagnosis, "version_of", lambda name: "1.0")
    for look in (diagnosis._torch, diagnosis._jax):
        aid = look()
        assert not aid.is_active
        assert "installed, but cannot be used: libtorch.so is missing" in aid.detail
    assert "cannot be used" in diagnosis._numba().detail


def test_what_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(diagnosis, "version_of", lambda name: None)
    monkeypatch.setattr(diagnosis, "find_browser", lambda: None)
    assert "pip install 'calibrant[torch]'" in diagnosis._torch().detail
    assert "pip install jax" in diagnosis._jax().detail
    assert not diagnosis._triton().is_active
    assert "Chromium" in diagnosis._browser().detail


def test_a_folder_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(diagnosis.os, "access", lambda path, mode: False)
    aid = diagnosis._numba()
    assert aid.is_active
    assert "each run compiles anew; set NUMBA_CACHE_DIR" in aid.detail


def test_versions_need_no_import():
    assert diagnosis.version_of("numpy")
    assert diagnosis.version_of("no such library") is None
