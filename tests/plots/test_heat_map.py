import numpy as np
import pytest

from calibrant.plots.heat_map import depth_of, draw_cells, draw_scale, is_slanted, label_cells, limit_of
from calibrant.plots.style import LIGHT


def test_cells_have_the_shade_of_their_value(pyplot):
    _, axes = pyplot.subplots()
    values = np.array([[0.1, -0.2], [np.nan, 0.0]])
    draw_cells(axes, values, LIGHT, limit=0.2)
    (cells,) = axes.collections
    drawn = [tuple(round(255 * part) for part in colour[:3]) for colour in cells.get_facecolors()]
    expected = [LIGHT.shade(v) for v in (0.5, -1.0, 0.0)]
    assert drawn == [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in expected]
    assert axes.get_ylim() == (1.5, -0.5)


def test_the_scale_has_both_ends(pyplot):
    _, axes = pyplot.subplots()
    draw_scale(axes, LIGHT, 0.2, ("less", "points", "more"))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["−20", "points", "+20"]
    assert [text.get_text() for text in axes.texts] == ["less", "more"]


def test_long_names_are_slanted_and_cut(pyplot):
    _, axes = pyplot.subplots()
    names = ["a rather long name of a class"] * 3
    assert is_slanted(names)
    assert not is_slanted(["a", "b", ""])
    assert depth_of(names) > depth_of(["a"])
    label_cells(axes, ["x"], names)
    assert {label.get_text() for label in axes.get_xticklabels()} == {"a rather l…class"}
    assert axes.get_xticklabels()[0].get_rotation() == 40


@pytest.mark.parametrize(("largest", "limit"), [(0.0, 0.02), (0.019, 0.02), (0.13, 0.2), (0.3, 0.3), (0.97, 1.0)])
def test_shades_end_at_round_numbers(largest, limit):
    assert limit_of(np.array([largest, -largest])) == pytest.approx(limit)
