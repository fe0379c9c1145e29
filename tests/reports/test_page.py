import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from calibrant import Categorical, evaluate, report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "{{ 7 * 7 }}",
    "$\\frac{",
    "naïve & ‮rtl 🙂",
    "x" * 300,
]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.handlers = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href"):
                self.links.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


@pytest.fixture
def hostile(rng):
    p = rng.dirichlet(np.ones(len(HOSTILE)), 120)
    y = rng.choice(HOSTILE, 120)
    return evaluate(
        y, Categorical(p, labels=HOSTILE), by={HOSTILE[0]: rng.choice(HOSTILE, 120)}, title=HOSTILE[1], n_resamples=99
    )


def test_names_with_html_in_them_are_escaped(hostile):
    text = hostile.to_html()
    page = Page(text)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.handlers == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text


def test_the_page_asks_the_network_for_nothing(hostile):
    text = hostile.to_html()
    for link in Page(text).links:
        assert link.startswith(("#", "data:")), link
    assert not re.search(r"@import|url\((?!#)", text)


def test_the_data_are_inside(hostile):
    encoded = re.search(r'href="data:application/json;base64,([^"]+)"', hostile.to_html())[1]
    assert json.loads(base64.b64decode(encoded)) == json.loads(hostile.to_json())


def test_every_part_is_there(hostile):
    text = hostile.to_html()
    for part in (
        "What was claimed, what happened",
        "The numbers",
        "Each class",
        "How this was computed",
        "<svg",
        "@media print",
    ):
        assert part in text
    assert text.count("<h2>") >= 4
    for x in hostile.numbers:
        assert x.label in text


def test_infinite_scores_can_be_drawn():
    text = evaluate([1, 0, 1], [0.0, 0.5, 0.9], n_resamples=99).to_html()
    assert "inf" in text


def test_report_writes_the_page(tmp_path, rng):
    p = rng.random(50)
    path = tmp_path / "page.html"
    result = report((rng.random(50) < p).astype(int), p, path, title="Mine", n_resamples=99)
    assert path.read_text(encoding="utf-8") == result.to_html()
    assert "<title>Mine</title>" in path.read_text(encoding="utf-8")
