import pytest

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
