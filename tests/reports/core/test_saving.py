import json

import pytest

from calibrant import InputError, evaluate
from calibrant.reports.render import pdf


@pytest.fixture
def result():
    return evaluate([0, 1, 1], [0.2, 0.7, 0.6], title="lone \ud800 surrogate", n_resamples=99)


def test_the_name_says_the_form(result, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    page = result.save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page == result.to_html()
    assert json.loads(result.save(str(tmp_path / "x.JSON")).read_text(encoding="utf-8"))["title"] == result.title
    monkeypatch.setattr(pdf, "to_pdf", lambda html: f"printed {len(html)}".encode())
    assert result.save(tmp_path / "x.pdf").read_text() == f"printed {len(page)}"


def test_other_endings_are_refused(result, tmp_path):
    with pytest.raises(InputError, match=r"path must end in .html, .pdf, .md or .json; got '.*x.docx'"):
        result.save(tmp_path / "x.docx")
    assert not (tmp_path / "x.docx").exists()
