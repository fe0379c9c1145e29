import io
import re
from dataclasses import replace

import pytest

from calibrant import evaluate
from calibrant.reports import Advice
from calibrant.results import Estimate, Interval, Table

display = pytest.importorskip("calibrant.cli.display")
console = pytest.importorskip("calibrant.cli.console")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal of some columns would show, as plain text."""

    def of(width):
        file = Terminal()
        stream = console.Stream(
            file=file, width=width, force_terminal=True, highlight=False, _environ={"TERM": "xterm"}
        )
        monkeypatch.setattr(console, "out", stream)
        return lambda: re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())

    return of


@pytest.fixture(scope="module")
def report():
    y, p = [1, 0, 1, 1] * 100, [0.7, 0.45, 0.55, 0.4] * 100
    by = {"[i]site": ["north", "a very long name of a place, in another country"] * 200}
    advice = Advice(
        "Platt() would help, by 0.1 ± 0.02.", ("Two sentences.", "The second one."), None, "calibrant x --y", None
    )
    return replace(evaluate(y, p, by=by, n_resamples=199, title="[b]mine[/b]"), advice=advice)


def test_names_are_not_markup(terminal):
    text = terminal(100)
    display.show_table(Table(group=["[red]north[/red]"], n=[3]), "by [b]site[/b]")
    assert "by [b]site[/b]" in text()
    assert "[red]north[/red]" in text()


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_a_report_fits_and_no_number_is_broken(terminal, report, width):
    text = terminal(width)
    display.show_report(report)
    lines = text().splitlines()
    command = f"  {report.advice.command}"
    assert max(len(line) for line in lines if line != command) <= width
    whole = "\n".join(lines)
    assert "[b]mine[/b]" in whole
    for x in report.numbers:
        assert x.text(x.value) in whole
        assert x.band() in whole
        if x.interval is not None:
            assert f"{x.text(x.interval.low)} to {x.text(x.interval.high)}" in whole
    assert not re.search(r"\d\s*│?\n│?\s*%", whole)
    assert "Stands out" in whole
    assert "By [i]site: north" in whole
    assert "What to do: Platt() would help, by 0.1 ± 0.02." in whole
    assert command in lines


@pytest.mark.parametrize("width", range(12, 40))
def test_a_number_stays_with_its_unit_and_its_name(width):
    lines = display._broken("show 0.16 % to 1 % (p = 0.005), falls by 0.1 ± 0.02 from here on", width).splitlines()
    assert max(map(len, lines)) <= width
    for words in ("0.16 %", "1 %", "p = 0.005", "0.1 ± 0.02"):
        assert sum(words in line for line in lines) == 1


def test_wide_tables_come_in_blocks_with_their_first_column(terminal):
    text = terminal(60)
    columns = {f"column {i}": [0.123456 + i, 1234567.5] for i in range(9)}
    display.show_table(Table({"group": ["a", "b"], **columns}), "wide")
    assert text().count("group") == 3
    for i in range(9):
        assert f"column {i}" in text()
    assert "…" not in text()
    assert text().count("1,234,567.5") == 9


def test_pipes_are_as_wide_as_they_need_to_be(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(console, "out", console.Stream(file=file, width=80, highlight=False))
    display.show_table(Table({f"column {i}": [0.123456] for i in range(20)}), "wide")
    assert len(file.getvalue().splitlines()) == 4  # a blank, the title, names, values


def test_letters_of_two_columns_are_counted_as_such(terminal):
    text = terminal(60)
    display.show_table(Table(group=["東京都" * 3], value=[0.5], other=["京" * 20]), "wide")
    assert "京" * 20 in text()


def test_estimates_with_and_without_intervals(terminal):
    text = terminal(100)
    plain, known = (
        Estimate("ECE", 0.5, 10, "ECE"),
        Estimate("ECE", 0.5, 10, "ECE", interval=Interval(0.4, 0.6, 0.95, "x")),
    )
    display.show_estimates([plain, known])
    assert "0.4 to 0.6" in text()


def test_progress_is_silent_where_there_is_no_terminal(capsys):
    with display.steps() as progress:
        progress("Reading", 0, 2)
    assert list(display.ProgressEngine().map(lambda a, b: a + b, [1, 2], [3, 4])) == [4, 6]
    assert list(display.ProgressEngine(2).map(pow, [2, 3], [3, 4])) == [8, 81]
    assert list(display.ProgressEngine().map(pow, [], [])) == []
    assert capsys.readouterr() == ("", "")
