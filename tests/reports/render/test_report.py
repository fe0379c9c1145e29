import json

import numpy as np
import pytest

from calibrant import evaluate
from calibrant.reports.render.html import to_html
from calibrant.reports.render.markdown import to_markdown
from calibrant.reports.render.notebook import to_notebook


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    return evaluate((rng.random(200) < p) * 1, p, n_resamples=99, advice=False)


def test_a_report_shows_itself_in_every_form(report):
    assert report.to_html() == to_html(report)
    assert report.to_markdown() == to_markdown(report)
    assert report._repr_html_() == to_notebook(report)
    assert report.verdict.headline in report.to_markdown()
    assert json.loads(report.to_json())["verdict"]["headline"] == report.verdict.headline
