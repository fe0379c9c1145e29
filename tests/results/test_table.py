import pytest

from calibrant.results import Table


def test_table_columns_must_agree():
    with pytest.raises(ValueError, match=r"different lengths: \[1, 2\]"):
        Table(a=[1], b=[1, 2])


def test_table_gives_rows_and_columns():
    table = Table(group=["a", "b"], value=[0.5, 0.25])
    assert list(table.rows())[1] == {"group": "b", "value": 0.25}
    assert table.n_rows == 2
    assert dict(table)["value"].tolist() == [0.5, 0.25]
