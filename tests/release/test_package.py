"""The files that are published, as a user gets them: what they hold, how few things they bring, and their types.

``pip install -r requirements-release.txt && pytest -m release -s`` builds once and needs a package index.
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]

MOST = {"": 7, "cli": 32}
"""Distributions that an installation may have, pip left out, by extra."""

TYPED = """
from calibrant import ECE, EqualMass, ExactTest, evaluate
from calibrant.recalibration import Temperature
from calibrant.results import Estimate, TestResult

estimate: Estimate = ECE(EqualMass(10))([0, 1, 1], [0.2, 0.7, 0.9])
result: TestResult = ExactTest(ECE())([0, 1, 1], [0.2, 0.7, 0.9])
number: float = estimate.value + result.pvalue
reveal_type(Temperature())
ECE(bins="ten")
"""


def build(folder):
    """Both files, at a fixed time: whoever builds this commit gets the same bytes."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1767225600"}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    wheel, sdist = build(tmp_path_factory.mktemp("dist"))
    print(f"\n{wheel.name} {wheel.stat().st_size:,} bytes, {sdist.name} {sdist.stat().st_size:,} bytes")
    return wheel, sdist


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Pythons that have the wheel, with an extra, and nothing else; each made once."""
    pythons = {}

    def python(extra):
        if extra not in pythons:
            folder = tmp_path_factory.mktemp(f"user-{extra}")
            venv.create(folder, with_pip=True)
            pythons[extra] = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
            what = f"{built[0]}[{extra}]" if extra else str(built[0])
            subprocess.run([pythons[extra], "-m", "pip", "install", "-q", what], check=True, capture_output=True)
        return pythons[extra]

    return python


def output(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options).stdout


def test_the_index_would_take_the_files(built):
    assert output(sys.executable, "-m", "twine", "check", "--strict", *built).count("PASSED") == 2


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[0]).namelist()
    folders = {name.split("/")[0] for name in names}
    assert {f for f in folders if not f.endswith(".dist-info")} == {"calibrant"}
    files = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src" / "calibrant").rglob("*") if p.is_file()}
    assert {n for n in names if n.startswith("calibrant/")} == {f for f in files if "__pycache__" not in f}
    assert "calibrant/py.typed" in names


def test_the_source_holds_what_its_tests_need(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "CHANGELOG.md", "tests/conftest.py", "requirements-dev.txt"} <= names


def test_the_same_bytes_twice(built, tmp_path):
    again = build(tmp_path)
    assert [p.name for p in again] == [p.name for p in built]
    digests = [[hashlib.sha256(p.read_bytes()).hexdigest() for p in files] for files in (built, again)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("extra", list(MOST))
def test_few_distributions_come_along(installed, extra):
    names = [d["name"] for d in json.loads(output(installed(extra), "-m", "pip", "list", "--format=json"))]
    names = sorted(set(names) - {"pip", "setuptools"})
    print(f"\n[{extra}]: {len(names)}: {', '.join(names)}")
    assert len(names) <= MOST[extra]


def test_the_core_works_alone(installed, tmp_path):
    code = "from calibrant import ECE, ExactTest; print(ExactTest(ECE())([0, 1] * 50, [0.1, 0.9] * 50).pvalue <= 1)"
    assert output(installed(""), "-W", "error", "-c", code, cwd=tmp_path) == "True\n"


def test_the_program_works_in_an_empty_folder(installed, tmp_path):
    program = Path(installed("cli")).with_name("calibrant")
    assert "calibrant demo" in output(program, "--help", cwd=tmp_path)
    assert "over-confident" in output(program, "demo", "--data", "digits.csv", cwd=tmp_path).lower()
    assert (tmp_path / "digits.csv").exists()


def test_types_are_seen_from_outside(installed, tmp_path):
    (tmp_path / "mine.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed("")), "mine.py"]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    lines = done.stdout.strip().splitlines()
    assert [line.split(": ", 1)[1] for line in lines[:-1] if "Revealed" in line] == [
        'note: Revealed type is "calibrant.recalibration.scaling.temperature.Temperature"'
    ]
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == 1, done.stdout
    assert 'Argument "bins" to "ECE" has incompatible type "str"' in errors[0]


def test_a_bill_of_materials_lists_what_is_installed(installed):
    command = [sys.executable, "-m", "cyclonedx_py", "environment", installed(""), "--output-reproducible"]
    parts = {part["name"]: part["version"] for part in json.loads(output(*command))["components"]}
    assert {"calibrant", "numpy", "scipy", "numba", "narwhals", "array-api-compat"} <= set(parts)
