import numpy as np
import pytest

from calibrant import Monitor
from calibrant.plots.sequential.evidence_plot import draw_marks, label_marks, marks_of, place_of
from calibrant.plots.style import LIGHT
from calibrant.results import Table


def test_an_alarm_has_two_rows():
    p = np.random.default_rng(0).random(300)
    monitor = Monitor().update(np.zeros(300, dtype=int), p)
    marks = marks_of(monitor)
    assert marks["mark"].tolist() == ["since", "alarm"]
    assert marks["row"].tolist() == [monitor.alarm.since, monitor.alarm.row]
    assert marks_of(Monitor()).n_rows == 0


@pytest.mark.parametrize(("rows", "sides"), [((10, 30), ["left", "left"]), ((40, 90), ["left", "right"])])
def test_words_stand_on_the_side_with_room(rows, sides, pyplot):
    axes = pyplot.figure().add_subplot()
    axes.set_xlim(0, 100)
    marks = Table(mark=["since", "alarm"], row=rows)
    draw_marks(axes, marks, LIGHT)
    label_marks(axes, marks, LIGHT)
    assert [text.get_ha() for text in axes.texts] == sides
    assert [text.get_text() for text in axes.texts] == [f"since about row {rows[0]}", f"alarm at row {rows[1]}"]
    assert [line.get_xdata()[0] for line in axes.lines] == list(rows)
    assert axes.texts[0].get_position()[1] > axes.texts[1].get_position()[1]


def test_other_axes_have_other_places():
    assert place_of({"row": 7}) == 7
    assert place_of({"row": 7, "place": 0.5}) == 0.5
