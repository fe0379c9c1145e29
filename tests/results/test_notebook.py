import numpy as np

from calibrant import ECE, ExactTest
from calibrant.results import Interval, Table
from calibrant.results import text as markup

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


def test_everything_is_escaped():
    shown = [
        markup.card(HOSTILE, HOSTILE, [(HOSTILE, HOSTILE)]),
        Table({HOSTILE: [HOSTILE]})._repr_html_(),
        Interval(0.0, 1.0, 0.95, HOSTILE)._repr_html_(),
    ]
    for text in shown:
        assert "<img" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;" in text


def test_nothing_comes_from_elsewhere_and_no_theme_is_assumed():
    result = ExactTest(ECE(), n_resamples=99)([1, 0, 1, 1], [0.9, 0.2, 0.7, 0.6])
    for text in (result._repr_html_(), result.estimate._repr_html_(), result.estimate.table._repr_html_()):
        for word in ("http", "<script", "<link", "url(", "background", "color:#"):
            assert word not in text
        assert len(text) < 12_000


def test_long_tables_show_both_ends():
    text = Table(i=np.arange(1000))._repr_html_()
    assert text.count("<tr>") == 1 + markup.MAX_ROWS + 1
    assert "… 960 more rows …" in text
    assert ">19<" in text
    assert ">980<" in text
    assert "more rows" not in Table(i=np.arange(40))._repr_html_()


def test_numbers_stand_to_the_right():
    text = Table(group=["a"], value=[0.5])._repr_html_()
    assert f"<td style='{markup.NUMBER}'><bdi>0.5</bdi></td>" in text
    assert f"<td style='{markup.TEXT}'><bdi>a</bdi></td>" in text


def test_intervals():
    assert "95 % interval = <b>0.1 to 0.2</b>" in Interval(0.1, 0.2, 0.95, "bootstrap")._repr_html_()
