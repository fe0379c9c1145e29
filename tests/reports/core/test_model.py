import json

import pytest

from calibrant import evaluate
from calibrant.reports import Reason

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@pytest.fixture
def report(rng):
    p = rng.random(60)
    return evaluate((rng.random(60) < p).astype(int), p, n_resamples=99, title="A <b>title</b>")


def test_it_prints_its_verdict_and_numbers(report):
    text = repr(report)
    assert text.startswith("A <b>title</b> (binary, 60 rows)\nThese probabilities agree")
    assert "Calibration error" in text
    assert "if calibrated" in text


def test_it_saves_a_page_or_its_data(report, tmp_path):
    page, data = report.save(tmp_path / "x.html"), report.save(tmp_path / "x.json")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(data.read_text(encoding="utf-8"))["kind"] == "report"


def test_a_percent_is_a_percent(report):
    assert report.numbers[0].text(0.0123) == "1.23 %"
    assert report.numbers[1].text(0.0123) == "0.0123"


def test_reasons_are_their_words():
    assert repr(Reason.SLICE) == "'slice'"
