import numpy as np
import pytest

from calibrant import ECE, SKCE, EqualMass
from calibrant.kernels import Exponential
from calibrant.results import Estimate, Table, brief, how_many, number, percent
from calibrant.results import text as markup

HOSTILE = {
    "a pipe": "a|b",
    "a new line": "a\nb",
    "a script": "<script>alert(1)</script>",
    "a comment": "<!-- hidden",
    "emphasis": "*a* **b** ~~c~~ _d_ __e__",
    "code": "`a` ```b",
    "a link": "[a](https://example.org) ![b](x.png)",
    "an entity": "&lt;b&gt; &#64;",
    "a backslash": r"a\| b\\| \<b>",
    "a change of direction": "abc \u202egnp.exe",
    "control characters": "a\x00b\x1b[31mred",
}


def cells(text):
    """Cells of the body of the only table, as a browser would show them."""
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    inside = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "td_open"]
    assert all(child.type == "text" or child.type == "text_special" for cell in inside for child in cell.children)
    return ["".join(child.content for child in cell.children).replace(markup.JOINER, "") for cell in inside]


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_names_are_shown_as_they_are_in_one_cell(case):
    name = HOSTILE[case]
    shown = cells(Table(group=[name], n=[3]).to_markdown())
    assert shown == [markup.plain_text(name), "3"]


def test_nobody_is_called_and_nothing_is_linked():
    text = markup.escaped("@octocat #12 https://example.org www.example.org")
    assert text.replace(markup.JOINER, "") == "@octocat #12 https://example.org www.example.org"
    for link in ("@octocat", "#12", "https://", "www."):
        assert link not in text


def test_what_is_harmless_stays_readable():
    for text in ("p_0 … p_9", "0.1 to 0.2", "R&D", "[0.1, 0.2)", "a - b", "50 %", "中文 עברית"):
        assert markup.escaped(text) == text


def test_long_names_are_cut():
    assert len(markup.escaped("x" * 10_000)) == markup.MAX_LETTERS
    assert markup.plain_text("👩‍🔬") == "👩‍🔬"  # joined by an invisible letter


def test_details_unfold():
    assert markup.details("More", "text").startswith("<details>\n<summary>More</summary>\n\ntext\n\n")


def test_results_as_comments():
    text = ECE()([1, 0, 1, 1], [0.9, 0.2, 0.7, 0.6]).to_markdown()
    assert text.startswith("**ECE = 0.25**\n\n| | |\n|---|---|\n")
    assert "| n | 4 |" in text


def test_a_table_without_rows():
    assert Table(group=[], n=[]).to_markdown().splitlines()[0] == "| group | n |"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.123456, "0.1235"),
        (12345678, "12,345,678"),
        (1234.56, "1,234.6"),
        (np.inf, "∞"),
        (-np.inf, "-∞"),
        (np.nan, "NaN"),
    ],
)
def test_numbers_as_people_read_them(x, text):
    assert number(x) == text


def test_settings_are_brief_for_people():
    assert brief(ECE()) == "ECE()"
    assert brief(ECE(EqualMass())) == "ECE(bins=EqualMass(n_bins=15))"
    assert brief(SKCE(Exponential(1 / 3), block=5)) == "SKCE(on_predictions=Exponential(lengthscale=0.333333), block=5)"
    assert brief(((1.0,), "x")) == "((1,), 'x')"
    estimate = Estimate("ECE", 0.25, 40, ECE(EqualMass()))
    assert "ECE(bins=EqualMass(n_bins=15))" in repr(estimate)
    assert estimate.to_dict()["estimator"] == repr(ECE(EqualMass()))  # all digits, for programs


def test_one_is_singular():
    assert [how_many(n, "row") for n in (0, 1, 2, 12_345)] == ["0 rows", "1 row", "2 rows", "12,345 rows"]
    assert [how_many(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]


def test_what_rounding_leaves_of_nothing_is_nothing():
    assert [percent(x) for x in (0.0, -0.0, 4e-16, -4e-16)] == ["0.0 %"] * 4
    assert percent(1e-9) == "1e-07 %"
