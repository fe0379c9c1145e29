import copy
import pickle

import numpy as np
import pytest

from calibrant import ECE
from calibrant.results import Table


@pytest.fixture
def table():
    return Table(group=["a_1 & co", "b%"], value=[0.5, np.nan], n=[1200, -3])


def test_columns_must_agree():
    with pytest.raises(ValueError, match=r"different lengths: \[1, 2\]"):
        Table(a=[1], b=[1, 2])


def test_rows_and_columns():
    table = Table(group=["a", "b"], value=[0.5, 0.25])
    assert list(table.rows())[1] == {"group": "b", "value": 0.25}
    assert table.n_rows == 2
    assert dict(table)["value"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(a=1),
        lambda t: t.pop("n"),
        lambda t: t.clear(),
        lambda t: t.setdefault("a", 1),
        lambda t: t.popitem(),
        lambda t: t.__setitem__("a", 1),
        lambda t: t.__delitem__("n"),
        lambda t: t.__ior__({"a": 1}),
    ],
)
def test_it_does_not_change(table, change):
    with pytest.raises(TypeError, match=r"a table does not change; dict\(table\) is a copy that does"):
        change(table)
    assert list(table) == ["group", "value", "n"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_are_tables(table, copied):
    found = copied(table)
    assert (type(found), repr(found), found.n_rows) == (Table, repr(table), 2)


def test_data_frames_take_it_as_it_is(table):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pandas.DataFrame(table), table.to_pandas()):
        assert (list(frame), frame.shape, frame["n"].sum()) == (["group", "value", "n"], (2, 3), 1197)
    for frame in (polars.DataFrame(table), table.to_polars()):
        assert (frame.columns, frame.shape, frame["n"].sum()) == (["group", "value", "n"], (2, 3), 1197)
    bins = ECE()([1, 0, 1], [0.9, 0.2, 0.6]).table
    assert pandas.DataFrame(bins).equals(bins.to_pandas())


def test_latex_shows_names_as_they_are(table):
    assert table.to_latex().splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"group & value & n \\",
        r"\midrule",
        r"a\_1 \& co & 0.5 & 1,200 \\",
        r"b\% &  & $-$3 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    hostile = Table({"\\~^#${}": [np.inf, -np.inf]}).to_latex().splitlines()
    assert hostile[2] == r"\textbackslash{}\textasciitilde{}\textasciicircum{}\#\$\{\} \\"
    assert hostile[4:6] == [r"$\infty$ \\", r"$-$$\infty$ \\"]


def test_markdown_leaves_empty_what_is_not_known(table):
    assert table.to_markdown().splitlines()[2:] == [r"| a_1 & co | 0.5 | 1,200 |", "| b% | | -3 |"]


def test_a_column_has_a_value_per_row():
    with pytest.raises(ValueError, match="columns must hold a value per row; 'b' is a single value"):
        Table(a=[1], b=2)
