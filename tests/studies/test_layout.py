import numpy as np

from calibrant.results import Table
from studies.layout import agreement, beside, wide


def test_a_row_a_combination_and_a_column_a_size():
    table = Table(model=["a", "b", "a"], d=[1, 1, 1], n=[4, 4, 1000], z=[0.1, 0.2, 0.3])
    shown = wide(table, ["model", "d"], lambda row: str(row["z"]))
    assert list(shown) == ["model", "d", "n = 4", "n = 1,000"]
    assert list(shown.rows())[1] == {"model": "b", "d": 1, "n = 4": "0.2", "n = 1,000": ""}


def test_columns_may_be_others_than_sizes():
    table = Table(model=["a", "a"], iteration=[10, 1000], value=[1, 2])
    assert list(wide(table, ["model"], lambda row: str(row["value"]), across="iteration").rows()) == [
        {"model": "a", "iteration = 10": "1", "iteration = 1,000": "2"}
    ]


def test_published_values_stand_in_parentheses():
    assert beside(1.0, 2.0, 1) == "1.0 (2.0)"
    assert beside(1.0, np.nan, 1) == "1.0"


def test_agreement_counts_what_can_be_compared():
    text = agreement(Table(z=[1.0, np.nan, 3.0], error_z=[0.5, 0.5, 0.5], deviation=[-0.5, np.nan, 0.1]), 4.0, "steps")
    assert "* `z`: 2 cells compared, mean 2.00, largest 3.00" in text
    assert "* `error_z`: 3 cells compared, mean 0.50, largest 0.50" in text
    assert "* deviation: mean 0.300, largest 0.500" in text
    assert "in steps (bound 4.0)" in text
