import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from calibrant import Normal, evaluate
from calibrant.plots.base import Drawing, Layout
from calibrant.reports.render.html import DRAWINGS


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    forecast = evaluate(loc + 1.5 * scale * rng.normal(size=300), Normal(loc, scale), n_resamples=99)
    p = rng.random(200)
    binary = evaluate((rng.random(200) < p**3).astype(int), p, n_resamples=99)
    return {picture.kind: picture.tables for picture in (*forecast.pictures, *binary.pictures)}


KINDS = ["reliability", "pit_histogram", "coverage", "spread"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_one_svg_element_that_scales(kind, pictures):
    root = ET.fromstring(DRAWINGS[kind].to_svg(pictures[kind]))
    assert root.tag.endswith("svg")
    assert root.get("viewBox")
    assert root.get("width") is None
    assert root.get("height") is None


@pytest.mark.parametrize("kind", KINDS)
def test_colours_come_from_the_page(kind, pictures):
    svg = DRAWINGS[kind].to_svg(pictures[kind])
    assert not re.findall(r"#[0-9a-f]{6}\b", re.sub(r"(href=\"|url\()#[^\")]*", "", svg))
    assert {"var(--ink)", "var(--muted)", "var(--grid)", "var(--accent)"} <= set(re.findall(r"var\(--\w+\)", svg))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_data_give_the_same_picture(kind, pictures):
    assert DRAWINGS[kind].to_svg(pictures[kind]) == DRAWINGS[kind].to_svg(pictures[kind])


@pytest.mark.parametrize("kind", ["reliability", "pit_histogram", "coverage"])
def test_what_is_beyond_chance_has_its_colour(kind, pictures):
    assert "var(--bad)" in DRAWINGS[kind].to_svg(pictures[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_only_names_that_are_referred_to_are_left(kind, pictures):
    svg = DRAWINGS[kind].to_svg(pictures[kind])
    names = re.findall(r' id="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert all(f"#{name}" in svg for name in names)


def test_words_above_the_axes_raise_the_legend():
    drawing = Drawing(draw=lambda *_: None, layout_of=lambda _: Layout((5.0, 4.0), (0.7, 0.1, 0.5, 0.5), raised=0.4))
    assert drawing.layout({}, legend=True).raised == 0.4
    assert Drawing(draw=lambda *_: None, raised=0.2).layout({}).raised == 0.2
