"""Pictures in a real kernel of a notebook: each is shown once, and later figures are shown as before."""

import json
import subprocess
import sys
from contextlib import suppress

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("nbclient")

RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(code) for code in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
shown = [[o for o in cell.outputs if o.output_type != "stream"] for cell in notebook.cells]
said = ["".join(o.text for o in cell.outputs if o.output_type == "stream") for cell in notebook.cells]
print(json.dumps([[sum("image/png" in o.data or "image/svg+xml" in o.data for o in s), t] for s, t in zip(shown, said)]))
"""
"""Cells as JSON to what each shows: how many pictures, and what it prints; by itself, as kernels need a loop of their own."""

FIRST = """
import numpy as np
from calibrant import plots
rng = np.random.default_rng(0)
p = rng.random(200)
y = (rng.random(200) < p) * 1
plots.reliability(y, p);
"""


def outputs(*cells):
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(cells), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("magic", [[], ["%matplotlib inline"]])
def test_figures_are_shown_after_the_first_picture(magic):
    found = outputs(
        *magic,
        FIRST,
        "import matplotlib.pyplot as plt; print(plt.isinteractive()); plt.plot([1, 2]);",
        "plots.reliability(y, p)",
        "fig, ax = plt.subplots(); plots.reliability(y, p, ax=ax);",
        "print(plt.rcParams['font.size'], plt.rcParams['svg.hashsalt'])",
        "plots.reliability(y, p).figure_.dpi;",
    )[len(magic) :]
    assert [pictures for pictures, _ in found[:4]] == [1, 1, 1, 1]
    assert found[1][1] == "True\n"
    assert found[4] == [0, "10.0 None\n"]  # settings of the reader are as they were


def test_settings_are_put_back_when_drawing_fails():
    import matplotlib

    from calibrant.plots.style import palette_of, styled

    before = dict(matplotlib.rcParams)
    with suppress(ZeroDivisionError), styled(palette_of("dark")):
        assert matplotlib.rcParams["font.size"] == 11
        raise ZeroDivisionError
    assert dict(matplotlib.rcParams) == before
