import pytest

from calibrant import ECE, Brier, ExactTest, Sweep
from calibrant.cli.commands import comment_of_estimates, comment_of_test
from calibrant.results import Table

Y, P = [1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20
SLICES = Table(group=["a|b"], value=[0.5])


def tables(text):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    return sum(token.type == "table_open" for token in parser.parse(text))


def test_estimates_in_a_table():
    estimates = [Brier()(Y, P), ECE()(Y, P), ECE(Sweep())(Y, P)]
    text = comment_of_estimates(estimates, [("Brier()", "<site>", SLICES)])
    assert tables(text) == 2
    assert "| Brier() | **" in text
    assert "no interval: the bins depend on what happened" in text
    assert "**Brier() by &lt;site&gt;**" in text
    assert "a\\|b" in text


def test_the_decision_of_a_test_comes_first():
    result = ExactTest(ECE(), 99)(Y, P)
    for alpha, head in (
        (0.999, "### ❌ Not calibrated"),
        (1e-9, "### ✅ No evidence against calibration at the level 1e-09"),
    ):
        text = comment_of_test(result, alpha, {"site": SLICES})
        assert text.startswith(head)
        assert tables(text) == 2
        assert "**by site**" in text
