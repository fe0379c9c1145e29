"""A page on paper, printed by a browser that is already there."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from calibrant._validate import InputError

COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "brave-browser",
)
"""Browsers that print without a window, as they are called on a command line."""

PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\Microsoft\Edge\Application\msedge.exe",
)
"""Where installers put them without telling the command line."""

OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pdf-header-footer",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the page needs no network, and the browser gets none
)

SECONDS = 120
"""How long a browser may take."""


def find_browser() -> str | None:
    """The program of a browser that can print, or ``None``."""
    found = (shutil.which(command) for command in COMMANDS)
    return next((path for path in found if path), None) or next((p for p in PLACES if Path(p).is_file()), None)


def check_browser() -> str:
    """The program of a browser that can print; an error that names the remedy where there is none."""
    browser = find_browser()
    if browser is None:
        raise InputError(
            "a PDF is printed by Chromium, Chrome or Edge, and none was found: install one (apt install chromium), "
            "or save the page as .html and print it from any browser"
        )
    return browser


def to_pdf(html: str) -> bytes:
    """The page as PDF, by Chromium, Chrome or Edge without a window, with a profile that is thrown away.

    Takes a few seconds. Raises :class:`InputError` where there is no such browser.
    """
    browser = check_browser()
    with tempfile.TemporaryDirectory(prefix="calibrant-", ignore_cleanup_errors=True) as folder:
        page, paper = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html, encoding="utf-8")
        complaint = _print(browser, page, paper)
        if not paper.is_file():
            raise InputError(f"{browser} printed nothing: {complaint}; save the page as .html instead")
        return paper.read_bytes()


def _print(browser: str, page: Path, paper: Path) -> str:
    """Run the browser; what it complains about, in one line."""
    # The administrator's browser has no sandbox to run in; the page is ours, and its policy lets no other script run.
    alone = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []
    command = [browser, *OPTIONS, *alone, f"--user-data-dir={page.parent / 'profile'}", f"--print-to-pdf={paper}"]
    complaints = page.with_name("complaints.txt")  # not a pipe, which the browser's own children would keep open
    with complaints.open("wb") as stream:
        try:
            subprocess.run(
                [*command, page.as_uri()], stdout=subprocess.DEVNULL, stderr=stream, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    lines = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
