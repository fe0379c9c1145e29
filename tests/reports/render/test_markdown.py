from dataclasses import replace

import numpy as np
import pytest

from calibrant import evaluate
from calibrant.reports import Advice
from calibrant.reports.render.markdown import MARKS
from calibrant.results import Table

HOSTILE = "<script>alert(1)</script>|`x`\n# heading @octocat"


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(1)
    p = rng.random(1400)
    y = (rng.random(1400) < np.clip(p + 0.3, 0, 1)) * 1
    sites = [f"{HOSTILE} {i}" for i in range(7)]
    by = {HOSTILE: np.array(sites)[np.arange(1400) % 7]}
    advice = Advice(
        "Recalibration helps.",
        ("Log loss falls.",),
        Table(method=[HOSTILE], loss=[0.5]),
        "calibrant recalibrate x.csv --by '```'",
        "code",
    )
    return replace(evaluate(y, p, by=by, title=HOSTILE, n_resamples=299), advice=advice)


def test_the_order_of_a_comment(report):
    text = report.to_markdown()
    marks = [f"### {MARKS[report.verdict.tone]} ", "| Calibration error | **", "**Stands out**", "**What to do:**"]
    places = [text.index(mark) for mark in [*marks, "<details>", "**How this was computed**"]]
    assert places == sorted(places)
    assert "and 2 more below" in text
    assert "Log loss falls." in text


def test_names_are_text_and_tables_are_tables(report):
    text = report.to_markdown()
    assert "<script>" not in text
    assert "@octocat" not in text
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    assert sum(token.type == "heading_open" for token in tokens) == 1
    assert [token.content.strip() for token in tokens if token.type == "html_block"] == [
        "<details>\n<summary>All slices, notes and settings</summary>",
        "</details>",
    ]
    assert sum(token.type == "table_open" for token in tokens) == 5  # numbers, flagged, slices, recalibrators, settings
    code = [token.content for token in tokens if token.type == "fence"]
    assert code == [f"{report.advice.command}\n"]
    inline = [child.type for token in tokens for child in token.children or []]
    assert set(inline) <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}


def test_without_slices_and_advice():
    text = evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, n_resamples=99, advice=False).to_markdown()
    assert "Stands out" not in text
    assert "What to do" not in text
    assert text.endswith("</details>\n")


def test_saved_by_its_ending(report, tmp_path):
    path = report.save(tmp_path / "comment.md")
    assert path.read_text("utf-8") == report.to_markdown()
