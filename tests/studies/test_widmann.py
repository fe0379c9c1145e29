import re
from inspect import signature

import numpy as np
import pytest

from studies import pictures
from studies.widmann import regressions
from studies.widmann.regressions import BOUND, ITERATIONS, figure, sections, study, summary

pytest.importorskip("torch")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def small():
    return study(iterations=[10, 100, 200], n_resamples=99, published_resamples=999, exact_resamples=199)


def test_every_experiment_has_its_rows(small):
    counts = {name: int(np.sum(small["experiment"] == name)) for name in dict.fromkeys(small["experiment"].tolist())}
    # The exact test looks at ten models and at their ensemble, of new networks after two of the iterations.
    exact = {"new networks": 2 * 2 * 2, "published networks": 6 * 2 * 2}
    assert counts == {
        "new networks": 3 * 2 * 14 + 3 + exact["new networks"],
        "published networks": 6 * 2 * 14 + exact["published networks"],
        "least squares": 10,
    }
    here = (small["experiment"] != "new networks") & np.isfinite(small["part"])
    assert here.sum() == 6 * 2 * 14 + 7
    assert small["part"][here].max() < BOUND


def test_the_page(small):
    wide = summary(small)
    assert list(wide) == ["quantity", "data", "model", "iteration = 10", "iteration = 100"]
    assert wide.n_rows == 2 * 16
    assert wide["iteration = 100"][0].endswith(" (2.694)")
    assert "(" not in wide["iteration = 100"][-1]  # nothing was published of the exact test
    assert len(figure(small).axes) == 4
    parts = sections(small)
    assert [part.name for part in parts] == ["figure-12", "figure-1", "published-networks", "exact-test", "ensembles"]
    assert [part.table.n_rows for part in parts] == [3, 10, 6, 12, 24]
    assert [part.figure is not None for part in parts] == [True, True, False, False, True]
    last = list(parts[3].table.rows())[-1]
    assert (last["iteration"], last["data"]) == (1500, "test")
    assert float(last["ensemble, bootstrap"]) > 0.05 > float(last["ensemble, exact"])
    assert pictures.svg(parts[0].figure).startswith("<?xml")
    assert set(parts[-1].table["too small by"][-2:]) == {"6.8 %", "7.4 %"}
    assert float(parts[2].table["models"][0]) < 1e-12
    assert float(parts[2].table["models"][-1]) < 0.08  # two bootstraps of 1,000 draws


def test_sections_of_a_page(small, run, monkeypatch, tmp_path):
    pytest.importorskip("cyclopts")
    pytest.importorskip("polars")
    settings = signature(study)

    def kept(**said):
        settings.bind(**said)
        return small

    monkeypatch.setattr(regressions, "study", kept)
    code, out, err = run("widmann", "--out", str(tmp_path))
    assert (code, err) == (1, "")  # after so few iterations no curve has turned
    assert "largest difference: " in out
    assert "iteration = 10" in out
    page = (tmp_path / "widmann.md").read_text()
    assert page.startswith("# Calibration of regressions")
    assert page.count("\n## ") == 5
    for name in ("widmann", "widmann-figure-12", "widmann-figure-1", "widmann-ensembles"):
        assert f"]({name}.svg)" in page
        assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")
    assert {path.stem for path in tmp_path.glob("*.svg")} == set(re.findall(r"\]\((.*)\.svg\)", page))


def test_iterations_are_dense_where_curves_turn():
    assert {10, 100, 500, 1000, 1500, 5000} <= set(ITERATIONS)
    ratios = np.array(ITERATIONS[1:]) / np.array(ITERATIONS[:-1])
    assert ratios[np.array(ITERATIONS[1:]) > 60].max() < 1.08


@pytest.mark.study
def test_all_of_it():
    """Ten networks on the published data, 5,000 iterations: the published means, and curves that turn where they did."""
    table = study()
    assert np.nanmax(table["part"]) <= BOUND
    here = (table["experiment"] == "new networks") & (table["data"] == "test") & (table["quantity"] == "p-value")
    late = here & (table["iteration"] > 1000)
    assert table["value"][late & (table["model"] == "models")].max() < 0.05
    assert table["value"][late & (table["model"] == "ensemble")].min() > 0.05
    exact = (table["data"] == "test") & (table["quantity"] == "p-value, exact") & (table["iteration"] >= 1000)
    assert table["value"][exact & (table["model"] == "ensemble")].max() < 0.05  # the bootstrap lacks the power
