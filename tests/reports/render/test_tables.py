import numpy as np
import pytest

from calibrant.reports.render.html import candidate_columns, columns_of, flags_of, plain, pvalue
from calibrant.results import Table


def shown(columns):
    return {column.heading: column.texts for column in columns}


def test_slices():
    table = Table(
        group=["<a>", "b"],
        rows=[1200, 7],
        claimed=[0.5, 0.25],
        null_low=[0.0, 0.01],
        null_high=[0.02, 0.03],
        pvalue=[0.004, 0.5],
        pvalue_alone=[0.002, 0.4],
    )
    assert shown(columns_of(table, "site")) == {
        "site": ("<a>", "b"),
        "rows": ("1,200", "7"),
        "claimed": ("50.0 %", "25.0 %"),
        "if calibrated": ("0.0 % to 2 %", "1 % to 3 %"),
        "p": ("0.004", "0.50"),
    }
    assert flags_of(table) == [True, False]
    assert flags_of(Table(group=["a"])) == [False]
    assert flags_of(Table(calibration_error=[0.3, 0.1], null_high=[0.2, 0.2])) == [True, False]


def test_errors_are_drawn_beside_their_null_band():
    table = Table(error=[0.08, 0.02, np.nan], null_low=[0.0, 0.01, 0.0], null_high=[0.02, 0.04, 0.02])
    assert columns_of(table)[0].bars == ((0.0, 25.0, 100.0), (12.5, 50.0, 25.0), (0.0, 25.0, 0.0))
    assert columns_of(Table(error=[0.1]))[0].bars == ()


def test_keys_are_the_numbers_themselves():
    column = columns_of(Table(predicted=[0.1234567, np.inf, np.nan]))[0]
    assert column.keys == ("0.1234567", "inf", "nan")
    assert column.is_number
    words = columns_of(Table(group=["2", "10"]))[0]
    assert (words.is_number, words.keys) == (False, ("2", "10"))


def test_candidates_of_one_score_carry_its_name():
    table = Table(
        recalibrator=["Temperature()", "as they are"],
        score=["log loss"] * 2,
        before=[0.5, 0.5],
        after=[0.4, 0.5],
        change=[-0.1, 0.0],
        standard_error=[0.02, 0.0],
    )
    assert shown(candidate_columns(table)) == {
        "recalibrator": ("Temperature()", "as they are"),
        "log loss": ("0.4", "0.5"),
        "change": ("-0.1 ± 0.02", ""),
    }
    several = Table(score=["log loss", "Brier"], after=[0.4, 0.1])
    assert shown(candidate_columns(several)) == {"score": ("log loss", "Brier"), "after": ("0.4", "0.1")}


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "yes"), (np.nan, ""), (3, "3"), (0.25, "0.25"), ("x", "x")]
)
def test_plain(value, text):
    assert plain(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0004, "<0.001"), (0.0006, "0.001"), (0.0994, "0.099"), (0.25, "0.25"), (1.0, "1.00"), (np.nan, "")],
)
def test_pvalue(p, text):
    assert pvalue(p) == text
