from dataclasses import replace

import pytest

from calibrant.reports import Picture
from calibrant.reports.render.html import DRAWINGS, Chart, chart_of, charts_of, drawn, placed
from calibrant.results import Table

LEVELS = Table(lower=[0.0, 0.5], upper=[0.5, 1.0], observed=[0.4, 0.6], low=[0.3, 0.3], high=[0.7, 0.7])
NARROW = Chart("", "", "", "", (), is_wide=False)
WIDE = replace(NARROW, is_wide=True)


@pytest.fixture
def picture():
    pytest.importorskip("matplotlib")
    return Picture("pit_histogram", "Levels", "How to read it", "What it shows", {"pit_histogram": LEVELS})


def test_a_chart_is_the_picture_with_its_drawing(picture):
    chart = chart_of(picture)
    assert (chart.title, chart.caption, chart.description) == ("Levels", "How to read it", "What it shows")
    assert chart.svg == drawn(picture)
    assert chart.svg.startswith("<svg")
    assert chart.legend == DRAWINGS["pit_histogram"].marks(picture.tables)
    assert chart.legend
    assert chart.width == pytest.approx(72 * 5.2, abs=0.01)
    assert NARROW.width == 0
    assert not chart.scrolls
    assert replace(NARROW, svg='<svg viewBox="0 0 561.6 300">').scrolls
    assert [c.is_alone for c in charts_of([picture, picture, picture], after=1)] == [False, False, False]


@pytest.mark.parametrize(
    ("charts", "after", "alone"),
    [
        ([NARROW], 0, [True]),
        ([NARROW], 1, [False]),
        ([NARROW, NARROW], 1, [False, True]),
        ([NARROW, WIDE, NARROW, NARROW, NARROW], 1, [False, False, False, False, True]),
        ([NARROW, WIDE], 0, [True, False]),
        ([WIDE], 0, [False]),
        ([], 1, []),
    ],
)
def test_a_chart_without_neighbour_is_alone(charts, after, alone):
    assert [chart.is_alone for chart in placed(charts, after=after)] == alone
