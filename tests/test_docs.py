"""The documentation site: built without a warning, complete, and readable without a network."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from urllib.parse import unquote

import pytest

from calibrant._names import PACKAGES, homes
from calibrant.distributions import Distribution
from calibrant.estimators import BaseEstimator
from calibrant.recalibration import Recalibrator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MARKDOWN = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "cyclopts")
MISSING = [name for name in NEEDED if find_spec(name) is None]

needs_sphinx = pytest.mark.skipif(
    bool(MISSING), reason=f"the site needs {', '.join(MISSING)}: pip install -r requirements-dev.txt"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run([*command, str(DOCS), str(folder / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def names_in(site):
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda _, name: name)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


@needs_sphinx
def test_every_public_name_is_in_the_reference(site):
    everyday, documented = homes(""), names_in(site)
    for package in PACKAGES:
        for name, home in homes(package).items():
            assert (f"calibrant.{name}" if everyday.get(name) == home else f"calibrant.{package}.{name}") in documented


@pytest.mark.parametrize(
    ("package", "base"),
    [("estimators", BaseEstimator), ("recalibration", Recalibrator), ("distributions", Distribution)],
)
def test_every_estimator_recalibrator_and_family_is_public(package, base):
    for found in walk_packages(import_module(f"calibrant.{package}").__path__, f"calibrant.{package}."):
        module = import_module(found.name)
        for name, value in vars(module).items():
            is_here = isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
            if is_here and not name.startswith("_") and not value.__abstractmethods__:
                assert name in homes(package)


@needs_sphinx
def test_a_page_asks_for_nothing_from_another_host(site):
    asks = re.compile(
        r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//"""
    )
    for page in site.rglob("*.html"):
        assert not asks.search(page.read_text(encoding="utf-8")), page
    fetches = re.compile(r"""@import\s+["']?(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//""")
    for style in site.rglob("*.css"):
        assert not fetches.search(style.read_text(encoding="utf-8")), style


@needs_sphinx
def test_formulas_are_written_out(site):
    page = (site / "theory.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert not re.search("<script[^>]+mathjax", page, flags=re.IGNORECASE)


@needs_sphinx
def test_every_page_can_be_reached_from_the_first(site):
    linked, waiting = set(), ["index.html"]
    while waiting:
        page = waiting.pop()
        linked.add(page)
        text = (site / page).read_text(encoding="utf-8")
        for target in re.findall(r'href="([^"#?:]+\.html)', text):
            found = ((site / page).parent / unquote(target)).resolve().relative_to(site.resolve()).as_posix()
            if found not in linked and found not in waiting:
                waiting.append(found)
    pages = {p.relative_to(site).as_posix() for p in site.rglob("*.html") if "_static" not in p.parts}
    assert pages - linked <= {"search.html", "genindex.html"}


def test_every_guide_is_in_the_list_of_guides():
    index = (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    for guide in (DOCS / "guide").glob("*.md"):
        assert guide.name == "index.md" or f"({guide.name})" in index, f"docs/guide/index.md does not link {guide.name}"


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(path):
    """On GitHub, too, where links go to files."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", target):
            assert (path.parent / unquote(target.partition("#")[0])).exists(), target


def test_the_command_that_builds_the_site_is_told():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "sphinx-build -W -b html docs build/docs" in text
