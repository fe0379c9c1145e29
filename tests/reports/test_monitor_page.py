import json
import re

import numpy as np
import pytest

from calibrant import Categorical, Monitor, monitor_report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = ["<script>alert(1)</script>", "a\u202eb\x00c", "{{ 7 * 7 }} $\\frac", "x" * 3000]


def page(monitor, **settings):
    return monitor_report(monitor, n_resamples=99, **settings).to_html()


def test_every_kind_has_its_parts_in_order(watched, kind_of_stream):
    html = page(watched(kind_of_stream))
    places = [html.index(f'id="{part}"') for part in ("verdict", "pictures", "notes", "methods", "data")]
    assert places == sorted(places)
    assert html.count("<figure") == 2
    assert not re.search(r"""(?:src|href)=["']?https?:|@import|url\(["']?http""", html)


def test_the_data_are_in_the_page(watched):
    report = monitor_report(watched(), n_resamples=99)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.to_html(), re.DOTALL)
    assert json.loads(data[1]) == json.loads(report.to_json())


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_the_same_prediction_in_every_row(p):
    assert page(Monitor(window=20).update(np.full(60, round(p)), np.full(60, p))).count("<figure") == 2


def test_hostile_names_stay_names():
    rng = np.random.default_rng(0)
    y, p = rng.choice(HOSTILE, 300), Categorical(rng.dirichlet(np.ones(4), 300), HOSTILE)
    html = page(Monitor(window=20).update(y, p), title=HOSTILE[0], notes=HOSTILE)
    assert "<script>alert" not in html
    assert html.count("<script") == 2
    assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", html)
    visible = re.sub(
        r'<script type="application/json".*?</script>|(?:title|data-key)="[^"]*"', "", html, flags=re.DOTALL
    )
    assert "\u202e" not in visible
    assert "\x00" not in visible
    assert "x" * 1001 not in visible


@pytest.mark.parametrize("n", [1, 3])
def test_a_few_rows_make_a_page(n):
    html = page(Monitor().update([1] * n, [0.5] * n))
    assert "Too few rows to tell" in html
    assert "nan" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def test_no_rows_make_a_page_without_pictures():
    html = page(Monitor())
    assert "No rows yet" in html
    assert "<figure" not in html
    assert 'href="#pictures"' not in html
