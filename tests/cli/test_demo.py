import html
import json
import shlex

import pytest

from calibrant import io
from calibrant.recalibration import Map, load_map

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


@pytest.mark.parametrize(("name", "command"), [("digits", "--y-pred 'p_*'"), ("diabetes", "--predict")])
def test_a_report_and_its_data(run, few_rows, tmp_path, monkeypatch, name, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", name, "--data", "mine.csv", "--out", "page.md")
    assert (code, err) == (0, "")
    assert (tmp_path / "mine.csv").read_bytes() == (few_rows / f"{name}.csv").read_bytes()
    assert (tmp_path / "page.md").read_text("utf-8").startswith("### ")
    assert command in out
    if name == "digits":  # what to do, on the file that was written; the other needs nothing
        assert "calibrant recalibrate mine.csv --y-true digit" in out


def test_no_place_for_the_data(run, tmp_path):
    code, out, err = run("demo", "--data", str(tmp_path / "nowhere" / "x.csv"))
    assert (code, out) == (2, "")
    assert "--data" in err


def test_the_advice_of_the_page_works_when_pasted(run, few_rows, tmp_path, monkeypatch):
    """The file that it names is there, and the map that it saves is one."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--out", "page.json")
    assert code == 0, err
    command = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))["advice"]["command"]
    assert "calibrant-digits.csv" in command
    assert "The predictions are in calibrant-digits.csv" in " ".join(out.split())
    program, *words = shlex.split(command)
    assert program == "calibrant"
    code, out, err = run(*words)
    assert code == 0, err
    assert isinstance(load_map(words[words.index("--save") + 1]), Map)


def test_a_file_of_that_name_is_left_alone(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "calibrant-digits.csv"
    mine.write_text("mine", encoding="utf-8")
    code, _, err = run("demo")
    assert code == 2
    assert "calibrant-digits.csv' is there and holds something else" in " ".join(err.split())
    assert mine.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "calibrant-demo.html").exists()


def test_a_page_for_a_pipe_writes_no_file_and_names_one_that_is_there(run, few_rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--out", "-")
    assert code == 0, err
    assert [path.name for path in tmp_path.iterdir()] == ["examples"]
    assert str(io.example("digits")) in html.unescape(out)
