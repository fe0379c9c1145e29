import numpy as np
import pytest

from calibrant import ECE, SKCE, EqualMass
from calibrant.kernels import Exponential
from calibrant.results import Estimate, brief, how_many, number, percent


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.123456, "0.1235"),
        (12345678, "12,345,678"),
        (1234.56, "1,234.6"),
        (np.inf, "∞"),
        (-np.inf, "-∞"),
        (np.nan, "NaN"),
    ],
)
def test_numbers_as_people_read_them(x, text):
    assert number(x) == text


def test_settings_are_brief_for_people():
    assert brief(ECE()) == "ECE()"
    assert brief(ECE(EqualMass())) == "ECE(bins=EqualMass(n_bins=15))"
    assert brief(SKCE(Exponential(1 / 3), block=5)) == "SKCE(on_predictions=Exponential(lengthscale=0.333333), block=5)"
    assert brief(((1.0,), "x")) == "((1,), 'x')"
    estimate = Estimate("ECE", 0.25, 40, ECE(EqualMass()))
    assert "ECE(bins=EqualMass(n_bins=15))" in repr(estimate)
    assert estimate.to_dict()["estimator"] == repr(ECE(EqualMass()))  # all digits, for programs


def test_one_is_singular():
    assert [how_many(n, "row") for n in (0, 1, 2, 12_345)] == ["0 rows", "1 row", "2 rows", "12,345 rows"]
    assert [how_many(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]


def test_what_rounding_leaves_of_nothing_is_nothing():
    assert [percent(x) for x in (0.0, -0.0, 4e-16, -4e-16)] == ["0.0 %"] * 4
    assert percent(1e-9) == "1e-07 %"
