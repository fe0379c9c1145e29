import polars
import pytest

from calibrant._validate import InputError
from calibrant.io import Batches, read
from calibrant.io.written_numbers import tidied

CASES = [
    (["0,5", "0,25"], [0.5, 0.25]),
    (["1,234", "0,5"], [1.234, 0.5]),
    ([" 0.5 ", "1e-3"], [0.5, 0.001]),
    (["85%", "7,5 %", "100%"], [0.85, 0.075, 1.0]),
    (["0.5", "N/A", "", "-", "nan"], [0.5, None, None, None, None]),
    ([",5", "-0,5"], [0.5, -0.5]),
]


@pytest.mark.parametrize(("text", "numbers"), CASES)
def test_numbers(text, numbers):
    assert tidied(polars.Series("p", text), None, "number", {}).to_list() == numbers


@pytest.mark.parametrize("text", [["1,234", "2,345"], ["0.5", "high"], ["1,2,3", "0,5"], ["01.02.2026", "0"]])
def test_what_is_none_stays(text):
    assert tidied(polars.Series("p", text), None, "number", {}).to_list() == text


def test_what_is_said_decides():
    column = polars.Series("p", ["1,234", "2,345"])
    assert tidied(column, ",", "number", {}).to_list() == [1.234, 2.345]
    assert tidied(column, ".", "number", {}).to_list() == [1234, 2345]


def test_labels_stay_as_they_are():
    for text in (["007", "1"], ["yes", "no"], ["NA", "DE"]):
        assert tidied(polars.Series("y", text), None, "label", {}).to_list() == text
    assert tidied(polars.Series("y", ["yes", "N/A"]), None, "label", {}).to_list() == ["yes", None]
    assert tidied(polars.Series("y", ["1", "0", "N/A"]), None, "label", {}).to_list() == [1, 0, None]
    assert tidied(polars.Series("y", ["yes", "N/A"]), None, "group", {}).to_list() == ["yes", "N/A"]


def test_missing_rows_are_refused_or_left_out_and_told(tmp_path):
    (tmp_path / "x.csv").write_text("y,p,w,s\n1,0.5,1,a\n0,N/A,2,b\nN/A,0.3,1,a\n0,0.4,,a\n1,0.9,3,\n0,0.1,4,b\n")
    with pytest.raises(
        InputError, match="x.csv: column 'y' has missing values in 1 of 6 rows, first in row 3: .* missing='drop'"
    ):
        read(tmp_path / "x.csv", y_true="y", y_pred="p")
    data = read(tmp_path / "x.csv", by=["s"], sample_weight="w", missing="drop")
    assert data.y_true.tolist() == [1, 0]
    assert data.sample_weight.tolist() == [1, 4]
    assert data.by["s"].tolist() == ["a", "b"]
    assert data.notes == ("4 rows of 6 left out, without a value in 'y' (1), 'p' (1), 's' (1), 'w' (1)",)
    with pytest.raises(InputError, match="missing must be 'fail' or 'drop'; got 'ignore'"):
        read(tmp_path / "x.csv", missing="ignore")


def test_no_row_is_left(tmp_path):
    (tmp_path / "x.csv").write_text("y,p\n1,\n,0.5\n")
    with pytest.raises(InputError, match="every row lacks a value in one of y, p"):
        read(tmp_path / "x.csv", missing="drop")


def test_streams_take_percent_signs_and_said_commas(tmp_path):
    (tmp_path / "x.csv").write_text('y,p\n1,"85%"\n0,"20,5%"\n')
    (batch,) = Batches(tmp_path / "x.csv", decimal=",")
    assert batch.y_pred.probability(1).tolist() == [0.85, 0.205]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["1,234", "2,345"],
            "'1,234', which may mean two numbers: say decimal=',' if the comma is a decimal one, decimal='.' if",
        ),
        (["high", "low"], "'high', no number: say which probability each word means, scale='high=[?],low=[?]'"),
        (
            ["0.5", "0.5.1"],
            "holds '0.5.1', no number, in row 2: repair it, or name columns of numbers alone",
        ),
    ],
)
def test_text_that_is_no_number(tmp_path, values, message):
    (tmp_path / "x.csv").write_text("y;p\n" + "".join(f"{i % 2};{v}\n" for i, v in enumerate(values)))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.csv")
