"""Imports point down the layers, and optional libraries are named only where they belong."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "calibrant"

LAYERS = [
    ["results"],
    ["typing"],
    ["_array"],
    ["_validate"],
    ["_fused", "_lines", "_records", "_softmax", "_tasks", "spec"],
    ["_columns"],
    ["_parts"],
    ["_pairwise", "kernels"],
    ["expectation"],
    ["distributions"],
    ["spectral"],
    ["lenses", "residuals"],
    ["thresholds"],
    ["countwise"],
    ["recalibration"],
    ["estimators"],
    ["inference", "losses", "streams"],
    ["monitoring"],
    ["planning"],
    ["plots"],
    ["checks", "io", "reports", "sklearn"],
    ["lab"],
    ["batches", "rewriting"],
    ["engines"],
    ["cli"],
    ["__main__"],
]
"""Lowest first. A module may import from lower rows and from its own package, never from its own row or above."""

HOMES = {
    "torch": {
        "_array.py",
        "engines/devices.py",
        "engines/gpus.py",
        "_fused/cuda.py",
        "_fused/cuda_ieee.py",
        "_fused/cuda_launch.py",
        "_fused/cuda_layout.py",
        "_fused/cuda_moments.py",
        "_fused/cuda_normals.py",
        "_fused/cuda_products.py",
        "_fused/cuda_redraws.py",
        "_fused/cuda_softmax.py",
        "_fused/cuda_torch.py",
        "_fused/room.py",
        "losses/baselines.py",
        "losses/calibration.py",
        "losses/heads.py",
        "losses/sharpness.py",
        "streams/metric.py",
    },
    "triton": {
        "_fused/cuda_launch.py",
        "_fused/cuda_moments.py",
        "_fused/cuda_normals.py",
        "_fused/cuda_pairs.py",
        "_fused/cuda_products.py",
        "_fused/cuda_redraws.py",
        "_fused/cuda_softmax.py",
    },
    "jax": {"_array.py"},
    "lightgbm": {"recalibration/tree_libraries.py"},
    "catboost": {"recalibration/tree_libraries.py"},
    "sklearn": {
        "recalibration/tree_libraries.py",
        "sklearn/classifier.py",
        "sklearn/held_out.py",
        "sklearn/outputs.py",
        "sklearn/regressor.py",
        "sklearn/scoring.py",
    },
    "numba": {"_fused/cpu.py", "_fused/running_sums.py", "_fused/strips.py"},
    "narwhals": {"_validate.py"},
    "array_api_compat": {"_array.py"},
    "matplotlib": {
        "plots/axes.py",
        "plots/bias_curves.py",
        "plots/class_panels.py",
        "plots/confusion_map.py",
        "plots/control_chart.py",
        "plots/coverage_curve.py",
        "plots/display.py",
        "plots/drift_map.py",
        "plots/end_labels.py",
        "plots/evidence_line.py",
        "plots/fan_chart.py",
        "plots/heat_map.py",
        "plots/legend.py",
        "plots/level_deviation.py",
        "plots/level_histogram.py",
        "plots/model_curves.py",
        "plots/model_rows.py",
        "plots/null_histogram.py",
        "plots/picture.py",
        "plots/reliability_diagram.py",
        "plots/row_marks.py",
        "plots/sharpness_chart.py",
        "plots/side_by_side.py",
        "plots/simplex_map.py",
        "plots/spread_curve.py",
        "plots/style.py",
        "plots/witness_map.py",
    },
    "dask": {"engines/collections.py"},
    "distributed": {"engines/cluster.py", "engines/connecting.py"},
    "jinja2": {"reports/page.py"},
    "polars": {"_columns.py", "_parts.py"},
    "rich": {"cli/console.py", "cli/display.py", "cli/doctor.py", "cli/progress.py"},
    "cyclopts": {
        "cli/__init__.py",
        "cli/app.py",
        "cli/commands.py",
        "cli/completion.py",
        "cli/demo.py",
        "cli/doctor.py",
        "cli/monitor.py",
        "cli/recalibrate.py",
        "cli/studies.py",
    },
}
"""The files that may name an optional or wrapped library."""

FILES = sorted(SOURCE.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "calibrant":
                yield from (f"calibrant.{alias.name}" for alias in node.names)


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
            assert path.relative_to(SOURCE).as_posix() in HOMES[library], f"{path.name} imports {library}"


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name not in ("__init__.py", "__main__.py")], ids=lambda p: p.stem
)
def test_every_module_has_its_test_file(path):
    inside = path.relative_to(SOURCE)
    mirror = Path(__file__).parent / inside.parent / f"test_{inside.stem.strip('_')}.py"
    assert mirror.exists(), f"{inside} has no {mirror.relative_to(Path(__file__).parent)}"
