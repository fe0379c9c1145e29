import os
import stat
import sys

import pytest

from calibrant._validate import InputError
from calibrant.reports.render import pdf

PAGE = "<!doctype html><title>A page</title><p>On paper"


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A program in a browser's place, which runs the lines it is given."""
    if sys.platform == "win32":
        pytest.skip("the stand-in is a shell script")

    def put(lines):
        program = tmp_path / "bin" / "chromium"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        return program

    return put


def test_without_a_browser_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pdf, "PLACES", (str(tmp_path / "nowhere"),))
    assert pdf.find_browser() is None
    with pytest.raises(InputError, match=r"none was found: install one .*save the page as .html"):
        pdf.to_pdf(PAGE)
    (tmp_path / "chrome.exe").touch()
    monkeypatch.setattr(pdf, "PLACES", (str(tmp_path / "chrome.exe"),))
    assert pdf.find_browser() == str(tmp_path / "chrome.exe")


def test_how_the_browser_is_called(browser):
    program = browser('for last; do :; done; for x; do case $x in --print-to-pdf=*) echo "$@" > "${x#*=}";; esac; done')
    assert pdf.find_browser() == str(program)
    words = pdf.to_pdf(PAGE).decode().split()
    assert "--headless" in words
    assert ("--no-sandbox" in words) == (os.geteuid() == 0)
    assert any(word.startswith("--user-data-dir=") for word in words)
    assert "--host-resolver-rules=MAP" in words
    assert words[-1].startswith("file://")
    assert words[-1].endswith("page.html")


def test_a_browser_that_fails_is_quoted(browser):
    browser("echo first >&2; echo out of paper >&2; exit 3")
    with pytest.raises(InputError, match=r"chromium printed nothing: out of paper; save the page as .html"):
        pdf.to_pdf(PAGE)


def test_a_browser_that_hangs_is_stopped(browser, monkeypatch):
    browser("exec sleep 60")
    monkeypatch.setattr(pdf, "SECONDS", 0.2)
    with pytest.raises(InputError, match="timed out after"):
        pdf.to_pdf(PAGE)


def test_a_real_browser_prints():
    if pdf.find_browser() is None:
        pytest.skip("no browser that prints: apt install chromium")
    assert pdf.to_pdf(PAGE).startswith(b"%PDF-")
