import pytest

from calibrant.plots.base import add_legend
from calibrant.plots.style import LIGHT


def test_marks_have_their_shape_and_colour(pyplot):
    _, axes = pyplot.subplots()
    marks = ("dot", "diamond", "band", "line", "dashed", "bar")
    add_legend(axes, tuple((mark, f"words of {mark}") for mark in marks), LIGHT)
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"words of {mark}" for mark in marks]
    dot, diamond, line, dashed = legend.get_lines()
    assert (dot.get_marker(), dot.get_color()) == ("o", LIGHT.accent)
    assert (diamond.get_marker(), diamond.get_color()) == ("D", LIGHT.bad)
    assert (line.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert legend.get_patches()[0].get_facecolor()[:3] == pytest.approx(
        [int(LIGHT.band[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    )


def test_no_marks_no_legend(pyplot):
    _, axes = pyplot.subplots()
    add_legend(axes, (), LIGHT)
    assert axes.get_legend() is None
