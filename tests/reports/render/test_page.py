import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from calibrant import Categorical, evaluate, report
from calibrant.reports import Advice
from calibrant.results import Table

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "{{ 7 * 7 }}",
    "$\\frac{",
    "naïve & ‮rtl 🙂",
    "x" * 10_000,
    "nul\x00 and line\nbreak",
    "שלום עולם",
    "</script><!--",
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
    assert page.tags.count("script") == 2  # its own, and the data
    assert "img" not in page.tags
    assert page.handlers == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text


def test_only_the_scripts_of_the_page_may_run(hostile):
    text = hostile.to_html()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;")


def test_names_can_be_read(hostile):
    text = hostile.to_html()
    assert "\x00" not in text
    assert "nul␀ and line" in text
    assert "\u202e" not in text
    assert "<bdi>שלום עולם</bdi>" in text
    assert f"{'x' * 53} … 9,920 more … {'x' * 27}</bdi>" in text
    assert f'<bdi title="{"x" * 10_000}">' in text  # all of it, for who asks


def test_the_page_asks_the_network_for_nothing(hostile):
    text = hostile.to_html()
    for link in Page(text).links:
        assert link.startswith(("#", "data:")), link
    assert not re.search(r"@import|url\((?!#)", text)


def test_the_data_are_inside_once(hostile):
    text = hostile.to_html()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data) == json.loads(hostile.to_json())
    assert text.count("calibrant/1") == 1


def test_every_part_is_there_in_order(hostile):
    advice = Advice("Do <this>.", ("A sentence.",), Table(recalibrator=["a"], after=[0.1]), "run <this>", "import this")
    text = replace(hostile, advice=advice).to_html()
    parts = ["verdict", "numbers", "pictures", "slices", "advice", "notes", "methods", "data"]
    places = [text.index(f'id="{part}"') for part in parts]
    assert places == sorted(places)
    assert re.findall(r'<a href="#(\w+)">', text) == parts[1:-1]
    assert "<pre><code>run &lt;this&gt;</code></pre>" in text
    for x in hostile.numbers:
        assert x.label in text
        assert x.meaning in text


def test_parts_that_are_missing_have_no_link():
    text = evaluate([0, 1, 1], [0.2, 0.7, 0.6], n_resamples=99, advice=False).to_html()
    assert re.findall(r'<a href="#(\w+)">', text) == ["numbers", "pictures", "notes", "methods"]


def test_infinite_scores_can_be_drawn():
    text = evaluate([1, 0, 1], [0.0, 0.5, 0.9], n_resamples=99).to_html()
    assert "inf" in text


def test_report_writes_the_page(tmp_path, rng):
    p = rng.random(50)
    path = tmp_path / "page.html"
    result = report((rng.random(50) < p).astype(int), p, path, title="Mine", n_resamples=99)
    assert path.read_text(encoding="utf-8") == result.to_html()
    assert "<title>Mine</title>" in path.read_text(encoding="utf-8")
