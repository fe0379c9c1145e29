import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from calibrant import evaluate

pytest.importorskip("matplotlib")

from calibrant.reports.charts import COLOURS, reliability


def picture_of(report):
    return report.picture("reliability").tables


@pytest.fixture
def chart(rng):
    p = rng.random(200)
    report = evaluate((rng.random(200) < p**3).astype(int), p, n_resamples=99)
    return report, reliability(**picture_of(report))


def test_it_is_one_svg_element_that_scales(chart):
    root = ET.fromstring(chart[1])
    assert root.tag.endswith("svg")
    assert root.get("viewBox")
    assert root.get("width") is None
    assert root.get("height") is None


def test_colours_come_from_the_page(chart):
    for name, stand_in in COLOURS.items():
        assert stand_in not in chart[1]
        assert f"var(--{name})" in chart[1]
    assert not re.findall(r"#(?!000000|ffffff)[0-9a-f]{6}\b", re.sub(r"(href=\"|url\()#[^\")]*", "", chart[1]))


def test_the_same_data_give_the_same_picture(chart):
    report, svg = chart
    assert reliability(**picture_of(report)) == svg


def test_close_predictions_are_drawn_close_up(rng):
    p = 0.01 + 0.02 * rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    report = evaluate(y, p, n_resamples=99)
    assert report.pictures[0].tables["curve"].n_rows == 15
    labels = [float(t) for t in re.findall(r">(0\.\d+)</text>", reliability(**picture_of(report)))]
    assert max(labels) < 0.2
    assert np.isfinite(labels).all()
