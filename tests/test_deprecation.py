"""What goes works until its version, and says what takes its place, at the line of whoever wrote it."""

import warnings
from dataclasses import dataclass

import pytest

import calibrant
from calibrant import InputError, _names
from calibrant._deprecation import renamed_argument


def test_an_old_name_gives_the_new_thing_and_warns_where_it_was_written(monkeypatch):
    monkeypatch.setattr(_names, "DEPRECATED", {"": {"CalibrationError": ("ECE", "2.0")}})
    with pytest.warns(
        FutureWarning, match=r"calibrant\.CalibrationError goes in calibrant 2\.0; use calibrant\.ECE"
    ) as seen:
        found = calibrant.CalibrationError
    assert found is calibrant.ECE
    assert seen[0].filename == __file__


def test_an_old_name_warns_each_time_and_is_not_listed(monkeypatch):
    monkeypatch.setattr(_names, "DEPRECATED", {"kernels": {"RBF": ("Gaussian", "2.0")}})
    for _ in range(2):
        with pytest.warns(FutureWarning, match=r"use calibrant\.kernels\.Gaussian"):
            from calibrant.kernels import RBF  # noqa: F401
    assert "RBF" not in dir(calibrant.kernels)


def test_new_names_of_old_ones_exist():
    for package, names in _names.DEPRECATED.items():
        for old, (new, _) in names.items():
            assert new in _names.homes(package)
            assert old not in _names.homes(package)


@renamed_argument("bins", "n_bins", "2.0")
def histogram(values, n_bins=10):
    return len(values), n_bins


@renamed_argument("bins", "n_bins", "2.0")
@dataclass(frozen=True)
class Binned:
    n_bins: int = 10


@pytest.mark.parametrize(("call", "expected"), [(lambda **o: histogram([1], **o), (1, 3)), (Binned, Binned(3))])
def test_an_old_argument_is_the_new_one_and_warns(call, expected):
    with pytest.warns(FutureWarning, match=r"\(bins=\) goes in calibrant 2\.0; write \w+\(n_bins=\)") as seen:
        assert call(bins=3) == expected
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(n_bins=3) == expected


def test_both_names_at_once_are_refused():
    with pytest.raises(InputError, match="takes n_bins= or its old name bins=, not both"):
        histogram([1], bins=3, n_bins=3)


def test_what_is_wrapped_keeps_its_name_and_words():
    assert histogram.__name__ == "histogram"
    assert Binned.__name__ == "Binned"
