import xml.etree.ElementTree as ET

import numpy as np
import pytest

from calibrant import Normal, evaluate

pytest.importorskip("matplotlib")

from calibrant.reports.charts import COLOURS
from calibrant.reports.forecast_charts import CHARTS


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    return evaluate(loc + 1.5 * scale * rng.normal(size=300), Normal(loc, scale), n_resamples=99)


@pytest.mark.parametrize("kind", ["levels", "coverage", "spread"])
def test_it_is_one_svg_element_in_the_colours_of_the_page(kind, report):
    table = report.picture(kind).tables[kind]
    svg = CHARTS[kind](table)
    assert ET.fromstring(svg).tag.endswith("svg")
    assert not any(stand_in in svg for stand_in in COLOURS.values())
    assert "var(--accent)" in svg
    assert CHARTS[kind](table) == svg


def test_what_is_beyond_chance_has_its_colour(report):
    assert "var(--bad)" in CHARTS["levels"](report.picture("levels").tables["levels"])
    assert "var(--bad)" in CHARTS["coverage"](report.picture("coverage").tables["coverage"])
