import json
from pathlib import Path

import pytest

from calibrant import evaluate, io
from calibrant._validate import InputError

pytest.importorskip("cyclopts")

from calibrant.cli import pipes as streams
from calibrant.cli import reporting


@pytest.fixture(scope="module")
def report():
    return evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, n_resamples=99, advice=False)


def test_places(tmp_path):
    reporting.check_place(tmp_path / "x.html", "json")
    reporting.check_place(streams.DASH, "table")
    with pytest.raises(InputError, match="--out - and --format markdown both go to the standard output: leave one out"):
        reporting.check_place(streams.DASH, "markdown")
    with pytest.raises(InputError, match="--out .*: there is no folder"):
        reporting.check_place(tmp_path / "nowhere" / "x.html", "table")


def test_forms_of_a_summary(report, capsys):
    out = Path("x.html")
    reporting.show(report, out, "json")
    assert json.loads(capsys.readouterr().out)["n"] == 60
    reporting.show(report, out, "markdown")
    assert capsys.readouterr() == (report.to_markdown(), "")
    reporting.show(report, out, "table")
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "Written to x.html" in shown.out
    reporting.show(report, streams.DASH, "table")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Brier score" in shown.err


def test_a_page_in_a_file_or_a_stream(report, tmp_path, capfdbinary):
    pytest.importorskip("matplotlib")
    reporting.write(report, tmp_path / "x.html")
    reporting.write(report, streams.DASH)
    assert capfdbinary.readouterr().out == (tmp_path / "x.html").read_bytes()


def test_the_command_of_the_advice_names_the_file(monkeypatch):
    seen = {}
    monkeypatch.setattr(reporting, "evaluate", lambda *data, **options: seen.update(options))
    data = io.Dataset([1], [0.5], {}, None, "here")
    reporting.made(data, "Mine", 99, 1, ["x.csv", "--y-true", "y"])
    assert seen["source"] == ["x.csv", "--y-true", "y"]
    assert (seen["title"], seen["n_resamples"], seen["rng"]) == ("Mine", 99, 1)
