import pytest

from calibrant.results import Table
from studies import pictures


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


@pytest.fixture
def signed():
    return Table(
        world=["a"] * 4 + ["b"] * 3,
        kind=["x", "x", "y", "y", "x", "x", "y"],
        bins=["2", "4", "2", "4", "2", "4", "2"],
        n=[1000] * 7,
        bias=[-3.0, -0.5, 0.0, 2.0, 12.0, float("nan"), 1.0],
    )


def test_a_map_a_pair_with_the_numbers_of_its_cells(signed):
    figure = pictures.heatmaps(signed, down="world", across="kind", y="bins", x="n", value="bias", limit=3)
    maps, bar = figure.axes[:4], figure.axes[4]
    assert [axes.get_title(loc="left") for axes in maps] == ["x", "y", "", ""]
    assert [axes.get_ylabel() for axes in maps] == ["a\nbins", "", "b\nbins", ""]
    assert [text.get_text() for text in maps[0].texts] == ["−3.00", "−0.50"]
    assert [text.get_text() for text in maps[2].texts] == ["12.00"]  # what is not known has no number
    assert [text.get_text() for text in maps[3].get_xticklabels()] == ["1,000"]
    assert maps[0].yaxis_inverted()  # the first at the top
    assert bar.get_ylabel() == "bias"


def test_colours_are_centred_at_zero_and_end_at_the_limit(signed):
    def ends(**options):
        figure = pictures.heatmaps(signed, down="world", across="kind", y="bins", x="n", value="bias", **options)
        return [figure.axes[i].collections[0].get_clim() for i in range(4)]

    assert ends() == [(-12, 12)] * 4
    assert ends(limit=3, label="bias in points") == [(-3, 3)] * 4


def test_of_many_sizes_some_are_named():
    from studies.pictures import _named_ticks

    assert _named_ticks(list(range(9))) == list(range(9))
    assert _named_ticks(list(range(15))) == [2, 5, 8, 11, 14]


def test_bars_are_two_errors_or_limits():
    from studies.pictures import _bar

    row = {"y": 3.0, "error": 0.5, "low": 1.0, "high": 3.5}
    assert _bar(row, "y", "error") == (1.0, 1.0)
    assert _bar(row, "y", ("low", "high")) == (2.0, 0.5)
