import pytest

from calibrant.lab.papers import pictures
from calibrant.results import Table


@pytest.fixture
def table():
    return Table(
        model=["a", "a", "b", "b", "b", "b"],
        test=["x", "x", "x", "x", "y", "y"],
        n=[10, 100, 10, 100, 10, 100],
        rate=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        published=[0.1, 0.2, float("nan"), float("nan"), 0.5, float("nan")],
    )


def test_a_panel_a_value_and_a_line_a_name(table):
    figure = pictures.lines(table, panels=["model"], x="n", y="rate", line="test", published="published", columns=3)
    first, second, spare = figure.axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["a", "b"]
    assert not spare.axison
    drawn = {line.get_label(): list(line.get_ydata()) for line in second.get_lines() if line.get_label() in "xy"}
    assert drawn == {"x": [0.3, 0.4], "y": [0.5, 0.6]}
    assert [line.get_marker() for line in first.get_lines()].count("x") == 1  # the published values


def test_svg_is_the_same_text_every_time(table):
    texts = {pictures.svg(pictures.lines(table, panels=["model"], x="n", y="rate", line="test")) for _ in range(2)}
    assert len(texts) == 1
    assert texts.pop().startswith("<?xml")
