import re

import pytest

from calibrant.plots.comparisons.comparison import curves_in, curves_layout
from calibrant.reports.render.html import DRAWINGS
from calibrant.results import Table

pytest.importorskip("matplotlib")


def tables(*names, kind="classes"):
    curves = {
        f"curve_{i}": Table(model=[name] * 3, predicted=[0.1, 0.5, 0.9], observed=[0.2 * i, 0.5, 0.9])
        for i, name in enumerate(names)
    }
    return {**curves, "settings": Table(kind=[kind])}


def test_every_model_has_its_line_and_name():
    svg = DRAWINGS["curves"].to_svg(tables("first", "second"))
    assert svg.startswith("<svg")
    for words in ("first", "second", "Predicted probability", "Observed frequency"):
        assert f">{words}</text>" in svg
    assert "Held by the interval" in DRAWINGS["curves"].to_svg(tables("a", kind="coverage"))


def test_curves_are_in_order_and_room_is_for_names():
    found = curves_in(tables(*"abcdefghijkl"))
    assert [str(curve["model"][0]) for curve in found] == list("abcdefghijkl")
    short, long = (curves_layout(tables(name)).size[0] for name in ("a", "a very long name of a model"))
    assert short < long


def test_hostile_names_are_text():
    svg = DRAWINGS["curves"].to_svg(tables("<script>", "$x^2$", "x" * 10_000))
    assert "<script>" not in svg
    assert len(re.findall("xxxx", svg)) < 10
