import numpy as np
import pytest

from calibrant import Ensemble
from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.long_format import LongFormat
from calibrant.io.opening import open_columns

pytest.importorskip("polars")

LINES = """day,station,member,temp,observed
2,b,0,1.0,1.5
2,b,1,2.0,1.5
1,a,0,3.0,3.5
2,b,2,0.5,1.5
1,a,1,4.0,3.5
1,a,2,3.2,3.5
"""


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "long.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def reading(path, forecast_id="day,station", **options):
    return read(path, y_true="observed", predict="Ensemble(temp)", forecast_id=forecast_id, **options)


def test_each_forecast_is_a_row_with_its_members_in_the_order_of_the_file(file):
    data = reading(file(LINES), by=["station"])
    assert isinstance(data.y_pred, Ensemble)
    np.testing.assert_array_equal(data.y_pred.members, [[1.0, 2.0, 0.5], [3.0, 4.0, 3.2]])
    np.testing.assert_array_equal(data.y_true, [1.5, 3.5])
    assert data.by["station"].tolist() == ["b", "a"]


def test_a_forecast_without_a_value_is_left_out_whole(file):
    data = reading(file(LINES.replace("2,b,1,2.0", "2,b,1,")), missing="drop")
    np.testing.assert_array_equal(data.y_pred.members, [[3.0, 4.0, 3.2]])
    assert any("1 row of 2 left out" in note for note in data.notes)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "1,a,2,3.2,3.5\n",
            "",
            r"1 forecast has not \d members as the others, first '\d, [ab]' with \d: leave these lines out",
        ),
        (
            "2,b,2,0.5,1.5",
            "2,b,2,0.5,1.6",
            "observed must say the same on every line of a forecast, and differs within '2, b'",
        ),
    ],
)
def test_lines_that_do_not_fit_are_named(file, old, new, words):
    with pytest.raises(InputError, match=words):
        reading(file(LINES.replace(old, new)))


def test_a_column_that_no_lines_share_is_refused(file):
    with pytest.raises(InputError, match="forecast_id 'day,station,member' differs from line to line"):
        reading(file(LINES), "day,station,member")


def test_a_forecast_with_fewer_members_than_most_is_named(file):
    more = LINES + "3,a,0,1.0,1.0\n3,a,1,1.1,1.0\n"
    with pytest.raises(InputError, match="has not 3 members as the others, first '3, a' with 2"):
        reading(file(more))


def test_forecasts_of_other_levels_are_refused(file):
    text = "day,value,level,observed\n1,0,0.1,1\n1,1,0.9,1\n2,0,0.2,1\n2,1,0.9,1\n"
    with pytest.raises(InputError, match="Quantiles: every forecast needs a line for each of the same levels"):
        read(file(text), y_true="observed", predict="Quantiles(value, level)", forecast_id="day")


def test_lines_of_forecasts_are_not_written(file, tmp_path):
    table = LongFormat(open_columns(file(LINES)), "day,station")
    assert (table.width("temp"), table.width("observed")) == (3, 1)
    with pytest.raises(InputError, match="forecasts with a line per member cannot be written to out.csv"):
        table.write({}, tmp_path / "out.csv")
