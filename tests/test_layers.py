"""Imports point down the layers, and optional libraries are named only where they belong."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from calibrant._names import PACKAGES, PUBLIC, homes

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "calibrant"

LAYERS = [
    ["_names"],
    ["results"],
    ["typing"],
    ["_array"],
    ["_wording"],
    ["_validate"],
    ["_clusters", "_deprecation", "_files", "_spellings"],
    ["_compiled", "_softmax", "_tasks", "spec"],
    ["_numerics", "_pairwise", "kernels"],
    ["distributions"],
    ["residuals"],
    ["lenses"],
    ["recalibration"],
    ["estimators"],
    ["inference", "losses", "streams"],
    ["monitoring"],
    ["planning"],
    ["plots"],
    ["checks", "io", "reports"],
    ["sklearn"],
    ["integrations", "lab"],
    ["engines"],
    ["cli"],
    ["__main__"],
]
"""Lowest first. A module may import from lower rows and from its own package, never from its own row or above."""

HOMES = {
    "torch": ("_array.py", "_compiled/", "engines/devices.py", "losses/", "streams/metric.py"),
    "torchmetrics": ("streams/metric.py",),
    "triton": ("_compiled/cuda_",),
    "mlflow": ("integrations/",),
    "evaluate": ("integrations/",),
    "datasets": ("integrations/",),
    "jax": ("_array.py",),
    "lightgbm": ("recalibration/stacking/boosted.py",),
    "catboost": ("recalibration/stacking/boosted.py",),
    "sklearn": ("recalibration/stacking/boosted.py", "sklearn/"),
    "numba": ("_compiled/",),
    "narwhals": ("_validate.py", "results/table.py"),
    "array_api_compat": ("_array.py",),
    "matplotlib": ("plots/",),
    "dask": ("engines/",),
    "distributed": ("engines/",),
    "jinja2": ("reports/render/",),
    "polars": ("io/",),
    "rich": ("cli/",),
    "cyclopts": ("cli/",),
}
"""The folders and files that may name an optional or wrapped library."""

FILES = sorted(SOURCE.rglob("*.py"))

MAX_FRAGMENT_LINES = 70
"""The shortest private files that one neighbour alone imports have some seventy lines: ensembles with a line per member."""


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def imported(path):
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module)
            if node.module == "calibrant":
                found += [f"calibrant.{alias.name}" for alias in node.names]
    return found


def unit(path):
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def level(name):
    return next(i for i, row in enumerate(LAYERS) if name in row)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path):
    if path == SOURCE / "__init__.py":
        return
    own = unit(path)
    for module in imported(path):
        parts = module.split(".")
        if (
            parts[0] != "calibrant"
            or len(parts) == 1
            or not ((SOURCE / parts[1]).is_dir() or (SOURCE / f"{parts[1]}.py").exists())
        ):
            continue
        assert parts[1] == own or level(parts[1]) < level(own), f"{own} imports {module}, which is not below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_optional_libraries_stay_at_home(path):
    for module in imported(path):
        library = module.split(".")[0]
        if library in HOMES:
            assert path.relative_to(SOURCE).as_posix().startswith(HOMES[library]), f"{path.name} imports {library}"


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name not in ("__init__.py", "__main__.py")], ids=lambda p: p.stem
)
def test_every_module_has_its_test_file(path):
    inside = path.relative_to(SOURCE)
    mirror = Path(__file__).parent / inside.parent / f"test_{inside.stem.strip('_')}.py"
    assert mirror.exists(), f"{inside} has no {mirror.relative_to(Path(__file__).parent)}"


def test_a_folder_is_a_page_of_contents():
    for folder in {path.parent for path in FILES} - {SOURCE}:
        entries = [p for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
        assert len(entries) <= 20, f"{folder.relative_to(SOURCE)} has {len(entries)} files and folders"


def test_files_are_short_enough_to_read():
    for path in FILES:
        lines = path.read_text().count("\n")
        assert lines <= 500, f"{path.relative_to(SOURCE)} has {lines} lines"


def test_names_of_files_and_classes_are_unique():
    files, classes = Counter(path.stem for path in FILES), Counter()
    for path in FILES:
        classes.update(n.name for n in tree_of(path).body if isinstance(n, ast.ClassDef))
    twice = [name for name, count in files.items() if count > 1 and name not in ("__init__", "base")]
    twice += [name for name, count in classes.items() if count > 1 and not name.startswith("_")]
    assert not twice


def importers():
    """Modules by who imports them."""
    found = {name_of(path): set() for path in FILES}
    for path in FILES:
        for name in set(imported(path)) & set(found):
            found[name].add(name_of(path))
    return found


def test_what_one_file_uses_is_in_that_file():
    """A module without public names that one neighbour alone imports is a concept of its own, not a few helpers."""
    public = {f"calibrant.{home}" for table in PUBLIC.values() for home in table}
    lines = {name_of(path): path.read_text().count("\n") for path in FILES}
    for name, who in importers().items():
        is_private = len(who) == 1 and name not in public and not name.endswith("__init__")
        if is_private and next(iter(who)).rpartition(".")[0] == name.rpartition(".")[0]:
            assert lines[name] > MAX_FRAGMENT_LINES, f"{name} is used by {next(iter(who))} alone: put it there"


def test_no_module_imports_itself_by_a_detour():
    """Lazy imports count, too."""
    graph = {name_of(path): {m for m in imported(path) if m.startswith("calibrant.")} for path in FILES}
    seen, open_ = set(), []

    def walk(module):
        assert module not in open_, " -> ".join([*open_[open_.index(module) :], module])
        if module in seen or module not in graph:
            return
        open_.append(module)
        for other in graph[module]:
            if other != module and not (SOURCE.parent / other.replace(".", "/")).is_dir():
                walk(other)
        open_.pop()
        seen.add(module)

    for module in graph:
        walk(module)


def name_of(path):
    return ".".join(("calibrant", *path.relative_to(SOURCE).with_suffix("").parts))


DOCUMENTS = [
    *[ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))],
    *sorted((ROOT / "docs" / "skeletons").glob("*.py")),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_documents_use_the_doors(path):
    assert not re.findall(r"(?:from|import) calibrant\.\w+\.\w+", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_examples_use_the_doors(path):
    for package, names in re.findall(r">>> from calibrant\.([a-z]\w*)\.[\w.]+ import ([\w, ]+)", path.read_text()):
        public = set(names.replace(",", " ").split()) & set(homes(package) if package in PACKAGES else ())
        assert not public, f"{sorted(public)}: from calibrant.{package} import ..."


READING = {
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "split",
    "removeprefix",
    "removesuffix",
    "find",
    "index",
}
"""What takes a text apart."""

WORDS = {
    *("words", "headline", "title", "label", "labels", "sentence", "sentences", "finding", "meaning", "caption"),
    *(
        "description",
        "remark",
        "noun",
        "heading",
        "estimator",
        "measure",
        "step",
        "subject",
        "evidence",
        "recalibrator",
    ),
}
"""What displayed texts are called."""

READERS = {
    "cli/__init__.py": "lines of an error message are joined",
    "cli/manual.py": "the manual is made of docstrings",
    "cli/program.py": "homes of commands are written module:function",
    "plots/base.py": "drawings are tidied as SVG; functions have the docstring of their display",
    "plots/style.py": "numbers are written in parts, names on one line",
}
"""Files that may take texts apart, and why: none of these texts says what was found."""

WRITERS = [path for path in FILES if unit(path) in ("reports", "monitoring", "plots", "cli")]


def name_in(node):
    """The last name of a variable, attribute or item."""
    if isinstance(node, ast.Subscript):
        return name_in(node.slice) or name_in(node.value)
    if isinstance(node, ast.Constant):
        return node.value
    return getattr(node, "attr", getattr(node, "id", None))


def words_read(tree):
    """Lines that take a text apart, or look for a part of a displayed one or compare it with a written one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            if node.func.attr != "index" or name_in(node.func.value) in WORDS:
                yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_in = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
            is_text = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
            named = sides[1:] if is_in else sides
            if ((is_in or is_text) and any(name_in(s) in WORDS for s in named if not isinstance(s, ast.Constant))) or (
                is_in and name_in(node.left) in WORDS and _is_written(node.comparators[0])
            ):
                yield node.lineno


def _is_written(node):
    """Whether a list or set of texts stands in the code."""
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in getattr(node, "elts", ()))


@pytest.mark.parametrize("path", WRITERS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_words_are_not_read(path):
    """Findings, bets, measures, slices and steps have identities; sentences are made of them last."""
    found = list(words_read(tree_of(path)))
    assert not found or path.relative_to(SOURCE).as_posix() in READERS, f"{path.name}: words are read in lines {found}"


@pytest.mark.parametrize(
    "line",
    [
        "words.startswith('probabilities of ')",
        "fault.finding.endswith('confident')",
        "x.estimator.partition('(')[0]",
        "'rror' in measure",
        "part in row['title']",
        "x.label == 'Log loss'",
        "x.label in ('Log loss', 'CRPS')",
        "self.words.index(found)",
    ],
)
def test_reading_of_words_is_seen(line):
    assert list(words_read(ast.parse(line))) == [1]


def test_comparing_identities_is_no_reading():
    for line in ("finding is Finding.CLASS", "x.key == 'kernel'", "x.key in SCORES", "a.measure == b.measure"):
        assert not list(words_read(ast.parse(line)))


def test_readers_read():
    for name in READERS:
        assert list(words_read(tree_of(SOURCE / name))), f"{name} reads no words any more"
