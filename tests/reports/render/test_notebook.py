import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from calibrant import evaluate
from calibrant.recalibration import Temperature
from calibrant.reports import Advice

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(1)
    p = rng.random(1400)
    y = (rng.random(1400) < np.clip(p + 0.3, 0, 1)) * 1
    by = {HOSTILE: np.array([f"{HOSTILE} {i}" for i in range(7)])[np.arange(1400) % 7]}
    advice = Advice(HOSTILE, (HOSTILE,), None, HOSTILE, HOSTILE)
    return replace(evaluate(y, p, by=by, title=HOSTILE, n_resamples=299), advice=advice)


class Tags(HTMLParser):
    """Which tags are opened and not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_summary_that_is_whole_small_and_safe(report):
    text = report._repr_html_()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not tags.seen & {"img", "script", "iframe", "link", "style"}
    assert "http" not in text.replace("http://www.w3.org", "")
    assert len(text) < 150_000
    for words in (
        report.verdict.headline,
        "Calibration error",
        "Stands out",
        "and 2 more",
        "What to do",
        "if calibrated",
    ):
        assert words in tags.text


def test_colours_follow_the_notebook(report):
    text = report._repr_html_()
    assert "--ink:currentColor" in text
    assert "prefers-color-scheme" not in text


def test_without_what_draws_pictures(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "calibrant.reports.charts", raising=False)
    monkeypatch.delitem(sys.modules, "calibrant.reports.render.html", raising=False)
    text = report._repr_html_()
    assert "<svg" not in text
    assert "What to do" in text


def test_fitted_maps(rng):
    y = rng.integers(0, 2, 50)
    fit = Temperature().fit(y, rng.random(50))
    assert "recalibration = <b>Temperature()</b>" in fit._repr_html_()
    assert "map = <b>Tempering</b>" in fit.map._repr_html_()
