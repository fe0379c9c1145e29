"""The table of public names, and what is made from it."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import calibrant
from calibrant import _names
from calibrant._names import PACKAGES, PUBLIC, Words, door, homes, stub

SOURCE = Path(calibrant.__file__).parent
NEEDS = {"losses": "torch", "sklearn": "sklearn"}


@pytest.fixture(params=PACKAGES)
def package(request):
    pytest.importorskip(NEEDS.get(request.param, "numpy"))
    return request.param


def test_a_door_opens_to_every_name(package):
    module = import_module(f"calibrant.{package}")
    assert dir(module) == module.__all__ == sorted(homes(package))
    for name in module.__all__:
        assert getattr(module, name) is getattr(import_module(homes(package)[name]), name)
    with pytest.raises(AttributeError, match=f"module 'calibrant.{package}' has no attribute 'Nobody'"):
        module.Nobody  # noqa: B018


def test_names_can_be_imported_all_at_once(package):
    space = {}
    exec(f"from calibrant.{package} import *", space)
    assert set(homes(package)) <= set(space)


def test_names_are_written_once():
    for names in PUBLIC.values():
        listed = [name for words in names.values() for name in words.split()]
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize("package", PUBLIC)
def test_stubs_are_those_of_the_table(package):
    """Run ``python -m calibrant._names`` where this fails."""
    assert (SOURCE / package / "__init__.pyi").read_text("utf-8") == stub(package)


def test_opening_a_door_imports_nothing():
    doors = ", ".join(f"calibrant.{package}" for package in PACKAGES)
    code = f"import sys, {doors}; assert not {{'numpy', 'scipy', 'torch', 'sklearn'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everyday_names_are_those_of_their_packages():
    for name, home in homes("").items():
        assert getattr(calibrant, name) is getattr(import_module(home), name)
    assert 40 <= len(calibrant.__all__) <= 50
    assert calibrant.plots is import_module("calibrant.plots")


def test_what_a_text_may_name():
    words = Words("kernels", "lenses")
    assert "Gaussian" in words
    assert "TopLabel" in words
    assert "groups" not in words  # functions are not settings
    assert "ECE" not in words
    assert len(words) == len(list(words))
    with pytest.raises(KeyError):
        words["ECE"]


def test_a_door_of_nobody():
    with pytest.raises(KeyError):
        door("calibrant.nowhere")


def test_no_file_of_a_package_is_called_like_a_name_of_it(package):
    """Importing the file would put it in the place of the name."""
    assert not {name for name in homes(package) if f"calibrant.{package}.{name}" in homes(package).values()}


def test_stubs_are_written_beside_their_packages(tmp_path, monkeypatch):
    monkeypatch.setattr(_names, "__file__", str(tmp_path / "_names.py"))
    for package in PUBLIC:
        (tmp_path / package).mkdir(exist_ok=True, parents=True)
    _names.write_stubs()
    for package in PUBLIC:
        assert (tmp_path / package / "__init__.pyi").read_text("utf-8") == stub(package)
