import io

import pytest

from calibrant import evaluate
from calibrant.results import Table

display = pytest.importorskip("calibrant.cli.display")
console = pytest.importorskip("calibrant.cli.console")


@pytest.fixture
def terminal(monkeypatch):
    """What would be printed, as plain text of 100 columns."""
    from rich.console import Console

    text = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=text, width=100, highlight=False))
    return text


def test_names_are_not_markup(terminal):
    display.show_table(Table(group=["[red]north[/red]"], n=[3]), "by [b]site[/b]")
    assert "by [b]site[/b]" in terminal.getvalue()
    assert "[red]north[/red]" in terminal.getvalue()


def test_a_report_shows_its_verdict_and_numbers(terminal):
    display.show_report(evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, n_resamples=99, title="[i]mine[/i]"))
    text = terminal.getvalue()
    assert "[i]mine[/i]" in text
    assert "probabilities" in text
    assert "Brier score" in text


def test_progress_is_silent_where_there_is_no_terminal(capsys):
    with display.steps() as progress:
        progress("Reading", 0, 2)
    assert list(display.ProgressEngine().map(lambda a, b: a + b, [1, 2], [3, 4])) == [4, 6]
    assert list(display.ProgressEngine(2).map(pow, [2, 3], [3, 4])) == [8, 81]
    assert list(display.ProgressEngine().map(pow, [], [])) == []
    assert capsys.readouterr() == ("", "")
