"""The documentation site: ``sphinx-build -W -b html docs build/docs``."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "calibrant"
author = "The calibrant developers"
copyright = author
exclude_patterns = ["skeletons", "decisions/README.md"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "public_names",
    "cyclopts.ext.sphinx",
]

# Markdown as GitHub shows it, and mathematics between dollars.
myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_heading_anchors = 3

# MathML is written at build time, and browsers show it without a script: the site needs no network.
html_math_renderer = "mathml"

# Pages of names are written out by one directive; see _extensions/public_names.py.
autosummary_generate = False
autodoc_class_signature = "mixed"
autodoc_typehints_format = "short"
autodoc_mock_imports = [library for library in ("torch", "sklearn") if find_spec(library) is None]
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "calibrant"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "index": [],
        "peers": [],
        "performance": [],
        "choose": [],
        "glossary": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
WITHOUT_SIDEBAR = [
    "index",
    "tour",
    "features",
    "glossary",
    "theory",
    "choose",
    "peers",
    "performance",
    "coming-from",
    "changelog",
    "contributing",
    "gallery",
    "maintaining",
]
html_sidebars: dict[str, list[str]] = {page: [] for page in WITHOUT_SIDEBAR}


def setup(app: Any) -> None:
    """Load all modules of the command line, as each adds its commands to the program; and see to code blocks."""
    import calibrant.cli

    for module in iter_modules(calibrant.cli.__path__, "calibrant.cli."):
        import_module(module.name)
    app.connect("source-read", close_blocks)


def close_blocks(app: Any, name: str, source: list[str]) -> None:  # noqa: ARG001  # Sphinx calls it so
    """Take off the empty line that ends the output of an example: doctest needs it, readers do not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")
